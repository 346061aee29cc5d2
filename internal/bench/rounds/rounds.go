// Package rounds runs benchmarks side by side and compares them.
//
// Figures of different days or machines mean nothing, and on a shared machine not even those of different minutes. So
// every benchmark runs once per round, in random order, and what is compared is compared within a round: the result is
// the median of the rounds' ratios, beside the lowest and the highest.
package rounds

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"
)

// Processors is the GOMAXPROCS of every measurement, so that tables of larger machines can be read beside each other.
const Processors = 2

// SetProcessors sets GOMAXPROCS to [Processors]; calling what it returns sets it back.
func SetProcessors() (restore func()) {
	before := runtime.GOMAXPROCS(Processors)
	return func() { runtime.GOMAXPROCS(before) }
}

// Sample is what one run of a benchmark measured: figures by name.
type Sample map[string]float64

// Benchmark is something that is measured once per round.
type Benchmark struct {
	// Name is what it is called in tables and in [Of].
	Name string
	// Long benchmarks take part in Plan.Long rounds, the others in Plan.Rounds.
	Long bool
	// Run measures. An error ends the whole plan: a figure of something that failed is worth nothing.
	Run func() (Sample, error)
}

// Plan says how often benchmarks run.
type Plan struct {
	// Rounds is how often every benchmark runs.
	Rounds int
	// Long is how often those run that are marked so, if that is more.
	Long int
	// Rand draws the order of each round. Nil: another order in every run of the program.
	Rand *rand.Rand
	// Log is told about every round. Nil: nobody.
	Log func(format string, args ...any)
}

// Round is what the benchmarks measured in one round, by their names.
type Round map[string]Sample

// Results are the rounds of a plan.
type Results struct{ rounds []Round }

// Run measures every benchmark once per round, each round in an order of its own.
func (p Plan) Run(list []Benchmark) (*Results, error) {
	known := map[string]bool{}
	for _, b := range list {
		if known[b.Name] {
			return nil, fmt.Errorf("rounds: two benchmarks are called %q", b.Name)
		}
		known[b.Name] = true
	}
	shuffle := rand.Shuffle
	if p.Rand != nil {
		shuffle = p.Rand.Shuffle
	}
	all, results := max(p.Rounds, p.Long), &Results{}
	for n := range all {
		var order []Benchmark
		for _, b := range list {
			if n < p.Rounds || b.Long {
				order = append(order, b)
			}
		}
		shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		start, round := time.Now(), Round{}
		for _, b := range order {
			sample, err := b.Run()
			if err != nil {
				return nil, fmt.Errorf("rounds: round %d: %s: %w", n+1, b.Name, err)
			}
			round[b.Name] = sample
		}
		results.rounds = append(results.rounds, round)
		if p.Log != nil {
			p.Log("round %d of %d: %d benchmarks in %v", n+1, all, len(order), time.Since(start).Round(time.Second/10))
		}
	}
	return results, nil
}
