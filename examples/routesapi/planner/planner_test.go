package planner_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/headgate-go/headgate/examples/routesapi/planner"
)

// The corners of a square, in an order that crosses it: the shortest way is along the sides.
func TestSolveGoesRoundASquare(t *testing.T) {
	square := []planner.Stop{{Lat: 0, Lng: 0}, {Lat: 1, Lng: 1}, {Lat: 0, Lng: 1}, {Lat: 1, Lng: 0}}
	trip, err := planner.Solve(context.Background(), square)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(trip.Order, []int{0, 2, 1, 3}) && !slices.Equal(trip.Order, []int{0, 3, 1, 2}) {
		t.Errorf("order %v crosses the square", trip.Order)
	}
	if want := 444_763; trip.Meters < want-100 || trip.Meters > want+100 { // four degrees of 111.2 km, one shortened by the latitude
		t.Errorf("%d metres, want about %d", trip.Meters, want)
	}
}

func TestSolveEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := planner.Solve(ctx, make([]planner.Stop, 10)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func TestCheck(t *testing.T) {
	for _, stops := range [][]planner.Stop{nil, make([]planner.Stop, 1), make([]planner.Stop, planner.MaxStops+1), {{}, {Lat: 91}}} {
		if planner.Check(stops) == nil {
			t.Errorf("%d stops, the last %v: no error", len(stops), stops)
		}
	}
	if err := planner.Check(make([]planner.Stop, planner.MaxStops)); err != nil {
		t.Error(err)
	}
}
