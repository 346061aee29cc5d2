package redisbench

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/internal/bench/rounds"
)

// load is a closed loop: each caller asks for a decision, waits for it, and asks for the next, about a random key.
type load struct{ warm, measure time.Duration }

// caller is what one caller counts.
type caller struct {
	finished int // in the given time
	late     int // begun in it, finished after it
	took     histogram
	err      error
}

// run asks until time is up, at least once.
func (c *caller) run(over *atomic.Bool, seed uint64, keys int, decide func(key int) error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for {
		start := time.Now()
		if c.err = decide(rng.IntN(keys)); c.err != nil {
			return
		}
		if over.Load() {
			c.late++
			return
		}
		c.took.add(time.Since(start))
		c.finished++
	}
}

// drive lets all callers run for d.
func drive(decide []func(key int) error, keys int, d time.Duration) (sum caller, elapsed time.Duration) {
	var over atomic.Bool
	var running sync.WaitGroup
	callers := make([]caller, len(decide))
	start := time.Now()
	for i := range callers {
		running.Go(func() { callers[i].run(&over, uint64(i), keys, decide[i]) })
	}
	<-time.After(d)
	over.Store(true)
	elapsed = time.Since(start)
	running.Wait()
	for i := range callers {
		c := &callers[i]
		sum.finished += c.finished
		sum.late += c.late
		sum.took.merge(&c.took)
		if sum.err == nil {
			sum.err = c.err
		}
	}
	return sum, elapsed
}

// reader reads what the servers have spent.
type reader interface{ read() (spent, error) }

// run measures. Nothing is under way while the server is asked for its figures, so these and the allocations belong to
// exactly the decisions that they are shared out among; the rate counts those that were finished in time.
func (l load) run(m reader, decide []func(key int) error, keys int) (rounds.Sample, error) {
	if warm, _ := drive(decide, keys, l.warm); warm.err != nil {
		return nil, warm.err
	}
	var before, after runtime.MemStats
	first, err := m.read()
	if err != nil {
		return nil, err
	}
	runtime.ReadMemStats(&before)
	sum, elapsed := drive(decide, keys, l.measure)
	runtime.ReadMemStats(&after)
	if sum.err != nil {
		return nil, sum.err
	}
	last, err := m.read()
	if err != nil {
		return nil, err
	}
	used, all := last.minus(first), float64(sum.finished+sum.late)
	return rounds.Sample{
		"rate":      float64(sum.finished) / elapsed.Seconds(),
		"p50":       sum.took.quantile(0.50),
		"p99":       sum.took.quantile(0.99),
		"cpu":       used.cpu / all,
		"execution": used.execution / all,
		"share":     all / used.calls,
		// To a tenth: the runtime allocates now and then for itself.
		"allocs": math.Round(10*float64(after.Mallocs-before.Mallocs)/all) / 10,
	}, nil
}

// histogram counts times in classes that are at most a thirty-second apart.
type histogram [60 * 32]uint32

func (h *histogram) add(d time.Duration) {
	v := uint64(max(d, 0))
	shift := max(bits.Len64(v)-6, 0)
	h[shift*32+int(v>>shift)]++
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other {
		h[i] += n
	}
}

// quantile returns the time in microseconds below which the share q of all lies: the middle of its class.
func (h *histogram) quantile(q float64) float64 {
	total := 0.0
	for _, n := range h {
		total += float64(n)
	}
	seen := 0.0
	for i, n := range h {
		if seen += float64(n); n > 0 && seen >= q*total {
			shift := max(i/32-1, 0)
			return (float64(i-shift*32) + 0.5) * float64(uint64(1)<<shift) / 1000
		}
	}
	return 0
}
