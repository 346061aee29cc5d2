package membench

import (
	"math"
	"runtime"
	"strconv"
	"time"

	"github.com/headgate-go/headgate/internal/bench/rounds"
)

// heap returns the bytes that are really in use.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// fill asks about n new keys once each. Their names are the limiter's to keep or to forget.
func fill(t take, n int) {
	for i := range n {
		t("tenant-" + strconv.Itoa(10_000_000+i))
	}
}

// holding measures what n keys cost: heap for each that is held, and the time of a collection.
func holding(l limiter, n int) (rounds.Sample, error) {
	before := heap()
	o := l.open(scarce)
	defer o.close()
	fill(o.taker(), n)
	held := n
	if o.size != nil {
		held = o.size() // of a bounded store a little less
	}
	bytes := (heap() - before) / float64(held)
	var collections []float64
	for range 3 {
		start := time.Now()
		runtime.GC()
		collections = append(collections, float64(time.Since(start).Microseconds())/1000)
	}
	runtime.KeepAlive(o.taker)
	return rounds.Sample{"bytes": bytes, "gc": rounds.Median(collections)}, nil
}

// sweeping asks about one key, again and again, while n others become idle and are swept. It measures the slowest call,
// how much of the heap comes back within two windows, and, where a limiter can tell, after how many windows all are gone.
// On a machine so busy that the keys were not all there before the sweep began it has nothing to say.
func sweeping(l limiter, n int) (rounds.Sample, error) {
	before := heap()
	o := l.open(brief)
	defer o.close()
	start, t := time.Now(), o.taker()
	fill(t, n)
	idle := time.Now()
	filled := heap()
	if time.Since(start) > sweepAt {
		return rounds.Sample{}, nil
	}
	var slowest time.Duration
	gone, i := math.NaN(), 0
	for last := time.Now(); last.Sub(idle) < 2*window; i++ {
		t("busy")
		now := time.Now()
		slowest, last = max(slowest, now.Sub(last)), now
		if o.size != nil && math.IsNaN(gone) && i%4096 == 0 {
			if o.size() <= 1 {
				gone = float64(now.Sub(idle)) / float64(window)
			}
			last = time.Now() // counting is no decision
		}
	}
	s := rounds.Sample{"slowest": float64(slowest.Microseconds()) / 1000, "back": (filled - heap()) / (filled - before)}
	if !math.IsNaN(gone) {
		s["gone"] = gone
	}
	runtime.KeepAlive(o.taker)
	return s, nil
}
