package gate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
	"github.com/headgate-go/headgate/core/memory"
)

// BR-071, BR-072: a failing store lets everything pass, is counted with the limiter and its class, invents no numbers, and
// is logged at most once a second.
func TestBR071_BR072_FailOpen(t *testing.T) {
	var log lines
	var seen events
	g := newGate(t, gate.Config{Store: brokenStore{errDown}, Logger: log.logger(), Observer: &seen, Limiters: []gate.Limiter{
		gate.RequestRate{Name: "a", Limit: limit.PerSecond(1)},
		gate.RequestRate{Name: "b", Limit: limit.PerSecond(1), Mode: gate.Shadow},
	}})
	if n := admitted(g, call("GET /x", "192.0.2.1"), 50); n != 50 {
		t.Errorf("%d of 50 passed", n)
	}
	decided := 0
	for _, e := range seen.list {
		if e.Kind == gate.Decided {
			decided++
		}
	}
	if decided != 50 {
		t.Errorf("%d decisions were told", decided)
	}
	for _, d := range seen.last(t).Decisions {
		if d.Outcome != gate.OutcomeFailOpen || !errors.Is(d.Err, errDown) || driver.ClassOf(d.Err) != driver.ClassTimeout {
			t.Errorf("%s: %v, %v", d.Policy, d.Outcome, d.Err)
		}
		if d.Limit != 0 || d.Remaining != 0 || d.ResetAfter != 0 {
			t.Errorf("invented numbers: %+v", d)
		}
	}
	if n := strings.Count(log.String(), "the store failed"); n < 1 || n > 3 {
		t.Errorf("%d lines for 50 failures:\n%s", n, log.String())
	}
	if !strings.Contains(log.String(), "class=timeout") {
		t.Errorf("the log does not name the class:\n%s", log.String())
	}
}

func TestFailClosed(t *testing.T) {
	g := newGate(t, gate.Config{Store: brokenStore{errDown}, Logger: new(lines).logger(), DocsURL: "https://docs.example.com/limits",
		Limiters: []gate.Limiter{
			gate.RequestRate{Name: "open", Limit: limit.PerSecond(1)},
			gate.RequestRate{Name: "closed", Limit: limit.PerSecond(1), OnStoreError: gate.FailClosed},
		}})
	ref := g.Admit(context.Background(), call("GET /x", "192.0.2.1")).Refusal()
	if ref == nil || ref.Status != 503 || ref.Policy != "closed" || ref.RetryAfterSeconds() != 1 || len(ref.Violated) != 1 ||
		ref.Message != "The limiter's store is unavailable. Retry after 1s. See https://docs.example.com/limits" {
		t.Errorf("%+v", ref)
	}
	if err := g.SetMode("closed", gate.Shadow); err != nil {
		t.Fatal(err)
	}
	a := g.Admit(context.Background(), call("GET /x", "192.0.2.1"))
	if d, _ := a.Decision("closed"); !a.Allowed() || d.Outcome != gate.OutcomeWouldShed || d.Err == nil {
		t.Errorf("in shadow: %v, %v", d.Outcome, d.Err)
	}
}

// After Close requests follow OnStoreError, whoever made the store; a store that was given stays open.
func TestBR084_UseAfterClose(t *testing.T) {
	given := memory.New()
	t.Cleanup(func() { _ = given.Close() })
	for name, c := range map[string]gate.Config{"own": {}, "given": {Store: given}} {
		c.Logger = new(lines).logger()
		c.Limiters = []gate.Limiter{
			gate.RequestRate{Name: "open", Limit: limit.PerDay(1).WithBurst(1)},
			gate.RequestRate{Name: "closed", Limit: limit.PerDay(1), OnStoreError: gate.FailClosed, Match: gate.Paths("/closed")},
		}
		g, err := gate.New(c)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := g.Close(context.Background()); err != nil {
				t.Errorf("%s: Close: %v", name, err)
			}
		}
		if n := admitted(g, call("GET /x", "192.0.2.1"), 3); n != 3 {
			t.Errorf("%s: %d of 3 passed after Close", name, n)
		}
		if ref := g.Admit(context.Background(), call("GET /closed", "192.0.2.1")).Refusal(); ref == nil || ref.Status != 503 {
			t.Errorf("%s: FailClosed after Close: %+v", name, ref)
		}
	}
	batch := []driver.Entry{{Claims: []driver.Claim{{Policy: "p", Subject: "s", Rule: limit.PerSecond(1), Cost: 1}}}}
	if err := given.Decide(context.Background(), newClock().now(), batch); err != nil {
		t.Errorf("the gate closed a store that it was given: %v", err)
	}
}

// BR-019: a negative cost is charged as 1 and counted.
func TestBR019_NegativeCost(t *testing.T) {
	var log lines
	cost := -3
	g := newGate(t, gate.Config{Clock: newClock().now, Logger: log.logger(), Limiters: []gate.Limiter{
		gate.RequestRate{Name: "p", Limit: limit.PerDay(1).WithBurst(5), Cost: func(gate.Request) int { return cost }},
	}})
	r := call("GET /x", "192.0.2.1")
	d, _ := g.Admit(context.Background(), r).Decision("p")
	if d.Cost != 1 || d.Remaining != 4 || d.Reason != gate.ReasonInvalidCost {
		t.Errorf("%+v", d)
	}
	cost = -1 << 63
	if n := admitted(g, r, 10); n != 4 {
		t.Errorf("%d more admitted, want 4", n)
	}
	if !strings.Contains(log.String(), "negative cost") {
		t.Errorf("not logged: %s", log.String())
	}
}

// BR-016, BR-018: a cost above the burst can never be admitted, and says so; a cost of 0 reads.
func TestBR016_BR018_Costs(t *testing.T) {
	cost := 6
	g := newGate(t, gate.Config{Clock: newClock().now, Limiters: []gate.Limiter{
		gate.RequestRate{Name: "p", Limit: limit.PerSecond(1).WithBurst(5), Cost: func(gate.Request) int { return cost }},
	}})
	r := call("GET /x", "192.0.2.1")
	ref := g.Admit(context.Background(), r).Refusal()
	if ref == nil || ref.Reason != gate.ReasonCost || ref.RetryAfterSeconds() != 0 || ref.Remaining != 5 ||
		ref.Message != "Request cost 6 exceeds the limit's capacity of 5. Retrying cannot succeed." {
		t.Errorf("%+v", ref)
	}
	for _, step := range []struct{ cost, remaining int }{{0, 5}, {5, 0}, {0, 0}} {
		cost = step.cost
		a := g.Admit(context.Background(), r)
		if d, _ := a.Decision("p"); !a.Allowed() || d.Remaining != step.remaining {
			t.Errorf("cost %d: %+v", cost, d)
		}
	}
	cost = 1
	if ref := g.Admit(context.Background(), r).Refusal(); ref == nil || ref.RetryAfterSeconds() != 1 {
		t.Errorf("%+v", ref)
	}
}

// Of several refusals one is reported: the longest wait; a cost that never fits counts as the longest.
func TestReportedRefusal(t *testing.T) {
	cost := 1
	g := newGate(t, gate.Config{Clock: newClock().now, Limiters: []gate.Limiter{
		gate.RequestRate{Name: "short", Limit: limit.PerSecond(1).WithBurst(1)},
		gate.RequestRate{Name: "long", Limit: limit.PerMinute(1).WithBurst(1)},
		gate.RequestRate{Name: "long-too", Limit: limit.PerMinute(1).WithBurst(1)},
		gate.RequestRate{Name: "small", Limit: limit.PerSecond(100).WithBurst(5), Cost: func(gate.Request) int { return cost }},
	}})
	r := call("GET /x", "192.0.2.1")
	admitted(g, r, 1)
	ref := g.Admit(context.Background(), r).Refusal()
	if ref.Policy != "long" || ref.RetryAfterSeconds() != 60 || len(ref.Violated) != 3 {
		t.Errorf("reported %q after %d s of %d", ref.Policy, ref.RetryAfterSeconds(), len(ref.Violated))
	}
	cost = 6
	if ref := g.Admit(context.Background(), r).Refusal(); ref.Policy != "small" || len(ref.Violated) != 4 {
		t.Errorf("reported %q of %d", ref.Policy, len(ref.Violated))
	}
}

// BR-160: jitter only ever adds, at most 20 % and one second, and Reset stays exact.
func TestBR160_Jitter(t *testing.T) {
	for random, want := range map[float64]int64{0: 10, 0.5: 11, 0.999: 12} {
		g := newGate(t, gate.Config{Clock: newClock().now, Rand: func() float64 { return random }, Limiters: []gate.Limiter{
			gate.RequestRate{Name: "p", Limit: limit.Per(1, 10e9).WithBurst(1), Jitter: gate.JitterOn},
		}})
		r := call("GET /x", "192.0.2.1")
		admitted(g, r, 1)
		ref := g.Admit(context.Background(), r).Refusal()
		if ref.RetryAfterSeconds() != want || ref.RetryAfter != 10e9 {
			t.Errorf("random %v: told %d s, exact %v; want %d", random, ref.RetryAfterSeconds(), ref.RetryAfter, want)
		}
	}
}
