package adaptertest

import (
	"context"

	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

var storeCases = []testCase{
	{"BR072_store_down_fails_open",
		"a store's outage stays the store's: the handler's own response, no invented numbers, and it is seen",
		func(x *exam) {
			store := newSwitchStore(true)
			x.app(x.gate(gate.Config{Store: store, Limiters: []gate.Limiter{perMinute("client", 1)}}), textRoute, Route{"GET", "/v1/broken", Broken})
			x.send(ask("GET /v1/text")).passed().untouched()
			x.send(ask("GET /v1/broken")).is(500).text("broken\n").untouched()
			x.outcomes(2, "client fail_open")
			store.broken.Store(false)
			x.send(ask("GET /v1/text")).passed().budget(1, 0, 60)
			x.try(ask("GET /v1/text")).refused(1, 0, 60, 60)
			x.ran(3)
		}},
	{"store_down_fails_closed",
		"who chose to fail closed answers 503 with no numbers: they would disclose capacity, and there are none",
		func(x *exam) {
			l := perMinute("client", 1)
			l.OnStoreError = gate.FailClosed
			x.app(x.gate(gate.Config{Store: newSwitchStore(true), DocsURL: "https://d.example.com", Limiters: []gate.Limiter{l}}),
				textRoute, Route{"HEAD", "/v1/text", Write})
			x.send(ask("GET /v1/text")).is(503).silent().has(fieldRetryAfter, "1").
				problem("overloaded_error", 1).of("client").
				says("The limiter's store is unavailable. Retry after 1s. See https://d.example.com")
			x.send(ask("HEAD /v1/text")).is(503).text("").has(fieldRetryAfter, "1").has("Cache-Control", "no-store")
			x.outcomes(2, "client fail_closed")
			x.ran(0)
		}},
	{"closed_gate_follows_its_policy",
		"requests that come while a process shuts down are served as with a store that is down",
		func(x *exam) {
			g := x.limit(perMinute("client", 1))
			x.app(g)
			x.try(ask("GET /v1/text")).passed().budget(1, 0, 60)
			if err := g.Close(context.Background()); err != nil {
				x.failf("Close: %v", err)
			}
			x.try(ask("GET /v1/text")).passed().untouched()
			x.outcomes(2, "client fail_open")
		}},
}

var stackCases = []testCase{
	{"BR101_mounted_three_times_charges_once",
		"one gate on the application, its group and the route must not cost three, nor send its fields three times",
		func(x *exam) {
			g := x.limit(perMinute("client", 4))
			x.serve(Site{App: gates(g, g), Group: gates(g), Route: gates(g), Routes: []Route{textRoute, {"GET", "/v1/report", Report}}})
			for i := range 3 {
				x.send(ask("GET /v1/text")).passed().budget(4, 3-i, 15*(i+1))
				x.saw(i + 1)
			}
			x.send(ask("GET /v1/report")).is(200).text("client allowed 0/4\n").budget(4, 0, 60)
			x.send(ask("GET /v1/text")).refused(4, 0, 15, 15)
			x.saw(5)
			x.ran(4)
		}},
	{"BR101_two_gates_charge_once_each",
		"two gates on one request merge: one line per field, the numbers of the limiter nearest to its limit",
		func(x *exam) {
			outer, inner := x.limit(perMinute("outer", 4)), x.limit(perMinute("inner", 5))
			x.serve(Site{App: gates(outer), Group: gates(inner), Routes: []Route{{"GET", "/v1/report", Report}, {"GET", "/free", Report}}})
			x.send(ask("GET /v1/report")).is(200).budget(4, 3, 15).text("outer allowed 3/4\ninner allowed 4/5\n")
			x.send(ask("GET /free")).is(200).budget(4, 2, 30).text("outer allowed 2/4\n")
			x.send(ask("GET /v1/report")).is(200).budget(4, 1, 45).text("outer allowed 1/4\ninner allowed 3/5\n")
			x.saw(5)
		}},
	{"BR101_inner_gate_is_nearest",
		"a client must see the inner gate's numbers where those end first, whichever gate set its fields first",
		func(x *exam) {
			outer, inner := x.limit(perMinute("outer", 60)), x.limit(perMinute("inner", 2))
			x.serve(Site{App: gates(outer), Group: gates(inner), Routes: []Route{textRoute}})
			x.send(ask("GET /v1/text")).passed().budget(2, 1, 30)
			x.send(ask("GET /v1/text")).passed().budget(2, 0, 60)
		}},
	{"three_gates_one_request",
		"application, group and route: a handler finds what all three decided, the outer one first",
		func(x *exam) {
			a, b, c := x.limit(perMinute("a", 5)), x.limit(perMinute("b", 4)), x.limit(perMinute("c", 3))
			x.serve(Site{App: gates(a), Group: gates(b), Route: gates(c), Routes: []Route{{"GET", "/v1/report", Report}}})
			x.send(ask("GET /v1/report")).is(200).budget(3, 2, 20).text("a allowed 4/5\nb allowed 3/4\nc allowed 2/3\n")
		}},
	{"inner_gate_sees_the_outer_one",
		"the context of a request carries what was decided so far",
		func(x *exam) {
			l := perMinute("inner", 9)
			l.Cost = func(r gate.Request) int {
				d, ok := gate.FromContext(r.Context()).Decision("outer")
				if !ok {
					x.probe.fault("the inner gate's cost function does not find the outer gate's decision in the context")
				}
				return d.Remaining
			}
			x.serve(Site{App: gates(x.limit(perMinute("outer", 4))), Group: gates(x.limit(l)), Routes: []Route{textRoute}})
			x.try(ask("GET /v1/text")).passed().budget(9, 6, 20)
		}},
}

var mergeCases = []testCase{
	{"inner_429_speaks_and_gives_back",
		"a refused request consumes nothing anywhere: the outer gate takes back what it took, and its numbers are not sent",
		func(x *exam) {
			outer, inner := x.limit(perMinute("outer", 2)), x.limit(perTenant(1))
			x.serve(Site{App: gates(outer), Group: gates(inner), Routes: []Route{textRoute, {"GET", "/free", Report}}})
			x.send(ask("GET /v1/text", TenantHeader, "a")).passed().budget(1, 0, 60)
			for range 3 {
				x.send(ask("GET /v1/text", TenantHeader, "a")).refused(1, 0, 60, 60).of("tenant")
			}
			x.send(ask("GET /free")).is(200).text("outer allowed 0/2\n").budget(2, 0, 60)
			x.send(ask("GET /v1/text", TenantHeader, "b")).refused(2, 0, 30, 30).of("outer")
			x.ran(2)
		}},
	{"inner_503_takes_the_fields_back",
		"an outer gate's numbers on a 503 would say that there is room, and disclose how much",
		func(x *exam) {
			store := newSwitchStore(true)
			l := gate.RequestRate{Name: "inner", Limit: limit.PerMinute(100), OnStoreError: gate.FailClosed}
			outer, inner := x.limit(perMinute("outer", 4)), x.gate(gate.Config{Store: store, Limiters: []gate.Limiter{l}})
			x.serve(Site{App: gates(outer), Group: gates(inner), Routes: []Route{textRoute}})
			for range 3 {
				x.send(ask("GET /v1/text")).unavailable().of("inner")
			}
			store.broken.Store(false)
			x.send(ask("GET /v1/text")).passed().budget(4, 3, 15)
			x.ran(1)
		}},
	{"inner_400_takes_the_fields_back",
		"a request that is turned away for a missing key was not let through by the outer gate either",
		func(x *exam) {
			l := perTenant(9)
			l.OnMissingKey = gate.MissingKeyReject
			x.serve(Site{App: gates(x.limit(perMinute("outer", 4))), Group: gates(x.limit(l)), Routes: []Route{textRoute}})
			x.send(ask("GET /v1/text")).is(400).silent().lacks(fieldRetryAfter).problem("invalid_request_error", 0)
			x.try(ask("GET /v1/text", TenantHeader, "a")).passed().budget(4, 3, 15)
		}},
	{"outer_refusal_ends_it",
		"what an outer gate refuses, an inner gate is not asked about",
		func(x *exam) {
			outer, inner := x.limit(perMinute("outer", 1)), x.limit(perMinute("inner", 9))
			x.serve(Site{App: gates(outer), Group: gates(inner), Routes: []Route{textRoute}})
			x.try(ask("GET /v1/text")).passed()
			x.send(ask("GET /v1/text")).refused(1, 0, 60, 60).of("outer")
			x.saw(3)
		}},
	{"BR100_before_and_after_authentication",
		"a limit by address in front bounds guessing; a limit by user behind counts the user wherever the request came from",
		func(x *exam) {
			byAddress := x.behind("", 20)
			l := perMinute("user", 5)
			l.Key = gate.Value(UserValue)
			byUser := x.limit(l)
			x.serve(Site{App: gates(byAddress), Group: gates(byUser), Routes: []Route{textRoute}})
			wrong := ask("GET /v1/text", UserHeader, "wrong", forwardedFor, "203.0.113.1")
			x.send(wrong).is(401).text("failed with 401\n").budget(20, 19, 3)
			for range 19 {
				x.try(wrong).is(401)
			}
			for range 9 {
				x.try(wrong).is(429)
			}
			x.send(wrong).refused(20, 0, 3, 3).of("client")
			x.ran(0)
			for i := range 5 {
				x.try(ask("GET /v1/text", UserHeader, "u", forwardedFor, []string{"203.0.113.2", "203.0.113.3"}[i%2])).passed().budget(5, 4-i, 12*(i+1))
			}
			for i := range 5 {
				x.try(ask("GET /v1/text", UserHeader, "u", forwardedFor, []string{"203.0.113.2", "203.0.113.3"}[i%2])).refused(5, 0, 12, 12).of("user")
			}
			x.ran(5)
		}},
	{"BR100_user_limit_before_authentication",
		"a limiter by user that stands before authentication never sees one, and says so from the first request on",
		func(x *exam) {
			l := perMinute("user", 5)
			l.Key = gate.Value(UserValue)
			x.app(x.limit(l))
			x.try(ask("GET /v1/text", UserHeader, "u")).passed().budget(5, 4, 12)
			x.outcomes(1, "user allowed (missing_key)")
		}},
}
