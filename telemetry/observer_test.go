package telemetry_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// Every outcome is counted under its own word, with what belongs to it.
func TestOutcomes(t *testing.T) {
	gone, leave := context.WithCancel(context.Background())
	leave()
	one := func(l gate.RequestRate) gate.Config {
		l.Name = "p"
		if l.Limit == (limit.Rule{}) {
			l.Limit = limit.PerDay(1).WithBurst(1)
		}
		return gate.Config{Name: "api", Clock: clock, Limiters: []gate.Limiter{l}}
	}
	failed := func(c gate.Config, class driver.Class) gate.Config {
		c.Store, c.Clock, c.Instances = failing{class}, nil, 2
		return c
	}
	for _, tt := range []struct {
		name     string
		config   gate.Config
		ctx      context.Context
		requests int
		want     string // "outcome reason mode error.type" of the last request
	}{
		{"allowed", one(gate.RequestRate{}), nil, 1, "allowed - enforce -"},
		{"denied", one(gate.RequestRate{}), nil, 2, "denied limit enforce -"},
		{"would be denied", one(gate.RequestRate{Mode: gate.Shadow}), nil, 2, "would_deny limit shadow -"},
		{"never", one(gate.RequestRate{Cost: func(gate.Request) int { return 5 }}), nil, 1, "denied cost_exceeds_limit enforce -"},
		{"negative", one(gate.RequestRate{Cost: func(gate.Request) int { return -5 }}), nil, 1, "allowed invalid_cost enforce -"},
		{"no key", one(gate.RequestRate{Key: gate.Value("k")}), nil, 1, "allowed missing_key enforce -"},
		{"skipped", one(gate.RequestRate{Key: gate.Value("k"), OnMissingKey: gate.MissingKeySkip}), nil, 1, "skipped missing_key enforce -"},
		{"rejected", one(gate.RequestRate{Key: gate.Value("k"), OnMissingKey: gate.MissingKeyReject}), nil, 1, "rejected missing_key enforce -"},
		{"fail open", failed(one(gate.RequestRate{}), driver.ClassReadOnly), nil, 1, "fail_open - enforce readonly"},
		{"fail closed", failed(one(gate.RequestRate{OnStoreError: gate.FailClosed}), driver.ClassAuth), nil, 1, "fail_closed - enforce auth"},
		{"would fail closed", failed(one(gate.RequestRate{OnStoreError: gate.FailClosed, Mode: gate.Shadow}), driver.ClassAuth), nil, 1,
			"would_shed - shadow auth"},
		{"fail local", failed(one(gate.RequestRate{OnStoreError: gate.FailLocal}), driver.ClassTimeout), nil, 1, "fail_local - enforce timeout"},
		{"unheard of", failed(one(gate.RequestRate{}), "a class of its own"), nil, 1, "fail_open - enforce other"},
		{"canceled", one(gate.RequestRate{}), gone, 1, "canceled - enforce -"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			g := b.gate(tt.config)
			ctx := tt.ctx
			if ctx == nil {
				ctx = context.Background()
			}
			before := map[string]int64{}
			for i := range tt.requests {
				g.Admit(ctx, gate.Call{Operation: "GET /x", Addr: "192.0.2.1"})
				var got []string
				for _, p := range points(t, b.collect()["headgate.decisions"]) {
					set := p.attributes
					word := func(key string) string {
						for _, a := range set.ToSlice() {
							if string(a.Key) == key {
								return a.Value.AsString()
							}
						}
						return "-"
					}
					text := fmt.Sprint(word("headgate.outcome"), " ", word("headgate.reason"), " ", word("headgate.mode"), " ", word("error.type"))
					if !has(set, "headgate.gate=api", "headgate.policy=p", "headgate.limit_type=request_rate", "http.route=unmatched") {
						t.Errorf("%v", set.ToSlice())
					}
					if p.value > before[text] {
						got = append(got, text)
					}
					before[text] = p.value
				}
				if i == tt.requests-1 && !slices.Equal(got, []string{tt.want}) {
					t.Errorf("%q, want %q", got, tt.want)
				}
			}
			outcome, _, _ := strings.Cut(tt.want, " ")
			if n := b.sum("headgate.decision.duration", "headgate.outcome="+outcome); n != 1 {
				t.Errorf("%d times recorded", n)
			}
		})
	}
}

// Nothing is lost and nothing is counted twice, whether a request is sampled or not, whether somebody collects now or late,
// and from many goroutines at once.
func TestNothingIsLost(t *testing.T) {
	b := newBench(t)
	g := b.gate(gate.Config{Name: "api", Routes: []string{"GET /a"}, Limiters: []gate.Limiter{
		gate.RequestRate{Name: "p", Limit: limit.Unlimited(), Cost: func(gate.Request) int { return 3 }}}})
	const goroutines, each = 4, 5000
	done := make(chan struct{})
	for n := range goroutines {
		go func() {
			for i := range each {
				ctx := context.Background()
				if i%10 == n {
					sampled, span := b.request()
					ctx = sampled
					span.End()
				}
				g.Admit(ctx, gate.Call{Operation: "GET /a", Addr: "192.0.2.1"})
				if i%1000 == 0 {
					b.collect()
				}
			}
			done <- struct{}{}
		}()
	}
	for range goroutines {
		<-done
	}
	const all = goroutines * each
	if n := b.sum("headgate.decisions", "headgate.outcome=allowed", "http.route=/a"); n != all {
		t.Errorf("%d decisions of %d", n, all)
	}
	if n := b.sum("headgate.cost", "headgate.policy=p", "headgate.outcome=allowed"); n != 3*all {
		t.Errorf("%d tokens of %d", n, 3*all)
	}
	if n := b.sum("headgate.decision.duration"); n != all {
		t.Errorf("%d durations of %d", n, all)
	}
}

// A request of several limiters is one decision for each, and one duration, of what became of the request.
func TestSeveralLimiters(t *testing.T) {
	b := newBench(t)
	g := b.gate(gate.Config{Name: "api", Clock: clock, Limiters: []gate.Limiter{
		gate.RequestRate{Name: "wide", Limit: limit.PerDay(10).WithBurst(10)},
		gate.RequestRate{Name: "narrow", Limit: limit.PerDay(1).WithBurst(1)},
	}})
	for range 3 {
		g.Admit(context.Background(), gate.Call{Operation: "GET /x", Addr: "192.0.2.1"})
	}
	for _, tt := range []struct {
		name string
		with []string
		want int64
	}{
		{"headgate.decisions", []string{"headgate.policy=wide", "headgate.outcome=allowed"}, 3},
		{"headgate.decisions", []string{"headgate.policy=narrow", "headgate.outcome=allowed"}, 1},
		{"headgate.decisions", []string{"headgate.policy=narrow", "headgate.outcome=denied"}, 2},
		{"headgate.decision.duration", []string{"headgate.outcome=allowed"}, 1},
		{"headgate.decision.duration", []string{"headgate.outcome=denied"}, 2},
	} {
		if n := b.sum(tt.name, tt.with...); n != tt.want {
			t.Errorf("%s %q: %d, want %d", tt.name, tt.with, n, tt.want)
		}
	}
}

// BR-101: mounted three times, a gate decides and is counted once; two gates are counted once each.
func TestBR101_CountedOnce(t *testing.T) {
	b := newBench(t)
	one := b.gate(gate.Config{Name: "one", Routes: []string{"/a/{id}"}, Limiters: []gate.Limiter{gate.RequestRate{Name: "p", Limit: limit.PerDay(10).WithBurst(10)}}})
	two := b.gate(gate.Config{Name: "two", Limiters: []gate.Limiter{gate.RequestRate{Name: "p", Limit: limit.PerDay(100).WithBurst(100)}}})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /a/{id}", func(http.ResponseWriter, *http.Request) {})
	for range 10 {
		serve(context.Background(), mux, "GET", "/a/7", nil, one, one, two, one)
	}
	for _, name := range []string{"one", "two"} {
		if n := b.sum("headgate.decisions", "headgate.gate="+name, "http.route=/a/{id}"); n != 10 {
			t.Errorf("gate %s: %d decisions of 10 requests", name, n)
		}
	}
}

// Slots: how many are held now, and how long each was, by the way it ended.
func TestLeases(t *testing.T) {
	b := newBench(t)
	event := func(kind gate.EventKind, ctx context.Context, policy string, end gate.LeaseEnd) {
		b.observer.Observe(gate.Event{Kind: kind, Context: ctx, Gate: "api", Duration: 2 * time.Second, End: end,
			Decisions: []gate.Decision{{Gate: "api", Policy: policy, LimitType: "concurrent_requests"}}})
	}
	sampled, span := b.request()
	defer span.End()
	for range 3 {
		event(gate.LeaseStarted, context.Background(), "solves", 0)
		event(gate.LeaseStarted, sampled, "solves", 0)
		event(gate.LeaseStarted, context.Background(), "uploads", 0)
	}
	if n := b.sum("headgate.leases.active", "headgate.policy=solves"); n != 6 {
		t.Errorf("%d slots are held, want 6", n)
	}
	ends := []gate.LeaseEnd{gate.EndReturned, gate.EndError, gate.EndPanic, gate.EndCanceled, gate.EndLost}
	for i, end := range ends {
		ctx := context.Background()
		if i%2 == 0 {
			ctx = sampled
		}
		event(gate.LeaseEnded, ctx, "solves", end)
	}
	if n := b.sum("headgate.leases.active", "headgate.policy=solves"); n != 1 {
		t.Errorf("%d slots are held, want 1", n)
	}
	if n := b.sum("headgate.leases.active", "headgate.policy=uploads"); n != 3 {
		t.Errorf("%d slots of another policy are held, want 3", n)
	}
	for _, end := range ends {
		if n := b.sum("headgate.lease.duration", "headgate.policy=solves", "headgate.end="+end.String()); n != 1 {
			t.Errorf("%v: %d durations, want 1", end, n)
		}
	}
}

// The slots of a real gate: held while the handler runs, and given back however it ends; of a refused request there is none.
func TestLeasesOfAGate(t *testing.T) {
	b := newBench(t)
	g := b.gate(gate.Config{Name: "api", Limiters: []gate.Limiter{gate.ConcurrentRequests{Name: "slots", Max: 1}}})
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(http.ResponseWriter, *http.Request) {
		if n := b.sum("headgate.leases.active", "headgate.policy=slots"); n != 1 {
			t.Errorf("%d slots are held in the handler", n)
		}
		if w := serve(context.Background(), mux, "GET", "/ok", nil, g); w.Code != http.StatusTooManyRequests {
			t.Errorf("a second request: status %d", w.Code)
		}
	})
	mux.HandleFunc("/bad", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	mux.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { panic("the handler's") })
	serve(context.Background(), mux, "GET", "/ok", nil, g)
	serve(context.Background(), mux, "GET", "/bad", nil, g)
	func() {
		defer func() { _ = recover() }()
		serve(context.Background(), mux, "GET", "/panic", nil, g)
	}()
	if n := b.sum("headgate.leases.active"); n != 0 {
		t.Errorf("%d slots are held afterwards", n)
	}
	for _, end := range []string{"returned", "error", "panic"} {
		if n := b.sum("headgate.lease.duration", "headgate.policy=slots", "headgate.end="+end); n != 1 {
			t.Errorf("%d slots ended as %s", n, end)
		}
	}
	if n := b.sum("headgate.decisions", "headgate.policy=slots", "headgate.limit_type=concurrent_requests", "headgate.outcome=denied"); n != 1 {
		t.Errorf("%d refusals", n)
	}
	if n := b.sum("headgate.cost"); n != 0 {
		t.Errorf("slots cost %d tokens", n)
	}
}

// The breaker is in one state at a time, for each gate.
func TestBreaker(t *testing.T) {
	b := newBench(t)
	g := b.gate(gate.Config{Name: "down", Store: failing{driver.ClassTimeout}, Limiters: []gate.Limiter{
		gate.RequestRate{Name: "p", Limit: limit.PerSecond(1)}}})
	if n := b.sum("headgate.store.breaker", "headgate.gate=down", "headgate.state=closed"); n != 1 {
		t.Error("a new gate's breaker is not closed")
	}
	for range 20 {
		g.Admit(context.Background(), gate.Call{Operation: "GET /x", Addr: "192.0.2.1"})
	}
	for _, state := range []string{"closed", "open", "half_open"} {
		b.observer.Observe(gate.Event{Kind: gate.BreakerChanged, Context: context.Background(), Gate: "other", Breaker: state})
		for _, tt := range []struct{ gate, current string }{{"down", "open"}, {"other", state}} {
			for _, s := range []string{"closed", "open", "half_open"} {
				want := int64(0)
				if s == tt.current {
					want = 1
				}
				if n := b.sum("headgate.store.breaker", "headgate.gate="+tt.gate, "headgate.state="+s); n != want {
					t.Errorf("gate %s is %s: state %s is %d, want %d", tt.gate, tt.current, s, n, want)
				}
			}
		}
	}
}
