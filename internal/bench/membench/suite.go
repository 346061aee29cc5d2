package membench

import (
	"slices"
	"time"

	"github.com/headgate-go/headgate/internal/bench/rounds"
)

// size says how much is measured; the smoke test uses a small one.
type size struct {
	keys    int           // in the workloads of many keys
	million int           // in those of a million
	measure time.Duration // of a workload
}

// suite is the in-process part.
type suite struct {
	size size
	list []rounds.Benchmark

	uniform, zipf, hot, refused [3]workload // by the number of workers; [1] and [2]
	open, sharded               limiter
	openCoarse, shardedCoarse   limiter
}

// The prefixes of benchmarks that fill a limiter.
const (
	holds  = "holding a million keys"
	sweeps = "sweeping a million keys"
)

// The limiters that are filled, and those of them that forget by themselves.
var (
	holders  = []limiter{headgate, headgateLarge, timeRate, goLimiter, ululeLimiter, throttledLimiter, httprateLimiter}
	sweepers = []limiter{headgate, goLimiter, httprateLimiter}
)

// with is the name of a benchmark.
func with(l limiter, workload string) string { return workload + ": " + l.name }

func newSuite(z size) *suite {
	s := &suite{size: z,
		open: limiter{"open floor", openFloor(z.keys, exact)}, sharded: limiter{"sharded floor", shardedFloor(exact)},
		openCoarse:    limiter{"open floor, 1 ms clock", openFloor(z.keys, coarse)},
		shardedCoarse: limiter{"sharded floor, 1 ms clock", shardedFloor(coarse)}}
	everybody := append([]limiter{headgate, s.open, s.sharded}, peers...)
	names := map[int][]string{1: keyNames(1), z.keys: keyNames(z.keys)}
	add := func(w workload, limiters ...limiter) workload {
		orders := w.orders()
		for _, l := range limiters {
			s.list = append(s.list, rounds.Benchmark{Name: with(l, w.name),
				Run: func() (rounds.Sample, error) { return w.run(l, names[w.keys], orders, z.measure) }})
		}
		return w
	}
	for workers := 1; workers <= 2; workers++ {
		how := [...]string{1: "serial", 2: "parallel"}[workers]
		s.uniform[workers] = add(workload{name: "100,000 keys, uniform, " + how, keys: z.keys, workers: workers},
			slices.Concat(everybody, []limiter{headgateCoarse, s.openCoarse, s.shardedCoarse, throughGate})...)
		s.zipf[workers] = add(workload{name: "100,000 keys, zipf, " + how, keys: z.keys, zipf: true, workers: workers}, everybody...)
		s.hot[workers] = add(workload{name: "one hot key, " + how, keys: 1, workers: workers}, everybody...)
	}
	s.refused[1] = add(workload{name: "one hot key, refused", keys: 1, quota: scarce, workers: 1}, everybody...)
	for _, l := range holders {
		s.list = append(s.list, rounds.Benchmark{Name: with(l, holds), Run: func() (rounds.Sample, error) { return holding(l, z.million) }})
	}
	for _, l := range sweepers {
		s.list = append(s.list, rounds.Benchmark{Name: with(l, sweeps), Run: func() (rounds.Sample, error) { return sweeping(l, z.million) }})
	}
	return s
}
