package guard_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/internal/guard"
)

// store answers as it is told, after a while.
type store struct {
	mu    sync.Mutex
	calls int
	err   error
	takes time.Duration
	seen  context.Context
}

func (s *store) set(err error, takes time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.takes = err, takes
}

func (s *store) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func (s *store) Decide(ctx context.Context, _ time.Time, _ []driver.Entry) error {
	s.mu.Lock()
	s.calls++
	s.seen = ctx
	err, takes := s.err, s.takes
	s.mu.Unlock()
	timer := time.NewTimer(takes)
	defer timer.Stop()
	select {
	case <-timer.C:
		return err
	case <-ctx.Done():
		return &driver.Error{Class: driver.ClassTimeout, Err: ctx.Err()}
	}
}

func (s *store) Apply(ctx context.Context, now time.Time, _ []driver.Change) error {
	return s.Decide(ctx, now, nil)
}

func (s *store) Close() error { return errors.New("the guard closed a store that it was given") }

type valueKey struct{}

type kit struct {
	*guard.Store
	behind *store
	states []guard.State
	back   int
}

func newKit(o guard.Options) *kit {
	k := &kit{behind: &store{}}
	o.Rand = func() float64 { return 0.5 }
	o.Changed = func(s guard.State, _ error) { k.states = append(k.states, s) }
	o.Back = func() { k.back++ }
	k.Store = guard.New(k.behind, o)
	return k
}

func (k *kit) decide() error { return k.Decide(context.Background(), time.Time{}, nil) }

// A slow store costs a request its deadline and no more, whatever the request's own context says.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, o := range map[time.Duration]guard.Options{50 * time.Millisecond: {}, 20 * time.Millisecond: {Timeout: 20 * time.Millisecond}} {
			k := newKit(o)
			k.behind.set(nil, time.Hour)
			start := time.Now()
			err := k.decide()
			if got := time.Since(start); got != want || driver.ClassOf(err) != driver.ClassTimeout {
				t.Errorf("answered after %v with %v, want %v", got, err, want)
			}
		}
	})
}

// BR-068, BR-135: a client that leaves neither ends its decision nor counts as a failure.
func TestBR068_CancellationIsNotAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(guard.Options{})
		k.behind.set(nil, 5*time.Millisecond)
		ctx, cancel := context.WithCancel(context.WithValue(context.Background(), valueKey{}, "v"))
		cancel()
		for range 50 {
			if err := k.Decide(ctx, time.Time{}, nil); err != nil {
				t.Fatalf("a canceled request's decision failed: %v", err)
			}
		}
		if len(k.states) != 0 || k.behind.count() != 50 {
			t.Errorf("breaker %v after %d calls", k.states, k.behind.count())
		}
		if k.behind.seen.Value(valueKey{}) != "v" {
			t.Error("the context's values are lost")
		}
	})
}

// The deadline's context is one for stores that wait for Done, and for those that only ask when it is.
func TestDeadlineContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(guard.Options{})
		if err := k.decide(); err != nil {
			t.Fatal(err)
		}
		ctx := k.behind.seen
		if at, ok := driver.DeadlineOnly(ctx); !ok || time.Until(at) != 50*time.Millisecond || ctx.Err() != nil {
			t.Errorf("deadline in %v, %v, err %v", time.Until(at), ok, ctx.Err())
		}
		<-ctx.Done()
		if ctx.Err() != context.DeadlineExceeded {
			t.Errorf("err %v after the deadline", ctx.Err())
		}
	})
}

// Ten failures in a row open the breaker; then decisions fail at once with the class that opened it, one probe at a time
// goes out, and three good ones close it: within five seconds of the store's return.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(guard.Options{})
		down := &driver.Error{Class: driver.ClassLoading, Err: errors.New("loading")}
		k.behind.set(down, 0)
		for range 10 {
			if err := k.decide(); driver.ClassOf(err) != driver.ClassLoading {
				t.Fatal(err)
			}
		}
		if len(k.states) != 1 || k.states[0] != guard.Open {
			t.Fatalf("states %v after ten failures", k.states)
		}
		start, before := time.Now(), k.behind.count()
		for range 1000 {
			if err := k.decide(); driver.ClassOf(err) != driver.ClassLoading {
				t.Fatal(err)
			}
		}
		if time.Since(start) != 0 || k.behind.count() != before {
			t.Errorf("an open breaker took %v and asked %d times", time.Since(start), k.behind.count()-before)
		}
		// Open for 1 s, then 2 s, then 3 s at most; one probe each while it stays down.
		for _, open := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second} {
			before = k.behind.count()
			<-time.After(open - time.Millisecond)
			_ = k.decide()
			if k.behind.count() != before {
				t.Fatalf("asked before %v were over", open)
			}
			<-time.After(time.Millisecond)
			for range 5 {
				_ = k.decide()
			}
			if n := k.behind.count() - before; n != 1 {
				t.Fatalf("%d probes after %v, want 1", n, open)
			}
		}
		k.behind.set(nil, 0)
		back := time.Now()
		for time.Since(back) < 5*time.Second && k.states[len(k.states)-1] != guard.Closed {
			_ = k.decide()
			<-time.After(100 * time.Millisecond)
		}
		if k.states[len(k.states)-1] != guard.Closed || k.back != 1 {
			t.Errorf("5 s after the store is back: states %v, told %d times", k.states, k.back)
		}
	})
}

// Half of the calls failing opens it too, but not of a handful, and not when it was long ago.
func TestBreakerByShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("down")
		alternate := func(k *kit, n int, every time.Duration) {
			for i := range n {
				k.behind.set([]error{nil, down}[i%2], 0)
				_ = k.decide()
				<-time.After(every)
			}
		}
		few, many, slow := newKit(guard.Options{}), newKit(guard.Options{}), newKit(guard.Options{})
		alternate(few, 19, 0)
		alternate(many, 20, 0)
		alternate(slow, 40, time.Second) // 10 calls in any window
		if len(few.states) != 0 || len(many.states) != 1 || len(slow.states) != 0 {
			t.Errorf("19 calls %v, 20 calls %v, one a second %v", few.states, many.states, slow.states)
		}
	})
}

// One probe at a time, also while it hangs; and a probe that panics is not out for ever.
func TestOneProbeAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(guard.Options{})
		k.behind.set(errors.New("down"), 0)
		for range 10 {
			_ = k.decide()
		}
		<-time.After(time.Second)
		k.behind.set(nil, time.Hour)
		before := k.behind.count()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { _ = k.decide() })
		}
		all.Wait()
		if n := k.behind.count() - before; n != 1 {
			t.Errorf("%d probes at the same time", n)
		}
	})
}

// A flood of our own says nothing about the store.
func TestOverflowDoesNotFeedTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(guard.Options{})
		k.behind.set(&driver.Error{Class: driver.ClassOverflow, Err: errors.New("too many")}, 0)
		for range 1000 {
			if err := k.decide(); driver.ClassOf(err) != driver.ClassOverflow {
				t.Fatal(err)
			}
		}
		if len(k.states) != 0 || k.behind.count() != 1000 {
			t.Errorf("states %v after %d calls", k.states, k.behind.count())
		}
	})
}

// Corrections leave the caller's path, and Close waits for them.
func TestApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dropped []error
		k := newKit(guard.Options{Dropped: func(err error) { dropped = append(dropped, err) }})
		k.behind.set(nil, 10*time.Millisecond)
		start := time.Now()
		if err := k.Apply(context.Background(), time.Time{}, nil); err != nil || time.Since(start) != 0 {
			t.Errorf("Apply: %v after %v", err, time.Since(start))
		}
		if err := k.Close(); err != nil || time.Since(start) != 10*time.Millisecond || k.behind.count() != 1 {
			t.Errorf("Close: %v after %v, %d calls", err, time.Since(start), k.behind.count())
		}
		k.behind.set(nil, time.Hour)
		if err := k.Apply(context.Background(), time.Time{}, nil); err != nil {
			t.Error(err)
		}
		_ = k.Close()
		if len(dropped) != 1 || driver.ClassOf(dropped[0]) != driver.ClassTimeout {
			t.Errorf("dropped: %v", dropped)
		}
	})
}
