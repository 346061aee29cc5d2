package gate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
	"github.com/headgate-go/headgate/core/memory"
)

// leases is a store of slots that outlives processes, as a server does: its leases end by their own clock. It counts what it
// is told, and fails when it is told to.
type leases struct {
	mu       sync.Mutex
	held     driver.Slots
	err      error // of every call
	lostNews error // of decisions, after they were made
	count    toldOf
}

// toldOf counts what a store was told: decisions, calls to renew, and leases that were renewed and released.
type toldOf struct{ decides, renewals, renewed, released int }

func (s *leases) told() toldOf {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

func newLeases() *leases { return &leases{held: driver.Slots{}} }

func (s *leases) set(err, lostNews error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.lostNews = err, lostNews
}

func (s *leases) Decide(_ context.Context, _ time.Time, batch []driver.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count.decides++
	if s.err != nil {
		return s.err
	}
	now := time.Now().UnixMicro()
	for _, e := range batch {
		for i := range e.Claims {
			c := &e.Claims[i]
			held := s.held.Held(c.Rule.Capacity(), now)
			fits := held < c.Rule.Capacity()
			if fits && c.Cost > 0 {
				s.held.Take(c.Lease, now+c.LeaseFor.Microseconds())
			}
			c.Result = driver.SlotResult(c.Rule, c.Cost, held, fits && c.Cost > 0)
		}
	}
	return s.lostNews
}

func (s *leases) Apply(_ context.Context, _ time.Time, changes []driver.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	if changes[0].Kind == driver.Renew {
		s.count.renewals++
	}
	for i := range changes {
		c := &changes[i]
		switch c.Kind {
		case driver.Release:
			s.count.released++
			s.held.Release(c.Lease)
		case driver.Renew:
			s.count.renewed++
			c.Lost = !s.held.Renew(c.Lease, time.Now().UnixMicro()+c.LeaseFor.Microseconds())
		}
	}
	return nil
}

func (s *leases) Close() error { return nil }

// alive counts the leases that have not ended by themselves.
func (s *leases) alive() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held.Held(0, time.Now().UnixMicro())
}

func (s *leases) wants(t *testing.T, alive int) {
	t.Helper()
	synctest.Wait()
	if got := s.alive(); got != alive {
		t.Errorf("%d slots are taken, want %d", got, alive)
	}
}

func slots(n int) gate.ConcurrentRequests {
	return gate.ConcurrentRequests{Name: "slots", Max: n, Key: gate.Const("k")}
}

// eachStore runs a test with a store in the process and with one that is shared.
func eachStore(t *testing.T, test func(t *testing.T, store driver.Store)) {
	t.Run("in the process", func(t *testing.T) { test(t, memory.New()) })
	t.Run("shared", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { test(t, newShared(t)) }) })
}

var anyCall = call("POST /v1/routes", "192.0.2.1")

func admit(g *gate.Gate) *gate.Admission { return g.Admit(context.Background(), anyCall) }

func wantUsage(t *testing.T, g *gate.Gate, policy string, remaining int) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		d, err := g.Usage(context.Background(), policy, "k")
		if err != nil {
			t.Fatal(err)
		}
		if d.Remaining == remaining {
			return
		}
		if time.Now().After(deadline) { // slots in a shared store go back off the request's path
			t.Fatalf("%d left, want %d", d.Remaining, remaining)
		}
		<-time.After(time.Millisecond)
	}
}

// BR-137: what is left is what is left after this request.
func TestBR137_CountAfterTheAdd(t *testing.T) {
	eachStore(t, func(t *testing.T, store driver.Store) {
		g := newGate(t, gate.Config{Store: store, Limiters: []gate.Limiter{slots(3)}})
		var held []*gate.Admission
		for left := 2; left >= 0; left-- {
			a := admit(g)
			held = append(held, a)
			if d, _ := a.Decision("slots"); !a.Allowed() || d.Remaining != left || d.Limit != 3 || d.ResetAfter != time.Second {
				t.Errorf("%v with %d of %d left, want %d; reset %v", a, d.Remaining, d.Limit, left, d.ResetAfter)
			}
		}
		ref := admit(g).Refusal()
		if ref == nil {
			t.Fatal("four of three")
		}
		want := "Concurrent request limit exceeded: 3 requests in flight. Wait for one to finish; retry after 1s."
		if ref.Status != 429 || ref.LimitType != "concurrent_requests" || ref.RetryAfterSeconds() != 1 || ref.Message != want ||
			ref.Reason != gate.ReasonLimit || ref.Remaining != 0 {
			t.Errorf("refused with %+v", ref)
		}
		for _, a := range held {
			a.Done(nil)
		}
		wantUsage(t, g, "slots", 3)
	})
}

// BR-127: a second release is a no-op, whoever makes it.
func TestBR127_ReleasedTwice(t *testing.T) {
	eachStore(t, func(t *testing.T, store driver.Store) {
		var gauge slotGauge
		g := newGate(t, gate.Config{Store: store, Observer: &gauge, Limiters: []gate.Limiter{slots(2)}})
		a, b := admit(g), admit(g)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { a.Done(nil); a.Done(errors.New("late")) })
		}
		wg.Wait()
		wantUsage(t, g, "slots", 1)
		c := admit(g)
		if !c.Allowed() || admit(g).Allowed() {
			t.Error("the cap moved")
		}
		b.Done(nil)
		c.Done(nil)
		wantUsage(t, g, "slots", 2)
		gauge.wants(t, "returned", "returned", "returned")
	})
}

// slotGauge keeps the number of slots as an observer sees it.
type slotGauge struct {
	mu          sync.Mutex
	held, least int
	ends        []string
}

func (s *slotGauge) Observe(e gate.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Kind {
	case gate.LeaseStarted:
		s.held++
	case gate.LeaseEnded:
		s.held--
		s.least = min(s.least, s.held)
		s.ends = append(s.ends, e.End.String())
	}
}

func (s *slotGauge) wants(t *testing.T, ends ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != 0 || s.least < 0 || strings.Join(s.ends, " ") != strings.Join(ends, " ") {
		t.Errorf("%d held, %d at the least, ended %v, want %v", s.held, s.least, s.ends, ends)
	}
}

func TestRateAndSlotsAreOne(t *testing.T) {
	eachStore(t, func(t *testing.T, store driver.Store) {
		rate := gate.RequestRate{Name: "rate", Limit: limit.PerDay(1).WithBurst(3), Key: gate.Const("k")}
		inShadow := slots(1)
		inShadow.Name, inShadow.Mode = "dark", gate.Shadow
		g := newGate(t, gate.Config{Store: store, Limiters: []gate.Limiter{rate, slots(2), inShadow}})
		a, b := admit(g), admit(g)
		if d, _ := b.Decision("dark"); !b.Allowed() || d.Outcome != gate.OutcomeWouldDeny {
			t.Errorf("%v", b)
		}
		if c := admit(g); c.Refusal() == nil || c.Refusal().Policy != "slots" {
			t.Errorf("no slot: %v", c)
		}
		wantUsage(t, g, "rate", 1) // nothing was charged for that
		a.Done(nil)
		wantUsage(t, g, "dark", 1)
		if c := admit(g); !c.Allowed() {
			t.Errorf("%v", c)
		} else {
			c.Done(nil)
		}
		wantUsage(t, g, "slots", 1)
		if c := admit(g); c.Refusal() == nil || c.Refusal().Policy != "rate" {
			t.Errorf("no token: %v", c)
		}
		wantUsage(t, g, "slots", 1) // nor a slot taken for this
		wantUsage(t, g, "dark", 1)
		b.Done(nil)
		wantUsage(t, g, "slots", 2)
	})
}

func TestModeChangesWhileSlotsAreHeld(t *testing.T) {
	eachStore(t, func(t *testing.T, store driver.Store) {
		g := newGate(t, gate.Config{Store: store, Limiters: []gate.Limiter{slots(2)}})
		set := func(m gate.Mode) {
			if err := g.SetMode("slots", m); err != nil {
				t.Fatal(err)
			}
		}
		a := admit(g)
		set(gate.Off)
		free := admit(g)
		set(gate.Shadow)
		dark := admit(g)
		a.Done(nil)
		free.Done(nil)
		wantUsage(t, g, "slots", 1)
		set(gate.Enforce)
		dark.Done(nil)
		wantUsage(t, g, "slots", 2)
	})
}

func TestMaxFor(t *testing.T) {
	var log lines
	c := slots(1)
	c.Key = gate.Value("tenant")
	c.MaxFor = func(_ gate.Request, key string) (int, bool) {
		n, ok := map[string]int{"large": 3, "zero": 0, "wrong": -1}[key]
		return n, ok
	}
	g := newGate(t, gate.Config{Logger: log.logger(), Limiters: []gate.Limiter{c}})
	for tenant, want := range map[string]int{"large": 3, "zero": 1, "wrong": 1, "other": 1} {
		n := 0
		for g.Admit(context.Background(), call("GET /", "192.0.2.1", "tenant", tenant)).Allowed() {
			n++
		}
		if n != want {
			t.Errorf("%s holds %d, want %d", tenant, n, want)
		}
	}
	if !strings.Contains(log.String(), "cannot be a limit") {
		t.Errorf("no warning: %s", log.String())
	}
}

func TestTakeASlot(t *testing.T) {
	g := newGate(t, gate.Config{Logger: new(lines).logger(), Limiters: []gate.Limiter{slots(1)}})
	ctx := context.Background()
	a := g.Take(ctx, "slots", 1, "k")
	if !a.Allowed() || g.Take(ctx, "slots", 1, "k").Allowed() {
		t.Error("one of one")
	}
	if ref := g.Take(ctx, "slots", 2, "k").Refusal(); ref == nil || ref.Status != 500 {
		t.Errorf("a slot of cost 2: %+v", ref)
	}
	a.Settle("slots", 5)
	if a.Charge(ctx, "slots", 5) != nil {
		t.Error("slots have no cost to charge")
	}
	a.Done(nil)
	wantUsage(t, g, "slots", 1)
}

func TestBadConcurrentRequests(t *testing.T) {
	c := gate.ConcurrentRequests{Max: 0, LeaseTime: 100 * time.Microsecond, RetryAfter: -1, OnStoreError: gate.FailLocal, Jitter: 9}
	_, err := gate.New(gate.Config{Limiters: []gate.Limiter{c,
		gate.RequestRate{Limit: driver.NewSlots(3)}}})
	for _, want := range []string{
		`limiter "concurrent_requests": Max: 0 slots; 1 to 1000000000`,
		`limiter "concurrent_requests": LeaseTime: lease time 100us; whole milliseconds, 1ms to 744h0m0s`,
		`limiter "concurrent_requests": RetryAfter: -1ns; 0 is the default, 1s`,
		`limiter "concurrent_requests": OnStoreError: FailLocal divides the limit by Config.Instances`,
		`limiter "concurrent_requests": Jitter: 9`,
		`limiter "request_rate": Limit: slots are no rate; the limiter for them is ConcurrentRequests`,
	} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("no %q in:\n%v", want, err)
		}
	}
}
