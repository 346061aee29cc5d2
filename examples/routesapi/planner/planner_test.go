package planner_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/examples/routesapi/planner"
)

// The corners of a square, in an order that crosses it: the shortest way is along the sides.
var square = []planner.Stop{{Lat: 0, Lng: 0}, {Lat: 1, Lng: 1}, {Lat: 0, Lng: 1}, {Lat: 1, Lng: 0}}

func TestSolveGoesRoundASquare(t *testing.T) {
	trip, worked, err := planner.Solve(context.Background(), planner.Task{Stops: square})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(trip.Order, []int{0, 2, 1, 3}) && !slices.Equal(trip.Order, []int{0, 3, 1, 2}) {
		t.Errorf("order %v crosses the square", trip.Order)
	}
	if want := 444_763; trip.Meters < want-100 || trip.Meters > want+100 { // four degrees of 111.2 km, one shortened by the latitude
		t.Errorf("%d metres, want about %d", trip.Meters, want)
	}
	if worked != 4 {
		t.Errorf("it worked on %d places, want 4", worked)
	}
}

func TestTheSamePlaceIsVisitedAndWorkedOnOnce(t *testing.T) {
	alone, _, _ := planner.Solve(context.Background(), planner.Task{Stops: square})
	twice := slices.Concat(square[:1], square, square[1:])
	trip, worked, err := planner.Solve(context.Background(), planner.Task{Stops: twice})
	if err != nil {
		t.Fatal(err)
	}
	var want []int
	for _, corner := range alone.Order {
		want = append(want, [][]int{{0, 1}, {2, 5}, {3, 6}, {4, 7}}[corner]...)
	}
	if worked != 4 || trip.Meters != alone.Meters || !slices.Equal(trip.Order, want) {
		t.Errorf("worked on %d places, %d metres, order %v; want 4, %d, %v", worked, trip.Meters, trip.Order, alone.Meters, want)
	}
	if trip, worked, err := planner.Solve(context.Background(), planner.Task{Stops: make([]planner.Stop, 3)}); err != nil ||
		worked != 1 || trip.Meters != 0 || len(trip.Order) != 3 {
		t.Errorf("one place: worked on %d, %+v, error %v", worked, trip, err)
	}
}

func TestSolveEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, worked, err := planner.Solve(ctx, planner.Task{Stops: square}); !errors.Is(err, context.Canceled) || worked != 0 {
		t.Errorf("worked on %d places, error %v; want 0, context.Canceled", worked, err)
	}
}

func TestASearchTakesItsTimeAndMakesNoTripLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stops := make([]planner.Stop, 30)
		for i := range stops {
			stops[i] = planner.Stop{Lat: float64(i * i % 31), Lng: float64(i)}
		}
		quick, _, err := planner.Solve(t.Context(), planner.Task{Stops: stops})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		trip, worked, err := planner.Solve(t.Context(), planner.Task{Stops: stops, Seconds: 3})
		if took := time.Since(begin); err != nil || took != 3*time.Second {
			t.Errorf("it took %v, error %v; want 3s", took, err)
		}
		slices.Sort(trip.Order)
		if trip.Meters > quick.Meters || worked != 30 || trip.Order[0] != 0 || trip.Order[29] != 29 {
			t.Errorf("worked on %d places, %d metres, was %d; stops %v", worked, trip.Meters, quick.Meters, trip.Order)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin = time.Now()
		_, worked, err = planner.Solve(ctx, planner.Task{Stops: stops, Seconds: 3})
		if took := time.Since(begin); !errors.Is(err, context.DeadlineExceeded) || worked != 30 || took != time.Second {
			t.Errorf("given up: it took %v, worked on %d places, error %v", took, worked, err)
		}
	})
}

func TestCheck(t *testing.T) {
	fit := make([]planner.Stop, planner.MaxStops)
	for _, task := range []planner.Task{
		{}, {Stops: fit[:1]}, {Stops: make([]planner.Stop, planner.MaxStops+1)}, {Stops: []planner.Stop{{}, {Lat: 91}}},
		{Stops: fit, Seconds: -1}, {Stops: fit, Seconds: planner.MaxSeconds + 1},
	} {
		if planner.Check(task) == nil {
			t.Errorf("%d stops, stops %v, %d seconds: no error", len(task.Stops), task.Stops, task.Seconds)
		}
	}
	if err := planner.Check(planner.Task{Stops: fit, Seconds: planner.MaxSeconds}); err != nil {
		t.Error(err)
	}
}
