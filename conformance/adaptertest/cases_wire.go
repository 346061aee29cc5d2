package adaptertest

import (
	"time"

	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// ruled is a limiter called name with a cost that the request names.
func ruled(name string, rule limit.Rule) gate.RequestRate {
	return gate.RequestRate{Name: name, Limit: rule, Cost: testCost}
}

// The clock of every case begins on 2 January 2026, a Friday, at 03:04:05 UTC.
var windowCases = []testCase{
	{"window_fixed",
		"a window ends when the clock says so: who is told another time comes back too early or too late",
		func(x *exam) {
			x.app(x.limit(ruled("quota", limit.Window(3, time.Minute))))
			x.send(ask("GET /v1/text")).passed().budget(3, 2, 55).draft(`"quota";q=3;w=60`, `"quota";r=2;t=55`)
			x.send(ask("GET /v1/text", costField, "2")).passed().budget(3, 0, 55).draft(`"quota";q=3;w=60`, `"quota";r=0;t=55`)
			x.send(ask("GET /v1/text")).refused(3, 0, 55, 55).draft(`"quota";q=3;w=60`, `"quota";r=0;t=55`).
				says("Request quota exceeded: 3 requests per 1m. Retry after 55s.")
			x.send(ask("GET /v1/text", costField, "4")).is(429).budget(3, 0, 55).lacks(fieldRetryAfter).
				problem("rate_limit_error", 0).says("Request cost 4 exceeds the limit's capacity of 3. Retrying cannot succeed.").
				draft(`"quota";q=3;w=60`, `"quota";r=0`)
			x.clock.advance(54 * time.Second)
			x.send(ask("GET /v1/text")).refused(3, 0, 1, 1)
			x.clock.advance(time.Second)
			x.send(ask("GET /v1/text")).passed().budget(3, 2, 60).draft(`"quota";q=3;w=60`, `"quota";r=2;t=60`)
			x.ran(3)
		}},
	{"window_sliding",
		"the window before counts by the part of it that is still in sight; the wait for that is exact",
		func(x *exam) {
			x.app(x.limit(ruled("quota", limit.Sliding(10, time.Minute))))
			x.send(ask("GET /v1/text", costField, "10")).passed().budget(10, 0, 55).draft(`"quota";q=10;w=60`, `"quota";r=0;t=55`)
			x.clock.advance(55 * time.Second) // a new window: all ten are in sight
			x.send(ask("GET /v1/text")).refused(10, 0, 6, 6).draft(`"quota";q=10;w=60`, `"quota";r=0;t=6`).
				says("Request quota exceeded: 10 requests per 1m. Retry after 6s.")
			x.clock.advance(5 * time.Second)
			x.send(ask("GET /v1/text")).refused(10, 0, 1, 1)
			x.clock.advance(time.Second)
			x.send(ask("GET /v1/text")).passed().budget(10, 0, 54)
			x.clock.advance(24 * time.Second) // half of the ten
			x.send(ask("GET /v1/text", costField, "2")).passed().budget(10, 2, 30)
			x.ran(3)
		}},
	{"window_daily",
		"a contract's day ends at midnight where the customer is, not where the server is",
		func(x *exam) {
			x.app(x.limit(ruled("day", limit.Daily(2).In(time.FixedZone("UTC+1", 3600)))))
			x.send(ask("GET /v1/text")).passed().budget(2, 1, 71755).draft(`"day";q=2;w=86400`, `"day";r=1;t=71755`)
			x.send(ask("GET /v1/text")).passed().budget(2, 0, 71755)
			x.send(ask("GET /v1/text")).refused(2, 0, 71755, 71755).draft(`"day";q=2;w=86400`, `"day";r=0;t=71755`).
				says("Request quota exceeded: 2 requests per day. Retry after 71755s.")
			x.clock.advance(71755 * time.Second)
			x.send(ask("GET /v1/text")).passed().budget(2, 1, 86400)
		}},
	{"window_monthly",
		"a client that is told to come back in a month has been told nothing: the wait is a day at most",
		func(x *exam) {
			x.app(x.limit(ruled("month", limit.Monthly(1))))
			x.send(ask("GET /v1/text")).passed().budget(1, 0, 2580955).draft(`"month";q=1;w=2678400`, `"month";r=0;t=2580955`)
			x.send(ask("GET /v1/text")).refused(1, 0, 86400, 86400).
				says("Request quota exceeded: 1 requests per month. Retry after 86400s.")
		}},
	{"window_beside_a_bucket",
		"of a bucket and a window that both refuse, the one with the longer wait is told; the draft names both",
		func(x *exam) {
			x.app(x.limit(ruled("bucket", limit.PerMinute(1)), ruled("quota", limit.Window(1, time.Minute))))
			x.send(ask("GET /v1/text")).passed().budget(1, 0, 60).
				draft(`"bucket";q=1;w=60, "quota";q=1;w=60`, `"bucket";r=0;t=60, "quota";r=0;t=55`)
			x.send(ask("GET /v1/text")).refused(1, 0, 60, 60).of("bucket").
				draft(`"bucket";q=1;w=60, "quota";q=1;w=60`, `"bucket";r=0;t=60, "quota";r=0;t=55`)
			x.clock.advance(55 * time.Second)
			x.send(ask("GET /v1/text")).refused(1, 0, 5, 5).of("bucket").
				draft(`"bucket";q=1;w=60, "quota";q=1;w=60`, `"bucket";r=0;t=5`)
		}},
}

var dialectCases = []testCase{
	{"draft_lists_what_is_in_force",
		"a client that reads the draft sees every limit that can refuse it: none on trial, none that was not asked",
		func(x *exam) {
			trial, paid := perMinute("trial", 1), perMinute("paid", 1)
			trial.Mode, paid.Match = gate.Shadow, gate.PathPrefix("/v1/paid")
			x.app(x.limit(perMinute("a", 3), trial, paid, perMinute("b", 2), gate.RequestRate{Name: "free", Limit: limit.Unlimited()}))
			x.send(ask("GET /v1/text")).passed().budget(2, 1, 30).draft(`"a";q=3;w=60, "b";q=2;w=60`, `"a";r=2;t=40, "b";r=1;t=30`)
			x.send(ask("GET /v1/text")).passed().budget(2, 0, 60).draft(`"a";q=3;w=60, "b";q=2;w=60`, `"a";r=1;t=20, "b";r=0;t=30`)
			x.send(ask("GET /v1/text")).refused(2, 0, 30, 30).of("b").draft(`"a";q=3;w=60, "b";q=2;w=60`, `"b";r=0;t=30`)
		}},
	{"draft_of_three_gates",
		"gates on one request share one list: two lines, or the last gate's only, would hide a limit",
		func(x *exam) {
			a, b, c := x.limit(perMinute("a", 4)), x.limit(perMinute("b", 3)), x.limit(perMinute("c", 2))
			x.serve(Site{App: gates(a), Group: gates(b), Route: gates(c), Routes: []Route{textRoute}})
			const policies = `"a";q=4;w=60, "b";q=3;w=60, "c";q=2;w=60`
			x.send(ask("GET /v1/text")).passed().budget(2, 1, 30).draft(policies, `"a";r=3;t=45, "b";r=2;t=40, "c";r=1;t=30`)
			x.send(ask("GET /v1/text")).passed().budget(2, 0, 60).draft(policies, `"a";r=2;t=30, "b";r=1;t=20, "c";r=0;t=30`)
			x.send(ask("GET /v1/text")).refused(2, 0, 30, 30).of("c").draft(policies, `"c";r=0;t=30`)
		}},
	{"two_gates_two_dialects",
		"each gate speaks its own dialect; a refusal leaves none of the other gate's numbers, which would say that there is room",
		func(x *exam) {
			const standard, both = gate.HeadersStandard, gate.HeadersDraft | gate.HeadersLegacy
			outer := x.gate(gate.Config{Headers: standard, Limiters: []gate.Limiter{perMinute("outer", 3)}})
			inner := x.gate(gate.Config{Headers: both, Limiters: []gate.Limiter{perTenant(1)}})
			x.serve(Site{App: gates(outer), Group: gates(inner), Routes: []Route{textRoute}})
			x.send(ask("GET /v1/text", TenantHeader, "a")).passed().has("RateLimit-Limit", "3").has("RateLimit-Remaining", "2").
				has("RateLimit-Reset", "20").has("X-RateLimit-Limit", "1").has("X-RateLimit-Remaining", "0").
				has("X-RateLimit-Reset", "60").has(fieldPolicy, `"tenant";q=1;w=60`).has(fieldState, `"tenant";r=0;t=60`)
			x.send(ask("GET /v1/text", TenantHeader, "a")).is(429).announces(x.variant.in(both), 1, 0, 60).
				has(fieldRetryAfter, "60").problem("rate_limit_error", 60).of("tenant")
			x.send(ask("GET /v1/text", TenantHeader, "b")).passed()
			x.send(ask("GET /v1/text", TenantHeader, "c")).passed()
			x.send(ask("GET /v1/text", TenantHeader, "d")).is(429).announces(x.variant.in(standard), 3, 0, 20).
				has(fieldRetryAfter, "20").problem("rate_limit_error", 20).of("outer")
			x.ran(3)
		}},
	{"HEAD_in_every_form",
		"HEAD has the fields of a GET in every dialect, and the length of the body that it has not",
		func(x *exam) {
			l := ruled("client", limit.PerMinute(2))
			l.Key, l.OnMissingKey = gate.Value(TenantValue), gate.MissingKeyReject
			x.app(x.limit(l), Route{"HEAD", "/v1/text", Write}, textRoute)
			same := func(status int, fields ...string) {
				head := x.send(ask("HEAD /v1/text", fields...)).is(status).text("")
				get := x.send(ask("GET /v1/text", fields...)).is(status)
				for _, name := range []string{"Content-Type", "Content-Length", fieldRetryAfter, "Cache-Control"} {
					for _, value := range get.values(name) {
						head.has(name, value)
					}
				}
			}
			same(200, TenantHeader, "a")
			same(429, TenantHeader, "a")
			same(429, TenantHeader, "b", costField, "3")
			same(400)
			x.ran(2)
		}},
}
