package guard

import (
	"sync"
	"sync/atomic"
	"time"
)

// State is what a breaker lets through.
type State int32

// The states of a breaker.
const (
	Closed   State = iota // every call goes to the store
	Open                  // none does
	HalfOpen              // one at a time does, to see whether the store is back
)

var states = [...]string{"closed", "open", "half_open"}

// String returns the word used in telemetry.
func (s State) String() string { return states[s] }

// When the breaker opens: at half of the calls failing, of enough calls in the window, or at a run of failures (which
// catches the outage of a quiet service). How long it stays open before a probe, and how many probes close it.
const (
	windowSeconds = 10
	minCalls      = 20
	failureShare  = 2 // one in two
	failureRun    = 10
	firstOpen     = time.Second
	longestOpen   = 3 * time.Second
	// longestOpenPart is longestOpen for a part of a store. The probe that comes first after a failover may still be sent to the
	// node that is gone, which is how its client learns of the new one; the second is to be there within five seconds.
	longestOpenPart = 2 * time.Second
	openJitter      = 0.2
	closeAfter      = 3
)

// breaker counts calls and failures by the second. While closed, asking it costs one atomic load.
type breaker struct {
	state   atomic.Int32
	rand    func() float64
	longest time.Duration // that it stays open
	notify  func(State)   // called with mu held, in order

	mu      sync.Mutex
	window  [windowSeconds]struct{ second, calls, failures int64 }
	run     int // failures in a row
	open    time.Duration
	until   time.Time
	probing bool
	probed  int // successful probes
	start   time.Time
}

// allow says whether a call may go to the store, and whether it is a probe.
func (b *breaker) allow() (ok, probe bool) {
	if State(b.state.Load()) == Closed {
		return true, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch State(b.state.Load()) {
	case Closed:
		return true, false
	case Open:
		if time.Now().Before(b.until) {
			return false, false
		}
		b.probed = 0
		b.change(HalfOpen)
	}
	if b.probing {
		return false, false
	}
	b.probing = true
	return true, true
}

// record notes how a call ended that allow let through.
func (b *breaker) record(probe, failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if probe {
		b.recordProbe(failed)
		return
	}
	if State(b.state.Load()) != Closed {
		return // sent before it opened: already known to be bad
	}
	second := int64(time.Since(b.start) / time.Second)
	slot := &b.window[second%windowSeconds]
	if slot.second != second || slot.calls == 0 {
		slot.second, slot.calls, slot.failures = second, 0, 0
	}
	slot.calls++
	if !failed {
		b.run = 0
		return
	}
	slot.failures++
	b.run++
	if b.run >= failureRun || b.tooMany(second) {
		b.open = firstOpen
		b.trip()
	}
}

func (b *breaker) recordProbe(failed bool) {
	b.probing = false
	switch b.probed++; {
	case failed:
		b.open = min(2*b.open, b.longest)
		b.trip()
	case b.probed == closeAfter:
		b.window, b.run = [windowSeconds]struct{ second, calls, failures int64 }{}, 0
		b.change(Closed)
	}
}

// abandon takes note that a probe found out nothing.
func (b *breaker) abandon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probing = false
}

func (b *breaker) tooMany(second int64) bool {
	var calls, failures int64
	for _, slot := range b.window {
		if second-slot.second < windowSeconds {
			calls, failures = calls+slot.calls, failures+slot.failures
		}
	}
	return calls >= minCalls && failureShare*failures >= calls
}

func (b *breaker) trip() {
	// Jittered, so that the processes of a fleet do not all come back in the same moment.
	wait := float64(b.open) * (1 - openJitter/2 + openJitter*b.rand())
	b.until = time.Now().Add(time.Duration(wait))
	b.change(Open)
}

func (b *breaker) change(s State) {
	b.state.Store(int32(s))
	b.notify(s)
}
