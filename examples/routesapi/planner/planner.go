// Package planner finds a short round trip through a number of stops. It is what the API sells, and what makes a limit by
// requests useless: ten times the stops are more than a thousand times the work.
package planner

import (
	"context"
	"fmt"
	"math"
)

// MaxStops is how many stops one trip may have; such a trip takes a processor some tenths of a second.
const MaxStops = 200

// Stop is a place to visit, in degrees.
type Stop struct {
	Lat float64 `json:"lat"`
	Lng float64 `json:"lng"`
}

// Trip is a round trip: the stops by their index, from the first one, and the length of the way in metres.
type Trip struct {
	Order  []int `json:"order"`
	Meters int   `json:"meters"`
}

// Check says what is wrong with stops; nil if Solve can take them.
func Check(stops []Stop) error {
	if n := len(stops); n < 2 || n > MaxStops {
		return fmt.Errorf("stops: there are %d; a trip has 2 to %d", n, MaxStops)
	}
	for i, s := range stops {
		if math.Abs(s.Lat) > 90 || math.Abs(s.Lng) > 180 {
			return fmt.Errorf("stops[%d]: lat is within -90 and 90, lng within -180 and 180", i)
		}
	}
	return nil
}

// Solve tries a tour from every stop to the nearest next one and improves each by turning parts of it round (2-opt); the
// shortest wins. It ends early, with ctx's error, when ctx is done.
func Solve(ctx context.Context, stops []Stop) (Trip, error) {
	far := distances(stops)
	var best []int
	shortest := math.Inf(1)
	for start := range stops {
		if err := ctx.Err(); err != nil {
			return Trip{}, err
		}
		tour := nearest(far, start)
		improve(far, tour)
		if l := length(far, tour); l < shortest {
			best, shortest = tour, l
		}
	}
	return Trip{Order: fromFirst(best), Meters: int(math.Round(shortest))}, nil
}

func distances(stops []Stop) [][]float64 {
	far := make([][]float64, len(stops))
	for i := range far {
		far[i] = make([]float64, len(stops))
		for j := range far[i] {
			far[i][j] = meters(stops[i], stops[j])
		}
	}
	return far
}

// meters is the way along a great circle (haversine formula).
func meters(a, b Stop) float64 {
	const earth, degree = 6_371_000, math.Pi / 180
	lat, lng := math.Sin((b.Lat-a.Lat)*degree/2), math.Sin((b.Lng-a.Lng)*degree/2)
	h := lat*lat + math.Cos(a.Lat*degree)*math.Cos(b.Lat*degree)*lng*lng
	return 2 * earth * math.Asin(math.Sqrt(min(h, 1)))
}

func nearest(far [][]float64, start int) []int {
	tour, seen := []int{start}, make([]bool, len(far))
	seen[start] = true
	for at := start; len(tour) < len(far); {
		next := -1
		for i := range far {
			if !seen[i] && (next < 0 || far[at][i] < far[at][next]) {
				next = i
			}
		}
		tour, at, seen[next] = append(tour, next), next, true
	}
	return tour
}

// improve turns parts of the tour round as long as that makes it shorter by more than rounding errors.
func improve(far [][]float64, tour []int) {
	n := len(tour)
	for better := true; better; {
		better = false
		for i := 0; i < n-1; i++ {
			for j := i + 1; j < n; j++ {
				a, b, c, d := tour[i], tour[i+1], tour[j], tour[(j+1)%n]
				if far[a][c]+far[b][d] < far[a][b]+far[c][d]-1e-6 {
					for x, y := i+1, j; x < y; x, y = x+1, y-1 {
						tour[x], tour[y] = tour[y], tour[x]
					}
					better = true
				}
			}
		}
	}
}

func length(far [][]float64, tour []int) (sum float64) {
	for i, stop := range tour {
		sum += far[stop][tour[(i+1)%len(tour)]]
	}
	return sum
}

// fromFirst turns a round trip so that it begins at the first stop.
func fromFirst(tour []int) []int {
	for i, stop := range tour {
		if stop == 0 {
			return append(append([]int(nil), tour[i:]...), tour[:i]...)
		}
	}
	return tour
}
