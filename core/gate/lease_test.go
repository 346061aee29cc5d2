package gate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/core/gate"
)

// inBubble runs a test with a store of leases under virtual time, and a gate on it.
func inBubble(t *testing.T, test func(t *testing.T, g *gate.Gate, s *leases, log *lines), change ...func(*gate.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, log := newLeases(), new(lines)
		c := slots(2)
		c.LeaseTime = 30 * time.Second
		config := gate.Config{Store: s, Logger: log.logger(), Limiters: []gate.Limiter{c}}
		for _, f := range change {
			f(&config)
		}
		test(t, newGate(t, config), s, log)
	})
}

// BR-131: a request that runs for longer than its lease keeps its slot.
func TestBR131_LongerThanItsLease(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gate.Gate, s *leases, _ *lines) {
		a, b := admit(g), admit(g)
		for range 10 {
			<-time.After(9 * time.Second)
			if admit(g).Allowed() {
				t.Fatal("a slot was lost")
			}
		}
		a.Done(nil)
		s.wants(t, 1)
		c := admit(g)
		if !c.Allowed() {
			t.Error("no slot")
		}
		a.Done(nil)
		s.wants(t, 2)
		b.Done(nil)
		c.Done(nil)
		s.wants(t, 0)
		if told := s.told(); told.renewals > 11 || told.renewed < 16 {
			t.Errorf("%d leases renewed in %d calls in 90 s", told.renewed, told.renewals)
		}
	})
}

// Ten thousand long requests are one call of the store, not ten thousand: as many as fit a call.
func TestRenewalsAreBatched(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gate.Gate, s *leases, _ *lines) {
		var held []*gate.Admission
		for range 1000 {
			held = append(held, admit(g))
			<-time.After(time.Millisecond)
		}
		<-time.After(29 * time.Second)
		if told := s.told(); told.renewed < 2000 || told.renewals > 24 {
			t.Errorf("%d leases renewed in %d calls", told.renewed, told.renewals)
		}
		for _, a := range held {
			a.Done(nil)
		}
		s.wants(t, 0)
	}, func(c *gate.Config) { c.Limiters = []gate.Limiter{withLease(slots(1000), 30*time.Second)} })
}

func withLease(c gate.ConcurrentRequests, d time.Duration) gate.ConcurrentRequests {
	c.LeaseTime = d
	return c
}

// The store is away for longer than a lease, and somebody else takes the place: the request goes on, and it is told.
func TestLostLease(t *testing.T) {
	var gauge slotGauge
	inBubble(t, func(t *testing.T, g *gate.Gate, s *leases, _ *lines) {
		a := admit(g)
		s.set(errDown, nil)
		<-time.After(31 * time.Second)
		s.wants(t, 0) // its end is swept with that
		s.set(nil, nil)
		<-time.After(20 * time.Second)
		a.Done(nil)
		s.wants(t, 0)
		gauge.wants(t, "lost")
	}, func(c *gate.Config) { c.Observer = &gauge })
}

// The store is away for a shorter time than a lease: nobody notices.
func TestStoreAwayDuringRenewal(t *testing.T) {
	var gauge slotGauge
	inBubble(t, func(t *testing.T, g *gate.Gate, s *leases, _ *lines) {
		a := admit(g)
		s.set(errDown, nil)
		<-time.After(22 * time.Second)
		s.set(nil, nil)
		<-time.After(20 * time.Second)
		s.wants(t, 1)
		a.Done(nil)
		s.wants(t, 0)
		gauge.wants(t, "returned")
	}, func(c *gate.Config) { c.Observer = &gauge })
}

// A slot that cannot be given back at once is given back when the store answers again.
func TestReleaseIsRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gate.Gate, s *leases, log *lines) {
		a := admit(g)
		s.set(errDown, nil)
		a.Done(nil)
		<-time.After(10 * time.Second)
		s.set(nil, nil)
		<-time.After(5 * time.Second)
		s.wants(t, 0)
		if told := s.told(); told.released != 1 {
			t.Errorf("released %d times", told.released)
		}
		if strings.Contains(log.String(), "could not be given back") {
			t.Error(log.String())
		}
	})
}

func TestReleaseIsGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gate.Gate, s *leases, log *lines) {
		a := admit(g)
		s.set(errDown, nil)
		a.Done(nil)
		<-time.After(time.Minute)
		s.wants(t, 0) // by itself
		if !strings.Contains(log.String(), "could not be given back") {
			t.Errorf("no word of it: %s", log.String())
		}
	})
}

// A claim without an answer may have been executed, now or a little later: its slot is given back, twice.
func TestGhostLease(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gate.Gate, s *leases, _ *lines) {
		s.set(nil, errDown)
		a := admit(g)
		if d, _ := a.Decision("slots"); !a.Allowed() || d.Outcome != gate.OutcomeFailOpen {
			t.Fatalf("%v", a)
		}
		s.set(nil, nil)
		s.wants(t, 0)
		a.Done(nil)
		<-time.After(3 * time.Second)
		synctest.Wait()
		if told := s.told(); told.released != 2 {
			t.Errorf("released %d times, want 2", told.released)
		}
	})
}

// While the breaker is open nothing is sent, so nothing has to be given back either.
func TestNoGhostsWhileTheStoreIsDown(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gate.Gate, s *leases, _ *lines) {
		s.set(errDown, nil)
		for range 1000 {
			admit(g).Done(nil)
		}
		s.set(nil, nil)
		<-time.After(time.Minute)
		if told := s.told(); told.released > 100 {
			t.Errorf("released %d times after %d calls", told.released, told.decides)
		}
	})
}

func TestFailLocalSlots(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gate.Gate, s *leases, _ *lines) {
		s.set(errDown, nil)
		a := admit(g)
		if d, _ := a.Decision("slots"); !a.Allowed() || d.Outcome != gate.OutcomeFailLocal {
			t.Fatalf("%v", a)
		}
		if admit(g).Allowed() {
			t.Error("this process's share is one of two")
		}
		a.Done(nil)
		if b := admit(g); !b.Allowed() {
			t.Error("the slot did not come back")
		} else {
			b.Done(nil)
		}
	}, func(c *gate.Config) {
		l := slots(2)
		l.OnStoreError = gate.FailLocal
		c.Limiters, c.Instances = []gate.Limiter{l}, 2
	})
}

// BR-135: the client left. Its slot does not wait for anybody.
func TestBR135_ClientGone(t *testing.T) {
	var gauge slotGauge
	inBubble(t, func(t *testing.T, g *gate.Gate, s *leases, _ *lines) {
		ctx, cancel := context.WithCancel(context.Background())
		a := g.Admit(ctx, anyCall)
		cancel()
		a.Done(ctx.Err())
		s.wants(t, 0)
		a = g.Admit(ctx, anyCall) // left before the answer
		if d, _ := a.Decision("slots"); d.Outcome != gate.OutcomeCanceled {
			t.Errorf("%v", a)
		}
		s.wants(t, 0)
		a.Done(nil)
		gauge.wants(t, "error", "canceled")
	}, func(c *gate.Config) { c.Observer = &gauge })
}

// BR-136: a deploy leaves no slots behind, and takes none away from handlers that go on.
func TestBR136_Close(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gate.Gate, s *leases, _ *lines) {
		a := admit(g)
		time.AfterFunc(time.Second, func() { a.Done(nil) })
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		start := time.Now()
		if err := g.Close(ctx); err != nil || time.Since(start) != time.Second {
			t.Errorf("Close: %v after %v", err, time.Since(start))
		}
		s.wants(t, 0)
	})
	inBubble(t, func(t *testing.T, g *gate.Gate, s *leases, _ *lines) {
		a := admit(g)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		start := time.Now()
		if err := g.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 2*time.Second {
			t.Errorf("Close: %v after %v", err, time.Since(start))
		}
		s.wants(t, 1)
		<-time.After(27 * time.Second)
		s.wants(t, 1) // not before its time
		<-time.After(2 * time.Second)
		s.wants(t, 0) // and not renewed
		a.Done(nil)
	})
}

func TestUsageAndReset(t *testing.T) {
	ctx := context.Background()
	g := newGate(t, gate.Config{Logger: new(lines).logger(), Limiters: []gate.Limiter{slots(2)}})
	a := admit(g)
	wantUsage(t, g, "slots", 1)
	if err := g.Reset(ctx, "slots", "k"); err != nil {
		t.Fatal(err)
	}
	wantUsage(t, g, "slots", 2)
	a.Done(nil)
	wantUsage(t, g, "slots", 2)
	_, err := g.Usage(ctx, "slot", "k")
	for _, err := range []error{err, g.Reset(ctx, "slot", "k")} {
		if err == nil || !strings.Contains(err.Error(), `there is no policy "slot"; this gate has "slots"`) {
			t.Errorf("%v", err)
		}
	}
	_, err = g.Usage(ctx, "slots")
	for _, err := range []error{err, g.Reset(ctx, "slots", "a", "b")} {
		if err == nil || !strings.Contains(err.Error(), "key parts") {
			t.Errorf("%v", err)
		}
	}
	g = newGate(t, gate.Config{Store: brokenStore{errDown}, Logger: new(lines).logger(), Limiters: []gate.Limiter{slots(2)}})
	if _, err := g.Usage(ctx, "slots", "k"); !errors.Is(err, errDown) {
		t.Errorf("%v", err)
	}
	if err := g.Reset(ctx, "slots", "k"); err == nil || !strings.Contains(err.Error(), "driver.Inspector") {
		t.Errorf("%v", err)
	}
}
