package memory_test

import (
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/memory"
)

var fastRule = driver.NewBucket(1, time.Second).WithBurst(1_000_000_000) // always admits, never full again
var slowRule = driver.NewBucket(1, 24*time.Hour)                         // refuses after the first

func subjects(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "api\x06tenant\x08" + strconv.Itoa(10_000_000+i)
	}
	return keys
}

// warm returns a store that holds every key, so that a benchmark measures hits.
func warm(b *testing.B, keys []string, rule driver.Rule) *memory.Store {
	s := memory.New()
	b.Cleanup(func() { s.Close() })
	batch := []driver.Entry{{Claims: []driver.Claim{{Policy: "tenant", Rule: rule, Cost: 1}}}}
	for _, k := range keys {
		batch[0].Claims[0].Subject = k
		decide(b, s, time.Time{}, batch)
	}
	return s
}

func BenchmarkHotKey(b *testing.B) {
	for _, bc := range []struct {
		name string
		rule driver.Rule
		now  time.Time
	}{
		{"allow/own clock", fastRule, time.Time{}},
		{"allow/given clock", fastRule, time.Now()},
		{"refuse/own clock", slowRule, time.Time{}},
		{"refuse/given clock", slowRule, time.Now()},
	} {
		b.Run(bc.name, func(b *testing.B) {
			keys := subjects(1)
			s := warm(b, keys, bc.rule)
			batch := []driver.Entry{{Claims: []driver.Claim{{Policy: "tenant", Subject: keys[0], Rule: bc.rule, Cost: 1}}}}
			b.ReportAllocs()
			for b.Loop() {
				decide(b, s, bc.now, batch)
			}
		})
	}
}

func BenchmarkWindows(b *testing.B) {
	for name, rule := range map[string]driver.Rule{
		"fixed":   driver.NewWindow(driver.KindFixed, 1_000_000_000, 24*time.Hour),
		"sliding": driver.NewWindow(driver.KindSliding, 1_000_000_000, 24*time.Hour),
		"daily":   driver.NewWindow(driver.KindDaily, 1_000_000_000, 0).In(berlin),
		"full":    driver.NewWindow(driver.KindSliding, 1, 24*time.Hour),
	} {
		b.Run(name, func(b *testing.B) {
			keys := subjects(1)
			s := warm(b, keys, rule)
			batch := []driver.Entry{{Claims: []driver.Claim{{Policy: "tenant", Subject: keys[0], Rule: rule, Cost: 1}}}}
			b.ReportAllocs()
			for b.Loop() {
				decide(b, s, time.Time{}, batch)
			}
		})
	}
}

func BenchmarkHotKeyParallel(b *testing.B) {
	keys := subjects(1)
	s := warm(b, keys, fastRule)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		batch := []driver.Entry{{Claims: []driver.Claim{{Policy: "tenant", Subject: keys[0], Rule: fastRule, Cost: 1}}}}
		for pb.Next() {
			decide(b, s, time.Time{}, batch)
		}
	})
}

func Benchmark100kKeys(b *testing.B) {
	keys := subjects(100_000)
	s := warm(b, keys, fastRule)
	batch := []driver.Entry{{Claims: []driver.Claim{{Policy: "tenant", Rule: fastRule, Cost: 1}}}}
	rng := rand.New(rand.NewPCG(1, 2))
	b.ReportAllocs()
	for b.Loop() {
		batch[0].Claims[0].Subject = keys[rng.Uint32N(100_000)]
		decide(b, s, time.Time{}, batch)
	}
}

func Benchmark100kKeysParallel(b *testing.B) {
	keys := subjects(100_000)
	s := warm(b, keys, fastRule)
	var worker atomic.Uint64
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		rng := rand.New(rand.NewPCG(1, worker.Add(1)))
		batch := []driver.Entry{{Claims: []driver.Claim{{Policy: "tenant", Rule: fastRule, Cost: 1}}}}
		for pb.Next() {
			batch[0].Claims[0].Subject = keys[rng.Uint32N(100_000)]
			decide(b, s, time.Time{}, batch)
		}
	})
}

func BenchmarkTwoClaims(b *testing.B) {
	keys := subjects(1)
	s := warm(b, keys, fastRule)
	batch := []driver.Entry{{Claims: []driver.Claim{
		{Policy: "tenant", Subject: keys[0], Rule: fastRule, Cost: 1},
		{Policy: "address", Subject: keys[0], Rule: fastRule, Cost: 1},
	}}}
	b.ReportAllocs()
	for b.Loop() {
		decide(b, s, time.Time{}, batch)
	}
}

// BenchmarkFlood is a new key every time in a full store whose keys are all in use: each one evicts.
func BenchmarkFlood(b *testing.B) {
	keys := subjects(1_000_000)
	s := memory.New(memory.WithMaxKeys(100_000))
	defer s.Close()
	rule := driver.NewBucket(1, time.Hour)
	batch := []driver.Entry{{Claims: []driver.Claim{{Policy: "tenant", Rule: rule, Cost: 1}}}}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		batch[0].Claims[0].Subject = keys[i]
		if i++; i == len(keys) {
			i = 0
		}
		decide(b, s, time.Time{}, batch)
	}
}

// BenchmarkMillionKeys reports what a key costs and how long a collection takes with a million of them: in a store made
// for that many, and in one made for more, whose tables may be at their emptiest.
func BenchmarkMillionKeys(b *testing.B) {
	for _, bound := range []int{1_000_000, 3_000_000} {
		b.Run("of "+strconv.Itoa(bound), func(b *testing.B) {
			for b.Loop() {
				before := heap()
				s := memory.New(memory.WithMaxKeys(bound))
				batch := []driver.Entry{{Claims: []driver.Claim{{Policy: "tenant", Rule: slowRule, Cost: 1}}}}
				for i := range 1_000_000 {
					batch[0].Claims[0].Subject = strconv.Itoa(i)
					decide(b, s, time.Time{}, batch)
				}
				b.ReportMetric(float64(heap()-before)/float64(s.Stats().Keys), "B/key")
				start := time.Now()
				runtime.GC()
				b.ReportMetric(float64(time.Since(start).Microseconds()), "us/GC")
				s.Close()
			}
		})
	}
}

// heap returns the bytes that are really in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

var clockSink int64

// BenchmarkClock is the floor under every decision on the store's own clock.
func BenchmarkClock(b *testing.B) {
	start := time.Now()
	for b.Loop() {
		clockSink += int64(time.Since(start))
	}
}
