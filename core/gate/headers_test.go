package gate_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// exchange is a request of which the response's fields are kept; what is behind a gate may be another gate.
type exchange struct {
	gate.Call
	fields map[string]string
	status int
	inner  *gate.Gate
	met    *gate.Admission
}

func (x *exchange) Admission() *gate.Admission { return x.met }
func (x *exchange) Attach(a *gate.Admission)   { x.met = a }

func (x *exchange) SetHeader(name, value string) {
	if value == "" {
		delete(x.fields, name)
		return
	}
	x.fields[name] = value
}

func (x *exchange) Reject(status int, _ string, _ []byte) error {
	x.status = status
	return nil
}

func (x *exchange) Next() (gate.Result, error) {
	if g := x.inner; g != nil {
		x.inner = nil
		err := g.Serve(x)
		return gate.Result{Status: x.status}, err
	}
	x.status = 200
	return gate.Result{Status: 200}, nil
}

// serve runs one request through gates, the outer one first, and returns its fields.
func serve(t *testing.T, r gate.Call, outer, inner *gate.Gate) (map[string]string, int) {
	t.Helper()
	x := &exchange{Call: r, fields: map[string]string{}, inner: inner}
	if err := outer.Serve(x); err != nil {
		t.Fatal(err)
	}
	return x.fields, x.status
}

// bucket is a rule in a state: after some takings and a wait.
type bucket struct {
	rule  limit.Rule
	takes []int
	wait  time.Duration
	cost  int
}

func (b bucket) gate(t *testing.T, headers gate.HeaderSet) (g *gate.Gate, ask func() map[string]string) {
	at := newClock()
	cost := 0
	g = newGate(t, gate.Config{Headers: headers, Clock: at.now, Limiters: []gate.Limiter{
		gate.RequestRate{Name: "p", Limit: b.rule, Cost: func(gate.Request) int { return cost }},
	}})
	for _, cost = range b.takes {
		g.Admit(context.Background(), call("GET /x", "192.0.2.1"))
	}
	at.advance(b.wait)
	cost = b.cost
	return g, func() map[string]string {
		fields, _ := serve(t, call("GET /x", "192.0.2.1"), g, nil)
		delete(fields, "Cache-Control")
		return fields
	}
}

// Exact fractions: a value that is an integer must not become its neighbour.
func TestGoldenVectors(t *testing.T) {
	hundredBy10 := limit.PerSecond(10).WithBurst(100)
	by100 := limit.PerSecond(100)
	ten := limit.PerSecond(2).WithBurst(10)
	tests := []struct {
		name                                string
		b                                   bucket
		limit, remaining, reset, retryAfter string
		policy, state                       string
	}{
		{"allowed, T = 99", bucket{hundredBy10, nil, 0, 1}, "100", "99", "1", "", `"p";q=100;w=10`, `"p";r=99;t=10`},
		{"allowed, T = 0", bucket{hundredBy10, []int{99}, 0, 1}, "100", "0", "10", "", `"p";q=100;w=10`, `"p";r=0;t=1`},
		{"denied, T = 0.2", bucket{hundredBy10, []int{100}, 20 * time.Millisecond, 1}, "100", "0", "1", "1", `"p";q=100;w=10`, `"p";r=0;t=1`},
		{"burst of five seconds, T = 499", bucket{by100, nil, 0, 1}, "500", "499", "1", "", `"p";q=500;w=5`, `"p";r=499;t=5`},
		{"T = 250", bucket{by100, []int{249}, 0, 1}, "500", "250", "3", "", `"p";q=500;w=5`, `"p";r=250;t=3`},
		{"small burst", bucket{limit.PerSecond(10).WithBurst(5), nil, 0, 1}, "5", "4", "1", "", `"p";q=5;w=1`, `"p";r=4;t=1`},
		{"allowed, T = 3.5", bucket{ten, []int{10}, 2250 * time.Millisecond, 1}, "10", "3", "4", "", `"p";q=10;w=5`, `"p";r=3;t=2`},
		{"denied, T = 3.5, c = 7", bucket{ten, []int{10}, 1750 * time.Millisecond, 7}, "10", "3", "2", "2", `"p";q=10;w=5`, `"p";r=3;t=2`},
		{"denied, half a token a minute", bucket{limit.PerMinute(1).WithBurst(1), []int{1}, 30 * time.Second, 1}, "1", "0", "30", "30", `"p";q=1;w=60`, `"p";r=0;t=30`},
		{"an hour, T = 999", bucket{limit.PerHour(1000), nil, 0, 1}, "1000", "999", "4", "", `"p";q=1000;w=3600`, `"p";r=999;t=3597`},
		{"an hour, T = 0", bucket{limit.PerHour(1000), []int{1000}, 0, 1}, "1000", "0", "4", "4", `"p";q=1000;w=3600`, `"p";r=0;t=4`},
		{"cost above the capacity", bucket{hundredBy10, []int{50}, 0, 101}, "100", "50", "5", "", `"p";q=100;w=10`, `"p";r=50`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := map[string]string{
				"Ratelimit-Limit": tt.limit, "Ratelimit-Remaining": tt.remaining, "Ratelimit-Reset": tt.reset,
				"X-Ratelimit-Limit": tt.limit, "X-Ratelimit-Remaining": tt.remaining, "X-Ratelimit-Reset": tt.reset,
				"Ratelimit-Policy": tt.policy, "Ratelimit": tt.state,
			}
			if tt.retryAfter != "" {
				want["Retry-After"] = tt.retryAfter
			}
			_, ask := tt.b.gate(t, gate.HeadersStandard|gate.HeadersLegacy|gate.HeadersDraft)
			if got := ask(); !maps.Equal(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
			_, ask = tt.b.gate(t, gate.HeadersNone)
			if got := ask(); len(got) > 1 || got["Retry-After"] != tt.retryAfter {
				t.Errorf("without rate-limit fields: %v", got)
			}
		})
	}
}

// Each dialect sends its own fields and no other's.
func TestDialectsApart(t *testing.T) {
	for set, names := range map[gate.HeaderSet][]string{
		0:                    {"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset"},
		gate.HeadersStandard: {"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset"},
		gate.HeadersLegacy:   {"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
		gate.HeadersDraft:    {"Ratelimit", "Ratelimit-Policy"},
		gate.HeadersNone:     {},
	} {
		_, ask := bucket{rule: limit.PerSecond(10), cost: 1}.gate(t, set)
		got := ask()
		for _, name := range names {
			if got[name] == "" {
				t.Errorf("set %d: no %s", set, name)
			}
		}
		if len(got) != len(names) {
			t.Errorf("set %d: %v", set, got)
		}
	}
}

// Two gates on a request merge: the draft lists all, and on a refusal the state of those that refused.
func TestDraftOfTwoGates(t *testing.T) {
	at := newClock()
	limiters := func(names ...string) (list []gate.Limiter) {
		for _, name := range names {
			list = append(list, gate.RequestRate{Name: name, Limit: limit.PerMinute(60).WithBurst(2)})
		}
		return append(list, gate.RequestRate{Name: "dark-" + names[0], Limit: limit.PerDay(1), Mode: gate.Shadow},
			gate.RequestRate{Name: "free-" + names[0], Limit: limit.Unlimited()})
	}
	outer := newGate(t, gate.Config{Headers: gate.HeadersDraft, Clock: at.now, Limiters: limiters("a", "b")})
	inner := newGate(t, gate.Config{Headers: gate.HeadersDraft, Clock: at.now, Limiters: limiters("c")})
	const policies = `"a";q=2;w=2, "b";q=2;w=2, "c";q=2;w=2`
	r := call("GET /x", "192.0.2.1")
	got, _ := serve(t, r, outer, inner)
	if got["Ratelimit-Policy"] != policies || got["Ratelimit"] != `"a";r=1;t=1, "b";r=1;t=1, "c";r=1;t=1` {
		t.Errorf("allowed: %v", got)
	}
	inner.Take(context.Background(), "c", 1, "192.0.2.1")
	got, status := serve(t, r, outer, inner)
	if status != 429 || got["Ratelimit-Policy"] != policies || got["Ratelimit"] != `"c";r=0;t=1` {
		t.Errorf("refused: %d, %v", status, got)
	}
	if err := inner.SetMode("c", gate.Off); err != nil {
		t.Fatal(err)
	}
	if got, _ := serve(t, r, outer, inner); got["Ratelimit"] != `"a";r=0;t=1, "b";r=0;t=1` {
		t.Errorf("after the inner gate refused, the outer one must have its token back: %v", got)
	}
}

// An inner 503, and an inner gate without fields, take back what the outer gate announced in any dialect.
func TestInnerTakesBackEveryDialect(t *testing.T) {
	all := gate.HeadersStandard | gate.HeadersLegacy | gate.HeadersDraft
	inner := newGate(t, gate.Config{Headers: gate.HeadersNone, Store: brokenStore{errDown}, Logger: new(lines).logger(),
		Limiters: []gate.Limiter{gate.RequestRate{Limit: limit.PerSecond(1), OnStoreError: gate.FailClosed}}})
	outer := newGate(t, gate.Config{Headers: all, Limiters: []gate.Limiter{gate.RequestRate{Limit: limit.PerSecond(1)}}})
	got, status := serve(t, call("GET /x", "192.0.2.1"), outer, inner)
	if want := map[string]string{"Retry-After": "1", "Cache-Control": "no-store"}; status != 503 || !maps.Equal(got, want) {
		t.Errorf("%d, %v", status, got)
	}
}
