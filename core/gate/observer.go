package gate

import (
	"context"
	"time"
)

// Observer is told what a gate does. Observe is called on the request's path, from many goroutines at a time: it must
// not block, and must not keep Request or Context after it returned.
type Observer interface {
	Observe(Event)
}

// EventKind says what an [Event] is about.
type EventKind uint8

const (
	// Decided: a request was decided and, in Serve, is over. One event per gate and request.
	Decided EventKind = iota + 1
	// LeaseEnded: a slot was given back or lost. One event for each LeaseStarted.
	LeaseEnded
	// BreakerChanged: the store's breaker opened or closed; the first is told when the gate is made, with a shared store.
	BreakerChanged
	// Sampled: the shedders measured this process.
	Sampled
	// SettingsChanged: modes or overrides changed.
	SettingsChanged
	// LeaseStarted: a slot is held from now on, also one in Shadow.
	LeaseStarted
)

// LeaseEnd says how a slot came to its end.
type LeaseEnd uint8

// The ends. Their words are the values of headgate.end in telemetry.
const (
	EndReturned LeaseEnd = iota // the handler was over, a stream included
	EndError                    // the handler failed: an error, or a status of 400 or more
	EndPanic                    // the handler panicked
	EndCanceled                 // the handler did not run, or what it did was for nothing
	EndLost                     // the lease ended while the handler ran: the store was away for too long
)

var leaseEnds = [...]string{"returned", "error", "panic", "canceled", "lost"}

// String returns the word used in telemetry.
func (e LeaseEnd) String() string { return name(leaseEnds[:], int(e)) }

// Event is something that happened in a gate. Fields that do not apply are zero; fields may be added.
type Event struct {
	Kind    EventKind
	Context context.Context // the request's
	Request Request
	Gate    string
	Store   string // the kind of store behind a decision: the name of its package, "memory", "goredisstore"
	Route   string // the matched template, "" where unknown
	// Start is when the gate began with the request, Duration how long the decision took without the handler, and
	// StoreDuration the part of it spent in the store. Of LeaseEnded, Duration is how long the slot was held.
	Start                   time.Time
	Duration, StoreDuration time.Duration
	Decisions               []Decision // in configuration order; the observer may keep it. Of a lease, its one
	Refusal                 *Refusal   // nil where the request passed
	// InnerRefused says that a gate further in refused the request: what was taken here went back.
	InnerRefused bool
	// Result is what became of the handler; zero where it did not run or panicked. Err is its error.
	Result   Result
	Panicked bool
	Err      error
	// End is how a lease ended.
	End LeaseEnd
	// Breaker is the state that the store's breaker changed to: "closed", "open" or "half_open".
	Breaker string
}

// Observers returns one observer that tells several, in order. Nil ones are left out.
func Observers(list ...Observer) Observer {
	kept := make(observers, 0, len(list))
	for _, o := range list {
		if o != nil {
			kept = append(kept, o)
		}
	}
	return kept
}

type observers []Observer

func (list observers) Observe(e Event) {
	for _, o := range list {
		o.Observe(e)
	}
}
