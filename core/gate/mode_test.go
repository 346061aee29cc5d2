package gate_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
	"github.com/headgate-go/headgate/core/memory"
)

// BR-162, BR-163: a limiter in shadow decides in full and changes nothing that a client can see; an enforced one beside
// it is told apart.
func TestBR162_BR163_Shadow(t *testing.T) {
	ten := limit.PerDay(1).WithBurst(10)
	var seen events
	g := newGate(t, gate.Config{Observer: &seen, Clock: newClock().now, Limiters: []gate.Limiter{
		gate.RequestRate{Name: "dark", Limit: ten, Mode: gate.Shadow},
	}})
	r := call("GET /x", "192.0.2.1")
	if n := admitted(g, r, 100); n != 100 {
		t.Fatalf("%d of 100 admitted in shadow", n)
	}
	would := 0
	for _, e := range seen.list {
		if d := e.Decisions[0]; d.Outcome == gate.OutcomeWouldDeny && d.Mode == gate.Shadow {
			would++
		}
		if e.Refusal != nil {
			t.Fatal("a shadow limiter refused")
		}
	}
	if would != 90 {
		t.Errorf("%d would-be refusals, want 90", would)
	}
	if err := g.SetMode("dark", gate.Enforce); err != nil {
		t.Fatal(err)
	}
	if n := admitted(g, r, 10); n != 0 {
		t.Errorf("%d admitted after the switch: the shadow's state is the limiter's own", n)
	}
}

// A shadow claim is charged only when the request is admitted, and an enforced refusal is counted once for each.
func TestShadowBesideEnforced(t *testing.T) {
	g := newGate(t, gate.Config{Clock: newClock().now, Limiters: []gate.Limiter{
		gate.RequestRate{Name: "dark", Limit: limit.PerDay(1).WithBurst(3), Mode: gate.Shadow},
		gate.RequestRate{Name: "live", Limit: limit.PerDay(1).WithBurst(2)},
	}})
	r := call("GET /x", "192.0.2.1")
	for i, want := range []struct {
		allowed    bool
		dark, live gate.Outcome
		left       int
	}{
		{true, gate.OutcomeAllowed, gate.OutcomeAllowed, 2},
		{true, gate.OutcomeAllowed, gate.OutcomeAllowed, 1},
		{false, gate.OutcomeAllowed, gate.OutcomeDenied, 1},
		{false, gate.OutcomeAllowed, gate.OutcomeDenied, 1},
	} {
		a := g.Admit(context.Background(), r)
		dark, _ := a.Decision("dark")
		live, _ := a.Decision("live")
		if a.Allowed() != want.allowed || dark.Outcome != want.dark || live.Outcome != want.live || dark.Remaining != want.left {
			t.Errorf("request %d: allowed %v, dark %v with %d left, live %v; want %+v", i, a.Allowed(), dark.Outcome, dark.Remaining, live.Outcome, want)
		}
		if ref := a.Refusal(); ref != nil && len(ref.Violated) != 1 {
			t.Errorf("violated: %+v", ref.Violated)
		}
	}
}

// BR-044, BR-045: settings are taken over entirely or not at all, and state outlives them.
func TestBR045_ApplyIsAllOrNothing(t *testing.T) {
	g := newGate(t, gate.Config{Clock: newClock().now, Limiters: []gate.Limiter{
		gate.RequestRate{Name: "a", Limit: limit.PerDay(1).WithBurst(2)},
		gate.RequestRate{Name: "b", Limit: limit.PerDay(1).WithBurst(5), Mode: gate.Shadow},
	}})
	r := call("GET /x", "192.0.2.1")
	if n := admitted(g, r, 4); n != 2 {
		t.Fatalf("%d admitted", n)
	}
	for _, bad := range []gate.Settings{
		{Modes: map[string]gate.Mode{"a": gate.Off, "nobody": gate.Off}},
		{Modes: map[string]gate.Mode{"a": gate.Off, "b": 7}},
		{Modes: map[string]gate.Mode{"a": gate.Off}, Overrides: []gate.Override{{Policy: "a"}}},
	} {
		if err := g.Apply(bad); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
		if n := admitted(g, r, 1); n != 0 {
			t.Fatalf("a refused change took effect: %+v", bad)
		}
	}
	if err := g.SetMode("nobody", gate.Off); err == nil || !strings.Contains(err.Error(), `there is no policy "nobody"; this gate has "a", "b"`) {
		t.Errorf("SetMode of an unknown policy: %v", err)
	}
	for step, s := range []struct {
		settings gate.Settings
		allowed  int
	}{
		{gate.Settings{Modes: map[string]gate.Mode{"a": gate.Shadow}}, 1},
		{gate.Settings{Modes: map[string]gate.Mode{gate.All: gate.Off}}, 1},
		{gate.Settings{Modes: map[string]gate.Mode{gate.All: gate.Off, "a": gate.Enforce}}, 0},
		{gate.Settings{}, 0}, // what was configured, with the counters as they were
	} {
		if err := g.Apply(s.settings); err != nil {
			t.Fatal(err)
		}
		if n := admitted(g, r, 1); n != s.allowed {
			t.Errorf("step %d: %d admitted, want %d", step, n, s.allowed)
		}
	}
}

// The kill switch reaches every policy, also one that was switched by itself before.
func TestSetModeAll(t *testing.T) {
	g := newGate(t, gate.Config{Limiters: []gate.Limiter{gate.RequestRate{Name: "a", Limit: limit.PerDay(1).WithBurst(1)}}})
	if err := g.SetMode("a", gate.Enforce); err != nil {
		t.Fatal(err)
	}
	if err := g.SetMode(gate.All, gate.Off); err != nil {
		t.Fatal(err)
	}
	r := call("GET /x", "192.0.2.1")
	if n := admitted(g, r, 5); n != 5 {
		t.Errorf("%d of 5 admitted with everything off", n)
	}
	if got := g.Admit(context.Background(), r).Decisions(); len(got) != 0 {
		t.Errorf("off decides: %+v", got)
	}
}

// BR-040: four gates on one store, 500 callers, a limit of 25.
func TestBR040_ExactUnderContention(t *testing.T) {
	store := memory.New()
	t.Cleanup(func() { _ = store.Close() })
	at := newClock()
	gates := make([]*gate.Gate, 4)
	for i := range gates {
		gates[i] = newGate(t, gate.Config{Name: "api", Store: store, Clock: at.now, Limiters: []gate.Limiter{
			gate.RequestRate{Name: "tenant", Limit: limit.PerHour(1).WithBurst(25), Key: gate.Value("tenant")},
		}})
	}
	for round := range 50 {
		r := call("POST /v1/routes", "192.0.2.1", "tenant", round)
		var barrier, done sync.WaitGroup
		var mu sync.Mutex
		total := 0
		barrier.Add(1)
		for i := range 500 {
			done.Go(func() {
				barrier.Wait()
				if gates[i%len(gates)].Admit(context.Background(), r).Allowed() {
					mu.Lock()
					total++
					mu.Unlock()
				}
			})
		}
		barrier.Done()
		done.Wait()
		if total != 25 {
			t.Fatalf("round %d: %d admitted, want exactly 25", round, total)
		}
	}
}

// BR-048: limiters and gates do not feed each other's counters, but gates of one name do.
func TestBR048_CountersApart(t *testing.T) {
	store := memory.New()
	t.Cleanup(func() { _ = store.Close() })
	at := newClock()
	make := func(name string) *gate.Gate {
		return newGate(t, gate.Config{Name: name, Store: store, Clock: at.now, Limiters: []gate.Limiter{
			gate.RequestRate{Name: "second", Limit: limit.PerSecond(10).WithBurst(10)},
			gate.RequestRate{Name: "hour", Limit: limit.PerHour(30)},
		}})
	}
	a, replica, other := make("a"), make("a"), make("b")
	r := call("GET /x", "192.0.2.1")
	for i := range 10 {
		d, _ := a.Admit(context.Background(), r).Decision("hour")
		if d.Remaining != 29-i {
			t.Errorf("request %d: %d left in the hour, want %d", i, d.Remaining, 29-i)
		}
		at.advance(300 * time.Millisecond)
	}
	if d, _ := replica.Admit(context.Background(), r).Decision("hour"); d.Remaining != 19 {
		t.Errorf("a replica sees %d left, want 19", d.Remaining)
	}
	if d, _ := other.Admit(context.Background(), r).Decision("hour"); d.Remaining != 29 {
		t.Errorf("a gate of another name sees %d left, want 29", d.Remaining)
	}
}

// BR-149: a request that one limiter refuses is charged in none.
func TestBR149_RefusedIsChargedNowhere(t *testing.T) {
	hour := gate.RequestRate{Name: "hour", Limit: limit.PerHour(30)}
	minute := gate.RequestRate{Name: "minute", Limit: limit.PerMinute(10)}
	for _, order := range [][]gate.Limiter{{hour, minute}, {minute, hour}} {
		at := newClock()
		g := newGate(t, gate.Config{Clock: at.now, Limiters: order})
		r := call("GET /x", "192.0.2.1")
		n := admitted(g, r, 31)
		d, _ := g.Admit(context.Background(), r).Decision("hour")
		if n != 10 || d.Remaining != 20 {
			t.Errorf("%d admitted and %d left in the hour, want 10 and 20", n, d.Remaining)
		}
	}
}
