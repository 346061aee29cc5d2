// Package guard keeps a store's trouble the store's: a deadline for every call, a breaker in front of a store that is
// down, and the request's cancellation kept apart from the decision's. It decorates any driver.Store.
package guard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// DefaultTimeout bounds a call where nothing else is said.
const DefaultTimeout = 50 * time.Millisecond

// Options of a guard.
type Options struct {
	Timeout time.Duration      // 0: DefaultTimeout
	Rand    func() float64     // nil: math/rand/v2
	Changed func(State, error) // told when the breaker changes, with the failure behind it; must not block
	Back    func()             // told the first success after failures
	Dropped func(err error)    // told every correction that could not be made
}

// Store is a guarded store.
type Store struct {
	store  driver.Store
	o      Options
	parted driver.Parted // nil: the store fails as a whole
	parts  []part

	mu   sync.Mutex
	told State // the worst of the parts, as it was told last

	applying chan struct{} // bounds Apply calls in flight
	pending  sync.WaitGroup
}

// New guards store.
func New(store driver.Store, o Options) *Store {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	s := &Store{store: store, o: o, parts: make([]part, 1), applying: make(chan struct{}, 64*runtime.GOMAXPROCS(0))}
	if parted, ok := store.(driver.Parted); ok && parted.Parts() > 1 {
		s.parted, s.parts = parted, make([]part, parted.Parts())
	}
	longest := longestOpen
	if s.parted != nil {
		longest = longestOpenPart
	}
	for i := range s.parts {
		p := &s.parts[i]
		p.breaker = breaker{rand: o.Rand, longest: longest, start: time.Now(), notify: func(State) { s.changed(p) }}
	}
	return s
}

// errOpen is a failure that did not reach the store.
var errOpen = errors.New("not asked, since it failed before")

// Decide asks the store, within the timeout and whatever becomes of ctx: a decision that a departed client could end would
// be work that nobody counts.
func (s *Store) Decide(ctx context.Context, now time.Time, batch []driver.Entry) error {
	return s.call(ctx, s.placesOf(batch), func(ctx context.Context) error { return s.store.Decide(ctx, now, batch) })
}

// Apply tells the store, off the caller's path. It returns at once; what could not be told is reported to Options.Dropped.
// The changes must not be used by the caller afterwards.
func (s *Store) Apply(ctx context.Context, now time.Time, changes []driver.Change) error {
	select {
	case s.applying <- struct{}{}:
	default:
		return &driver.Error{Class: driver.ClassOverflow, Err: errors.New("too many corrections in flight")}
	}
	s.pending.Add(1)
	go func() {
		defer func() { <-s.applying; s.pending.Done() }()
		err := s.Correct(ctx, now, changes)
		if err != nil && s.o.Dropped != nil {
			s.o.Dropped(err)
		}
	}()
	return nil
}

// Correct is Apply on the caller's own goroutine, with the store's answer.
func (s *Store) Correct(ctx context.Context, now time.Time, changes []driver.Change) error {
	if s.parted != nil {
		return s.correctParts(ctx, now, changes)
	}
	return s.call(ctx, 1, func(ctx context.Context) error { return s.store.Apply(ctx, now, changes) })
}

// Unsent says of an error of Decide that the store was not asked, or did not look at what it was asked.
func Unsent(err error) bool {
	class := driver.ClassOf(err)
	return errors.Is(err, errOpen) || class == driver.ClassOverflow || class == driver.ClassClosed
}

// Close waits for corrections on their way. It does not close the store, which somebody else made.
func (s *Store) Close() error {
	s.pending.Wait()
	return nil
}

// call asks some parts of the store, unless the breaker of one of them is open.
func (s *Store) call(ctx context.Context, places uint64, f func(context.Context) error) error {
	probes, refused := s.allow(places)
	if refused != nil {
		return refused
	}
	return s.through(ctx, places, probes, f)
}

// through makes a call that the breakers let through, and tells them how it ended.
func (s *Store) through(ctx context.Context, places, probes uint64, f func(context.Context) error) (err error) {
	done := false
	defer func() {
		if !done { // f panicked; the probes must not stay out for ever
			s.record(places, probes, places)
		}
	}()
	err = f(driver.WithDeadlineOnly(ctx, time.Now().Add(s.o.Timeout)))
	done = true
	if err == nil {
		s.succeeded(places, probes)
		return nil
	}
	class := driver.ClassOf(err)
	if class == driver.ClassOverflow || class == driver.ClassClosed {
		// Too much of us says nothing about the store: a flood must not switch the limiter off. The same for a call after
		// Close. A probe that could not be sent is not a success either.
		s.record(probes, probes, probes)
		return err
	}
	failed := driver.FailedParts(err) & places
	if failed == 0 {
		failed = places
	}
	s.failed(failed, &driver.Error{Class: class, Err: fmt.Errorf("%w: %w", errOpen, err)})
	s.record(failed, probes, failed)
	s.abandon(probes &^ failed)
	return err
}
