package membench

import (
	"hash/maphash"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// The floors do what a decision cannot do without: hash a key, find its cell, read a clock, do the arithmetic of one rule
// that is built in, and write one number. They forget nothing, check nothing, and know one rule.

// floorRule is a rule as a time per request and a tolerance, in nanoseconds.
type floorRule struct{ interval, tolerance int64 }

func newFloorRule(q quota) floorRule {
	if q == scarce {
		return floorRule{int64(24 * time.Hour), 0}
	}
	return floorRule{1000, 1000 * (most - 1)}
}

// decide answers at now from the time at which a cell is full again; ok says that next is to be written.
func (r floorRule) decide(full, now int64) (res driver.Result, next int64, ok bool) {
	full = max(full, now)
	room := r.tolerance - (full - now)
	if room < 0 {
		res.RetryAfter, res.ResetAfter = time.Duration(-room), time.Duration(full-now)
		return res, 0, false
	}
	next = full + r.interval
	res.Allowed, res.Remaining, res.ResetAfter = true, int(room/r.interval), time.Duration(next-now)
	return res, next, true
}

// tick is a clock.
type tick func() int64

// exact is the monotonic clock.
func exact() (t tick, stop func()) {
	start := time.Now()
	return func() int64 { return int64(time.Since(start)) + 1 }, nothing
}

// coarse is a clock of one millisecond, which a goroutine sets.
func coarse() (t tick, stop func()) {
	var now atomic.Int64
	start, done := time.Now(), make(chan struct{})
	now.Store(1)
	ticker := time.NewTicker(time.Millisecond)
	go func() {
		for {
			select {
			case <-ticker.C:
				now.Store(int64(time.Since(start)) + 1)
			case <-done:
				ticker.Stop()
				return
			}
		}
	}()
	return now.Load, func() { close(done) }
}

// openSlot is a cell that is changed without a lock.
type openSlot struct {
	hash atomic.Uint64
	full atomic.Int64
}

// openFloor is a fixed table without locks, twice as large as the keys that are put into it.
func openFloor(keys int, clock func() (tick, func())) func(q quota) opened {
	return func(q quota) opened {
		size := 1
		for size < 2*keys {
			size *= 2
		}
		slots, seed, rule := make([]openSlot, size), maphash.MakeSeed(), newFloorRule(q)
		now, stop := clock()
		o := shared(func(key string) bool {
			h := maphash.String(seed, key) | 1
			at := now()
			for i := h >> 32; ; i++ {
				slot := &slots[i&uint64(size-1)]
				if found := slot.hash.Load(); found != h {
					if found != 0 || !slot.hash.CompareAndSwap(0, h) && slot.hash.Load() != h {
						continue
					}
				}
				for {
					full := slot.full.Load()
					res, next, ok := rule.decide(full, at)
					if !ok || slot.full.CompareAndSwap(full, next) {
						return use(res)
					}
				}
			}
		})
		o.close = stop
		return o
	}
}

// shardedSlot is a cell under its shard's lock.
type shardedSlot struct {
	hash uint64
	full int64
}

type floorShard struct {
	mu    sync.Mutex
	slots []shardedSlot
	count int
	_     [24]byte // so that two locks do not share a line
}

// shardedFloor grows: a mutex and a table for each of 64 shards per processor.
func shardedFloor(clock func() (tick, func())) func(q quota) opened {
	return func(q quota) opened {
		n := 64
		for n < 64*runtime.GOMAXPROCS(0) {
			n *= 2
		}
		shards, seed, rule := make([]floorShard, n), maphash.MakeSeed(), newFloorRule(q)
		now, stop := clock()
		o := shared(func(key string) bool {
			h := maphash.String(seed, key) | 1<<63
			at := now()
			sh := &shards[h&uint64(n-1)]
			sh.mu.Lock()
			slot := sh.find(h)
			res, next, ok := rule.decide(slot.full, at)
			if ok {
				slot.full = next
			}
			sh.mu.Unlock()
			return use(res)
		})
		o.close = stop
		return o
	}
}

// find returns the cell of a hash, which may be new.
func (sh *floorShard) find(h uint64) *shardedSlot {
	for i := h >> 24; len(sh.slots) > 0; i++ {
		slot := &sh.slots[i&uint64(len(sh.slots)-1)]
		if slot.hash == h {
			return slot
		}
		if slot.hash == 0 {
			if sh.count*4 >= len(sh.slots)*3 {
				break
			}
			slot.hash = h
			sh.count++
			return slot
		}
	}
	old := sh.slots
	sh.slots, sh.count = make([]shardedSlot, max(16, 2*len(old))), 0
	for _, slot := range old {
		if slot.hash != 0 {
			*sh.find(slot.hash) = slot
		}
	}
	return sh.find(h)
}

// use keeps the compiler from leaving out what is not looked at.
//
//go:noinline
func use(res driver.Result) bool { return res.Allowed }
