package memory

import (
	"runtime"
	"time"
	"weak"
)

// sweepEvery is the shortest time between two sweeps, in ticks: about a second, so that a key is gone two seconds after
// it equals a fresh one (that of a full window after three, see overAt), and a sweep of a million keys (some
// milliseconds) costs less than a percent of one processor.
const sweepEvery = 8

// sweepBy sees to it that a sweep comes when a key written now may be dropped at tick. Nearly always one is planned by
// then, and this is one comparison.
func (s *Store) sweepBy(tick uint32, clk clock) {
	if at := max(tick, clk.tick()+sweepEvery); at < s.wake.Load() {
		s.plan(at, clk.since)
	}
}

// plan arms the timer for tick at, unless it is armed for an earlier one.
func (s *Store) plan(at uint32, since int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() || at >= s.wake.Load() {
		return
	}
	s.wake.Store(at)
	in := time.Duration(int64(at)<<tickBits-since) * time.Microsecond
	if s.timer != nil {
		s.timer.Reset(in)
		return
	}
	// The timer knows the store only weakly, so that a store with day-long keys that is dropped without Close does not
	// live on for a day.
	ref := weak.Make(s)
	s.timer = time.AfterFunc(in, func() {
		if s := ref.Value(); s != nil {
			s.sweep()
		}
	})
}

// sweep drops what equals a fresh key and plans the next sweep for when the next key will; with no key left it plans
// none. A shard that holds none of those is asked for one number only.
func (s *Store) sweep() {
	// From here on a new key plans its own sweep, since this one may have passed its shard already.
	s.mu.Lock()
	s.wake.Store(never)
	s.mu.Unlock()

	now, next := s.read(time.Time{}).tick(), uint32(never)
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		sh.sweep(now)
		next = min(next, sh.low)
		sh.mu.Unlock()
		if len(s.shards) > 1 {
			runtime.Gosched() // on a single processor callers would wait for the whole sweep
		}
	}
	if next != never {
		clk := s.read(time.Time{})
		s.plan(max(next, clk.tick()+sweepEvery), clk.since)
	}
}

func (sh *shard) sweep(now uint32) {
	sh.dropFresh(now)
	switch {
	case sh.count == 0:
		sh.clear()
	case sh.count*4 < len(sh.slots) && len(sh.slots) > 512: // emptied by settlements
		sh.rebuild(fitting(sh.count), 0)
	}
}
