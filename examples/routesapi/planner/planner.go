// Package planner finds a short round trip through a number of stops. It is what the API sells, and what makes a limit by
// requests useless: ten times the stops are more than a thousand times the work, and a search can go on for as long as its
// caller likes.
package planner

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// MaxStops is how many stops one trip may have; without a search, such a trip takes a processor some tenths of a second.
const MaxStops = 200

// MaxSeconds is how long a caller may have its trip searched for.
const MaxSeconds = 40

// Stop is a place to visit, in degrees.
type Stop struct {
	Lat float64 `json:"lat"`
	Lng float64 `json:"lng"`
}

// Task is what a caller wants planned.
type Task struct {
	Stops []Stop `json:"stops"`
	// Seconds is how long to search on for a shorter way once there is one. 0: not at all.
	Seconds int `json:"seconds"`
}

// Trip is a round trip: the stops by their index, from the first one, and the length of the way in metres.
type Trip struct {
	Order  []int `json:"order"`
	Meters int   `json:"meters"`
}

// Check says what is wrong with a task; nil if Solve can take it.
func Check(task Task) error {
	if n := len(task.Stops); n < 2 || n > MaxStops {
		return fmt.Errorf("stops: there are %d; a trip has 2 to %d", n, MaxStops)
	}
	for i, s := range task.Stops {
		if math.Abs(s.Lat) > 90 || math.Abs(s.Lng) > 180 {
			return fmt.Errorf("stops[%d]: lat is within -90 and 90, lng within -180 and 180", i)
		}
	}
	if task.Seconds < 0 || task.Seconds > MaxSeconds {
		return fmt.Errorf("seconds: %d; a search takes 0 to %d", task.Seconds, MaxSeconds)
	}
	return nil
}

// Solve tries a tour from every place to the nearest next one and improves each by turning parts of it round (2-opt); the
// shortest wins. Then it searches on for as long as the task says. Stops that are the same place are visited in one go.
//
// Worked is from how many places it tried a tour, which is what the trip cost: from all of them, unless ctx was done before.
// Then Solve ends early with ctx's error.
func Solve(ctx context.Context, task Task) (trip Trip, worked int, err error) {
	places, stopsAt := merge(task.Stops)
	far := distances(places)
	var best []int
	shortest := math.Inf(1)
	for start := range places {
		if err := ctx.Err(); err != nil {
			return Trip{}, start, err
		}
		tour := nearest(far, start)
		improve(far, tour)
		if l := length(far, tour); l < shortest {
			best, shortest = tour, l
		}
	}
	if best, err = search(ctx, far, best, time.Duration(task.Seconds)*time.Second); err != nil {
		return Trip{}, len(places), err
	}
	trip.Meters = int(math.Round(length(far, best)))
	for _, place := range fromFirst(best) {
		trip.Order = append(trip.Order, stopsAt[place]...)
	}
	return trip, len(places), nil
}

// merge returns the places among stops, and for each the stops that are there.
func merge(stops []Stop) (places []Stop, stopsAt [][]int) {
	numbers := map[Stop]int{}
	for i, s := range stops {
		n, known := numbers[s]
		if !known {
			n = len(places)
			numbers[s] = n
			places, stopsAt = append(places, s), append(stopsAt, nil)
		}
		stopsAt[n] = append(stopsAt[n], i)
	}
	return places, stopsAt
}

// pause is the rest between two tries of a search. So a long one keeps its caller waiting and hardly a processor busy, as if
// the solver ran on machines of its own: that is where work of this kind belongs.
const pause = 10 * time.Millisecond

// search swaps two parts of the best tour at random and improves what comes of it, again and again for a time.
func search(ctx context.Context, far [][]float64, best []int, howLong time.Duration) ([]int, error) {
	if howLong == 0 {
		return best, nil
	}
	end, next := time.NewTimer(howLong), time.NewTicker(pause)
	defer end.Stop()
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-end.C:
			return best, nil
		case <-next.C:
		}
		cut := []int{rand.IntN(len(best) + 1), rand.IntN(len(best) + 1), rand.IntN(len(best) + 1)}
		slices.Sort(cut)
		tour := slices.Concat(best[:cut[0]], best[cut[1]:cut[2]], best[cut[0]:cut[1]], best[cut[2]:])
		improve(far, tour)
		if length(far, tour) < length(far, best) {
			best = tour
		}
	}
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
