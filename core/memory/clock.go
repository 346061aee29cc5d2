package memory

import (
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

const (
	// tickBits makes a tick of 2^17 us, 131 ms: 32 bits of them last 17 years.
	tickBits = 17
	// never is no tick at all.
	never = 1<<32 - 1
	// givenSlack is added to the life of state written at a given time.
	givenSlack = int64(time.Hour / time.Microsecond)
)

// clock is one reading: decisions go by now, the life of keys by since.
type clock struct {
	now   int64 // microseconds after 1970, 1..driver.MaxMicros
	since int64 // microseconds of real time since the store was made
	slack int64 // added to the life of what is written
}

// read reads the clock once per call. The store's own clock is its wall time at the start plus what the monotonic clock
// counted since: cheaper than the wall clock, and nobody can set it back.
func (s *Store) read(now time.Time) clock {
	since := max(0, time.Since(s.start).Microseconds())
	if now.IsZero() {
		return clock{now: min(s.base+since, driver.MaxMicros), since: since}
	}
	return clock{now: micros(now), since: since, slack: givenSlack}
}

// micros returns t in microseconds after 1970, cut to what a store's clock may say.
func micros(t time.Time) int64 {
	switch sec := t.Unix(); {
	case sec < 0:
		return 1
	case sec > driver.MaxMicros/1_000_000:
		return driver.MaxMicros
	default:
		return min(max(t.UnixMicro(), 1), driver.MaxMicros)
	}
}

// tick is the current tick.
func (c clock) tick() uint32 { return uint32(min(c.since>>tickBits, never-2-sweepEvery)) }

// freshAt returns the tick from which state that was read at the moment at, and equals a fresh key resetAfter later, may
// be dropped: rounded up, at least 1 (0 marks a free slot) and below never. The sum stays far below 2^63: resetAfter is at
// most 2^63 ns.
func (c clock) freshAt(at int64, resetAfter time.Duration) uint32 {
	life := at - c.now + int64(resetAfter/time.Microsecond) + c.slack
	return uint32(min(max((c.since+life+1<<tickBits-1)>>tickBits, 1), never-1))
}

// overAt is freshAt for a window in which cur admissions are counted: when its counts matter to no other window. All
// windows of a rule end together, and of keys that end together the bound must not drop the ones that are used up, or a
// flood of invented keys would hand them a new window: so up to a second is added, the more the fuller a window is.
func (c clock) overAt(l driver.WindowLevel, cur int64, rule driver.Rule) uint32 {
	const most = sweepEvery // in ticks; what the sweeper may add itself
	tick := c.freshAt(l.At, driver.Micros(l.Fresh(rule)))
	return min(tick+uint32(min(cur*most/int64(rule.Capacity()), most)), never-1)
}
