package gate_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
	"github.com/headgate-go/headgate/core/memory"
)

// shared is a store that a gate cannot tell from one on a server: it counts calls, takes its time, and fails when told.
type shared struct {
	driver.Store
	calls atomic.Int64
	mu    sync.Mutex
	err   error
	takes time.Duration
}

func newShared(t testing.TB) *shared {
	s := &shared{Store: memory.New()}
	t.Cleanup(func() { _ = s.Store.Close() })
	return s
}

func (s *shared) set(err error, takes time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.takes = err, takes
}

func (s *shared) Decide(ctx context.Context, now time.Time, batch []driver.Entry) error {
	s.calls.Add(1)
	s.mu.Lock()
	err, takes := s.err, s.takes
	s.mu.Unlock()
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return &driver.Error{Class: driver.ClassTimeout, Err: ctx.Err()}
		}
	}
	if err != nil {
		return err
	}
	return s.Store.Decide(ctx, now, batch)
}

// BR-064, BR-065 in small: a store that hangs costs a request the deadline, and once the breaker is open nothing.
func TestBR064_HangingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		var seen events
		s := newShared(t)
		s.set(nil, time.Hour)
		g := newGate(t, gate.Config{Store: s, Logger: log.logger(), Observer: &seen, StoreTimeout: 20 * time.Millisecond,
			Limiters: []gate.Limiter{gate.RequestRate{Name: "p", Limit: limit.PerSecond(1)}}})
		for i := range 200 {
			start := time.Now()
			if !g.Admit(context.Background(), call("GET /x", "192.0.2.1")).Allowed() {
				t.Fatal("refused")
			}
			want := 20 * time.Millisecond
			if i >= 10 {
				want = 0
			}
			if took := time.Since(start); took != want {
				t.Errorf("request %d took %v, want %v", i, took, want)
			}
		}
		open := 0
		for _, e := range seen.list {
			if e.Kind == gate.BreakerChanged && e.Breaker == "open" && driver.ClassOf(e.Err) == driver.ClassTimeout {
				open++
			}
		}
		if open != 1 {
			t.Errorf("%d events of an opening breaker", open)
		}
		s.set(nil, 0)
		for range 50 {
			<-time.After(100 * time.Millisecond)
			g.Admit(context.Background(), call("GET /x", "192.0.2.1"))
		}
		d, _ := g.Admit(context.Background(), call("GET /x", "192.0.2.1")).Decision("p")
		if d.Err != nil {
			t.Errorf("not enforced 5 s after the store is back: %v", d.Err)
		}
		if n := strings.Count(log.String(), "the store answers again"); n != 1 {
			t.Errorf("%d lines of recovery:\n%s", n, log.String())
		}
		if n := strings.Count(log.String(), "\n"); n > 10 {
			t.Errorf("%d lines for an outage of five seconds", n)
		}
	})
}

// FailLocal keeps limiting with this process's share, and a flapping store hands out no burst per flap.
func TestFailLocal(t *testing.T) {
	s := newShared(t)
	at := newClock()
	var seen events
	g := newGate(t, gate.Config{Store: s, Instances: 4, Clock: at.now, Logger: new(lines).logger(), Observer: &seen, Limiters: []gate.Limiter{
		gate.RequestRate{Name: "p", Limit: limit.PerSecond(8).WithBurst(40), OnStoreError: gate.FailLocal},
		gate.RequestRate{Name: "open", Limit: limit.PerSecond(8).WithBurst(1)},
	}})
	r := call("GET /x", "192.0.2.1")
	s.set(errDown, 0)
	if n := admitted(g, r, 100); n != 10 {
		t.Errorf("%d admitted locally, want 40/4", n)
	}
	e := seen.last(t)
	if d := e.Decisions[0]; d.Outcome != gate.OutcomeDenied || d.Err == nil || d.Limit != 10 || d.RetryAfter != 500*time.Millisecond {
		t.Errorf("refused locally: %+v", d)
	}
	if d := e.Decisions[1]; d.Outcome != gate.OutcomeFailOpen {
		t.Errorf("the other limiter: %v", d.Outcome)
	}
	at.advance(time.Second)
	if n := admitted(g, r, 100); n != 2 {
		t.Errorf("%d admitted a second later, want 8/4", n)
	}
	d, _ := g.Admit(context.Background(), r).Decision("p")
	if d.Outcome != gate.OutcomeDenied {
		t.Errorf("%v", d.Outcome)
	}
}

func TestFailLocalNeedsInstances(t *testing.T) {
	_, err := gate.New(gate.Config{Limiters: []gate.Limiter{gate.RequestRate{Name: "p", Limit: limit.PerSecond(1), OnStoreError: gate.FailLocal}}})
	if err == nil || !strings.Contains(err.Error(), `limiter "p": OnStoreError: FailLocal divides the limit by Config.Instances`) {
		t.Errorf("%v", err)
	}
}

// A hammering tenant whose next token is far away costs one call in two seconds; a cheaper request is asked for.
func TestRefusalMemory(t *testing.T) {
	s := newShared(t)
	at := newClock()
	var seen events
	g := newGate(t, gate.Config{Store: s, Clock: at.now, Observer: &seen, Limiters: []gate.Limiter{
		gate.RequestRate{Name: "p", Limit: limit.PerHour(1).WithBurst(10), Cost: func(r gate.Request) int { return r.Value("cost").(int) }},
		gate.RequestRate{Name: "dark", Limit: limit.PerHour(1).WithBurst(10), Mode: gate.Shadow},
	}})
	big, small := call("GET /x", "192.0.2.1", "cost", 6), call("GET /x", "192.0.2.1", "cost", 1)
	if n := admitted(g, big, 2); n != 1 {
		t.Fatalf("%d", n)
	}
	before := s.calls.Load()
	for range 400 {
		at.advance(10 * time.Millisecond)
		if n := admitted(g, big, 1); n != 0 {
			t.Fatal("admitted")
		}
	}
	if n := s.calls.Load() - before; n != 2 {
		t.Errorf("%d calls in 4 s, want 2", n)
	}
	at.advance(10 * time.Millisecond)
	admitted(g, big, 1)
	e := seen.last(t)
	if d := e.Decisions[0]; d.Outcome != gate.OutcomeDenied || d.Reason != gate.ReasonMemory || d.Limit != 10 || d.Remaining != 4 {
		t.Errorf("%+v", d)
	}
	if d := e.Decisions[1]; d.Outcome != gate.OutcomeSkipped {
		t.Errorf("the shadow limiter: %v", d.Outcome)
	}
	if n := admitted(g, small, 5); n != 4 {
		t.Errorf("%d small ones admitted, want the 4 tokens that are there", n)
	}
	if err := g.SetMode("p", gate.Shadow); err != nil {
		t.Fatal(err)
	}
	before = s.calls.Load()
	if n := admitted(g, big, 3); n != 3 || s.calls.Load() != before+3 {
		t.Errorf("in shadow: %d admitted with %d calls", n, s.calls.Load()-before)
	}
}

// BR-068: a client that left is charged, its handler is not run, and it is no failure of the store.
func TestBR068_ClientLeft(t *testing.T) {
	s := newShared(t)
	g := newGate(t, gate.Config{Store: s, Clock: newClock().now, Limiters: []gate.Limiter{gate.RequestRate{Name: "p", Limit: limit.PerDay(1).WithBurst(10)}}})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 3 {
		d, _ := g.Admit(ctx, call("GET /x", "192.0.2.1")).Decision("p")
		if d.Outcome != gate.OutcomeCanceled || d.Err != nil {
			t.Fatalf("%+v", d)
		}
	}
	d, _ := g.Admit(context.Background(), call("GET /x", "192.0.2.1")).Decision("p")
	if d.Remaining != 6 {
		t.Errorf("%d left, want 6: early aborts must not buy uncounted work", d.Remaining)
	}
}

// advised is a store with something to say.
type advised struct{ *shared }

func (advised) Advise(context.Context) []driver.Advice {
	return []driver.Advice{{Code: "redis-eviction", Text: "keys may be evicted"}}
}

func TestAdviceIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		g := newGate(t, gate.Config{Store: advised{newShared(t)}, Logger: log.logger(), Limiters: []gate.Limiter{gate.RequestRate{Limit: limit.PerSecond(1)}}})
		for range 5 {
			g.Admit(context.Background(), call("GET /x", "192.0.2.1"))
		}
		synctest.Wait()
		if n := strings.Count(log.String(), "code=redis-eviction"); n != 1 {
			t.Errorf("%d times:\n%s", n, log.String())
		}
	})
}

// BR-088: Fiber's prefork multiplies an in-process limit, and says so.
func TestBR088_PreforkWarning(t *testing.T) {
	t.Setenv("FIBER_PREFORK_CHILD", "1")
	var log lines
	newGate(t, gate.Config{Logger: log.logger(), Limiters: []gate.Limiter{gate.RequestRate{Limit: limit.PerSecond(1)}}})
	if !strings.Contains(log.String(), "code=memory-prefork") {
		t.Errorf("no warning: %s", log.String())
	}
}

// A window's share under FailLocal is a window of the same length.
func TestFailLocalWindow(t *testing.T) {
	for _, rule := range []limit.Rule{limit.Window(8, time.Hour), limit.Sliding(8, time.Hour), limit.Daily(8)} {
		g := newGate(t, gate.Config{Store: brokenStore{errDown}, Instances: 4, Logger: new(lines).logger(), Limiters: []gate.Limiter{
			gate.RequestRate{Name: "p", Limit: rule, OnStoreError: gate.FailLocal}}})
		if n := admitted(g, call("GET /", "192.0.2.1"), 5); n != 2 {
			t.Errorf("%v: %d of 5 admitted by one of four processes, want 2", rule, n)
		}
	}
}
