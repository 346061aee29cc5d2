package adaptertest

import (
	"math"
	"runtime"
	"testing"
)

// Allocations checks how many allocations a gate adds to a request: what gated makes on average, less what bare does,
// may be at most budget. It works under the race detector too, where pools drop things at random, hence the average.
func Allocations(t *testing.T, budget int, bare, gated func()) {
	t.Helper()
	const runs = 2000
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // nobody else's allocations
	added := math.Inf(1)
	for range 3 { // the least of several: what the runtime itself allocates now and then is not the gate's
		added = min(added, average(runs, gated)-average(runs, bare))
	}
	t.Logf("%.2f allocations are added; the budget is %d", added, budget)
	if added > float64(budget)+0.4 {
		t.Errorf("a gate adds %.2f allocations to a request; the budget is %d", added, budget)
	}
}

func average(runs int, f func()) float64 {
	f() // makes what is made once
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		f()
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(runs)
}
