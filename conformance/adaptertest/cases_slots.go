package adaptertest

import (
	"fmt"
	"time"

	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

var holdRoute = Route{"GET", "/v1/hold", Hold}

// slotCases are what a client sees of limits on requests in flight.
var slotCases = []testCase{
	{"BR137_count_after_the_add",
		"a count that is read before the add is one too high: a client sees that one is left, and is refused",
		func(x *exam) {
			g := x.limit(slots(3))
			x.app(g, holdRoute)
			held := x.start(3, ask("GET /v1/hold"))
			x.holds(g, "slots", 3, 3)
			const policy = `"slots";q=3;qu="concurrent-requests"`
			x.send(ask("GET /v1/hold")).crowded(3, 1, 1).of("slots").draft(policy, `"slots";r=0`)
			x.outcomes(1, "slots denied (limit)")
			x.letGo(3)
			for i, p := range held {
				p.recorded().passed().budget(3, 2-i, 1).draft(policy, fmt.Sprintf(`"slots";r=%d`, 2-i))
			}
			x.frees(g, "slots", 0, 3)
			x.letGo(1)
			x.send(ask("GET /v1/hold")).passed().budget(3, 2, 1)
			x.ran(4)
		}},
	{"slots_tell_the_configured_wait",
		"when a slot becomes free nobody knows: clients get a constant, and no time in which to count on one",
		func(x *exam) {
			l := slots(1)
			l.RetryAfter, l.Jitter = 5*time.Second, gate.JitterOn
			g := x.gate(gate.Config{Limiters: []gate.Limiter{l}, Rand: func() float64 { return 0.9 }, DocsURL: "https://d.example.com"})
			x.app(g, holdRoute, Route{"HEAD", "/v1/hold", Hold})
			held := x.start(1, ask("GET /v1/hold"))
			get := x.send(ask("GET /v1/hold")).is(429).budget(1, 0, 5).has(fieldRetryAfter, "6").
				problemOf(limitTypeSlots, "rate_limit_error", 6).draft(`"slots";q=1;qu="concurrent-requests"`, `"slots";r=0`).
				says("Concurrent request limit exceeded: 1 requests in flight. Wait for one to finish; retry after 6s. See https://d.example.com")
			x.send(ask("HEAD /v1/hold")).is(429).budget(1, 0, 5).has(fieldRetryAfter, "6").text("").
				has("Content-Type", x.variant.contentType()).has("Content-Length", fmt.Sprint(len(get.body)))
			x.letGo(1)
			held[0].recorded().passed().budget(1, 0, 5)
		}},
	{"slots_beside_a_rate",
		"what one refuses, the other must not pay for; a client is told of the one that keeps it waiting longest",
		func(x *exam) {
			g := x.limit(perMinute("rate", 3), slots(1))
			x.app(g, holdRoute)
			const policies = `"rate";q=3;w=60, "slots";q=1;qu="concurrent-requests"`
			held := x.start(1, ask("GET /v1/hold"))
			x.send(ask("GET /v1/hold")).crowded(1, 1, 1).of("slots").draft(policies, `"slots";r=0`)
			x.outcomes(1, "rate allowed, slots denied (limit)")
			x.letGo(1)
			held[0].recorded().passed().budget(1, 0, 1).draft(policies, `"rate";r=2;t=40, "slots";r=0`)
			x.frees(g, "slots", 0, 1)
			held = x.start(1, ask("GET /v1/hold"))
			x.letGo(1)
			held[0].recorded().passed().draft(policies, `"rate";r=1;t=20, "slots";r=0`)
			x.frees(g, "slots", 0, 1)
			held = x.start(1, ask("GET /v1/hold"))
			x.send(ask("GET /v1/hold")).refused(3, 0, 20, 20).of("rate").draft(policies, `"rate";r=0;t=20, "slots";r=0`)
			x.letGo(1)
			held[0].reply().passed()
			x.frees(g, "slots", 0, 1)
			x.send(ask("GET /v1/hold")).refused(3, 0, 20, 20).of("rate").draft(policies, `"rate";r=0;t=20`)
			x.holds(g, "slots", 0, 1)
			x.ran(3)
		}},
	{"slots_on_trial",
		"in shadow nothing shows, and the slots that would be held are counted",
		func(x *exam) {
			l := slots(1)
			l.Mode = gate.Shadow
			g := x.limit(l)
			x.app(g, holdRoute)
			held := x.start(2, ask("GET /v1/hold"))
			x.holds(g, "slots", 1, 1)
			x.letGo(2)
			for _, p := range held {
				p.recorded().passed().untouched()
			}
			x.frees(g, "slots", 0, 1)
			x.events(2)
		}},
	{"slots_beyond_refusals",
		"a missing key and a store that is down are answered as of any limiter, in its name",
		func(x *exam) {
			tenant, down := slots(1), slots(1)
			tenant.Name, tenant.Key, tenant.OnMissingKey = "tenant", gate.Value(TenantValue), gate.MissingKeyReject
			down.Name, down.OnStoreError = "down", gate.FailClosed
			down.Match = gate.Paths("/v1/down")
			x.serve(Site{App: gates(x.limit(tenant)), Routes: []Route{textRoute, {"GET", "/v1/down", Write}},
				Group: gates(x.gate(gate.Config{Store: newSwitchStore(true), Limiters: []gate.Limiter{down}}))})
			x.send(ask("GET /v1/text")).is(400).silent().lacks(fieldRetryAfter).problemOf(limitTypeSlots, "invalid_request_error", 0).
				of("tenant").says(`The request carries no key for the limit "tenant".`)
			x.send(ask("GET /v1/text", TenantHeader, "a")).passed().budget(1, 0, 1)
			x.send(ask("GET /v1/down", TenantHeader, "b")).is(503).silent().has(fieldRetryAfter, "1").
				problemOf(limitTypeSlots, "overloaded_error", 1).of("down").says("The limiter's store is unavailable. Retry after 1s.")
			x.ran(1)
		}},
	{"slots_of_two_gates",
		"what an inner gate refuses holds nothing in the outer one; what passes both holds a slot of each",
		func(x *exam) {
			wide, narrow := slots(3), slots(1)
			wide.Name = "wide"
			outer, inner := x.limit(wide), x.limit(narrow)
			x.serve(Site{App: gates(outer), Group: gates(inner, inner), Routes: []Route{holdRoute}})
			const policies = `"wide";q=3;qu="concurrent-requests", "slots";q=1;qu="concurrent-requests"`
			held := x.start(1, ask("GET /v1/hold"))
			for range 3 {
				x.send(ask("GET /v1/hold")).crowded(1, 1, 1).of("slots").draft(policies, `"slots";r=0`)
				x.frees(outer, "wide", 1, 3)
			}
			x.letGo(1)
			held[0].recorded().passed().budget(1, 0, 1).draft(policies, `"wide";r=2, "slots";r=0`)
			x.frees(inner, "slots", 0, 1)
			x.frees(outer, "wide", 0, 3)
			if n := x.ended(gate.EndCanceled); n != 3 {
				x.failf("%d of the outer gate's slots ended as canceled; want 3", n)
			}
			x.balanced()
		}},
	{"BR145_exempt_holds_no_slot",
		"a probe that waits for a slot is answered by the orchestrator's axe; one that holds a slot takes it from users",
		func(x *exam) {
			g := x.gate(gate.Config{Exempt: []string{"/healthz"}, Limiters: []gate.Limiter{slots(2)}})
			x.app(g, Route{"GET", "/*", Hold})
			probes := x.start(3, ask("GET /healthz"))
			x.holds(g, "slots", 0, 2)
			held := x.start(2, ask("GET /v1/hold"))
			probes = append(probes, x.start(1, ask("GET /healthz"))...)
			for _, path := range []string{"/healthz2", "/healthz/", "/healthz/../v1", "//healthz"} {
				x.send(ask("GET "+path)).crowded(2, 1, 1)
			}
			x.letGo(6)
			for _, p := range probes {
				p.reply().passed().untouched()
			}
			held[0].recorded().passed().budget(2, 1, 1)
			held[1].recorded().passed().budget(2, 0, 1)
			x.frees(g, "slots", 0, 2)
			x.events(6)
		}},
	{"slots_of_plans",
		"a plan's own number of slots is what its customers are told",
		func(x *exam) {
			l := slots(1)
			l.Key = gate.Value(TenantValue)
			l.MaxFor = func(_ gate.Request, key string) (int, bool) { return 2, key == "large" }
			x.app(x.limit(l, gate.RequestRate{Name: "day", Limit: limit.PerDay(100)}), holdRoute)
			large := x.start(2, ask("GET /v1/hold", TenantHeader, "large"))
			small := x.start(1, ask("GET /v1/hold", TenantHeader, "small"))
			x.send(ask("GET /v1/hold", TenantHeader, "large")).crowded(2, 1, 1)
			x.send(ask("GET /v1/hold", TenantHeader, "small")).crowded(1, 1, 1)
			x.letGo(3)
			large[0].recorded().passed().budget(2, 1, 1)
			large[1].recorded().passed().budget(2, 0, 1)
			small[0].recorded().passed().budget(1, 0, 1)
		}},
}
