package membench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/headgate-go/headgate/internal/bench/rounds"
)

// workload is a way to ask a limiter.
type workload struct {
	name    string
	keys    int
	zipf    bool // some keys are asked for much more often than others
	quota   quota
	workers int
}

// orderLen is how many keys are drawn beforehand; then they come again in the same order.
const orderLen = 1 << 18

// orders are the numbers of the keys that each worker asks for.
func (w workload) orders() [][]uint32 {
	all := make([][]uint32, w.workers)
	for i := range all {
		rng := rand.New(rand.NewPCG(uint64(i), 7))
		draw := func() uint64 { return rng.Uint64N(uint64(w.keys)) }
		if w.zipf {
			draw = rand.NewZipf(rng, 1.1, 1, uint64(w.keys-1)).Uint64
		}
		all[i] = make([]uint32, orderLen)
		for j := range all[i] {
			all[i][j] = uint32(draw())
		}
	}
	return all
}

// keyNames are the keys by number, shuffled: how often one is asked for says nothing of its name.
func keyNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "tenant-" + strconv.Itoa(10_000_000+i)
	}
	rng := rand.New(rand.NewPCG(1, 7))
	rng.Shuffle(n, func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}

// chunk is how many decisions are made between two looks at the clock.
const chunk = 512

// worker is one goroutine's part of a run.
type worker struct {
	made, wrong int
	_           [48]byte // so that two workers do not share a line
}

func (w *worker) run(t take, want bool, names []string, order []uint32, d time.Duration) {
	for start, at := time.Now(), 0; time.Since(start) < d; at += chunk {
		for _, key := range order[at%orderLen : at%orderLen+chunk] {
			if t(names[key]) != want {
				w.wrong++
			}
		}
		w.made += chunk
	}
}

// run measures l after every key was asked for once. The time of a decision is the time that passed over the number of
// decisions of all workers.
func (w workload) run(l limiter, names []string, orders [][]uint32, d time.Duration) (rounds.Sample, error) {
	o := l.open(w.quota)
	defer o.close()
	takers := make([]take, w.workers)
	for i := range takers {
		takers[i] = o.taker()
	}
	for _, name := range names {
		takers[0](name)
	}
	runtime.GC() // what others left behind is not this one's to clear
	w.drive(takers, names, orders, d/8)

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	made, wrong, took := w.drive(takers, names, orders, d)
	runtime.ReadMemStats(&after)
	// What fails under contention is a figure, and its time counts in the peer's favour. Any other failure says that
	// something else was measured than was meant.
	if wrong > 0 && w.workers == 1 || wrong > made/2 {
		return nil, fmt.Errorf("membench: %d of %d decisions were not as expected", wrong, made)
	}
	return rounds.Sample{
		"ns":     float64(took.Nanoseconds()) / float64(made),
		"allocs": math.Round(1000*float64(after.Mallocs-before.Mallocs)/float64(made)) / 1000, // the runtime's own are no whole thousandth
		"wrong":  float64(wrong),
	}, nil
}

func (w workload) drive(takers []take, names []string, orders [][]uint32, d time.Duration) (made, wrong int, took time.Duration) {
	workers := make([]worker, len(takers))
	start := time.Now()
	if len(takers) == 1 {
		workers[0].run(takers[0], w.quota != scarce, names, orders[0], d)
	} else {
		var all sync.WaitGroup
		for i := range takers {
			all.Go(func() { workers[i].run(takers[i], w.quota != scarce, names, orders[i], d) })
		}
		all.Wait()
	}
	took = time.Since(start)
	for _, x := range workers {
		made, wrong = made+x.made, wrong+x.wrong
	}
	return made, wrong, took
}
