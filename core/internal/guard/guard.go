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
	"sync/atomic"
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
	store   driver.Store
	o       Options
	breaker breaker
	last    atomic.Pointer[driver.Error] // what an open breaker answers: the latest failure, with its class
	failing atomic.Bool

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
	s := &Store{store: store, o: o, applying: make(chan struct{}, 64*runtime.GOMAXPROCS(0))}
	s.breaker = breaker{rand: o.Rand, start: time.Now(), notify: func(state State) {
		if o.Changed != nil {
			err := error(nil)
			if last := s.last.Load(); last != nil && state != Closed {
				err = last
			}
			o.Changed(state, err)
		}
	}}
	return s
}

// errOpen is a failure that did not reach the store.
var errOpen = errors.New("not asked, since it failed before")

// Decide asks the store, within the timeout and whatever becomes of ctx: a decision that a departed client could end would
// be work that nobody counts.
func (s *Store) Decide(ctx context.Context, now time.Time, batch []driver.Entry) error {
	return s.call(ctx, func(ctx context.Context) error { return s.store.Decide(ctx, now, batch) })
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
	return s.call(ctx, func(ctx context.Context) error { return s.store.Apply(ctx, now, changes) })
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

func (s *Store) call(ctx context.Context, f func(context.Context) error) (err error) {
	ok, probe := s.breaker.allow()
	if !ok {
		if last := s.last.Load(); last != nil {
			return last
		}
		return errOpen
	}
	done := false
	defer func() {
		if !done { // f panicked; the probe must not stay out for ever
			s.breaker.record(probe, true)
		}
	}()
	err = f(driver.WithDeadlineOnly(ctx, time.Now().Add(s.o.Timeout)))
	done = true
	if err == nil {
		s.breaker.record(probe, false)
		if s.failing.Load() && s.failing.CompareAndSwap(true, false) && s.o.Back != nil {
			s.o.Back()
		}
		return nil
	}
	class := driver.ClassOf(err)
	if class == driver.ClassOverflow || class == driver.ClassClosed {
		// Too much of us says nothing about the store: a flood must not switch the limiter off. The same for a call after
		// Close. A probe that could not be sent is not a success either.
		if probe {
			s.breaker.record(true, true)
		}
	} else {
		s.last.Store(&driver.Error{Class: class, Err: fmt.Errorf("%w: %w", errOpen, err)})
		s.failing.Store(true)
		s.breaker.record(probe, true)
	}
	return err
}
