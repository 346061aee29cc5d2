package adaptertest

import (
	"strconv"
	"strings"
	"time"

	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// cases returns all of them, in the order of the transcript.
func cases() []testCase {
	var all []testCase
	for _, group := range [][]testCase{
		budgetCases, goldenCases(), windowCases, dialectCases, refusalCases, modeCases, passCases,
		keyCases, proxyCases, addressCases, storeCases,
		stackCases, mergeCases, handlerCases, resultCases, streamCases, uploadCases, raceCases, edgeCases,
		slotCases, endCases, endingCases,
	} {
		all = append(all, group...)
	}
	return all
}

// costField carries the cost that the cases' cost function charges; only code of the server's own says so.
const costField = "X-Test-Cost"

func testCost(r gate.Request) int {
	n, err := strconv.Atoi(r.Header(costField))
	if err != nil {
		return 1
	}
	return n
}

// perMinute is a limiter called name that a client's first n requests pass within a minute.
func perMinute(name string, n int) gate.RequestRate {
	return gate.RequestRate{Name: name, Limit: limit.PerMinute(n)}
}

// perTenant is the same for each value of TenantHeader.
func perTenant(n int) gate.RequestRate {
	l := perMinute("tenant", n)
	l.Key = gate.Value(TenantValue)
	return l
}

func matching(l gate.RequestRate, m gate.Match) gate.RequestRate {
	l.Match = m
	return l
}

func gates(list ...*gate.Gate) []*gate.Gate { return list }

var textRoute = Route{"GET", "/v1/text", Write}

var budgetCases = []testCase{
	{"BR158_fields_on_every_status",
		"clients slow down only if they see what is left before they are refused, whatever the handler answers",
		func(x *exam) {
			x.app(x.limit(perMinute("client", 60)),
				Route{"GET", "/v1/text", Write}, Route{"GET", "/v1/created", Created}, Route{"GET", "/v1/empty", NoContent},
				Route{"GET", "/v1/moved", Redirect}, Route{"GET", "/v1/same", NotModified}, Route{"GET", "/v1/none", NotFound},
				Route{"GET", "/v1/broken", Broken})
			for i, want := range []struct {
				name   string
				status int
				body   string
			}{{"text", 200, Text}, {"created", 201, "created\n"}, {"empty", 204, ""}, {"moved", 302, ""}, {"same", 304, ""},
				{"none", 404, "nothing of that name\n"}, {"broken", 500, "broken\n"}} {
				x.send(ask("GET /v1/"+want.name)).is(want.status).budget(60, 59-i, i+1).text(want.body).lacks(fieldRetryAfter)
				x.outcomes(i+1, "client allowed")
			}
			x.ran(7)
		}},
	{"BR158_no_fields_with_HeadersNone",
		"who switched the fields off gets none; Retry-After stays, since without it a refused client can only guess",
		func(x *exam) {
			x.app(x.gate(gate.Config{Headers: gate.HeadersNone, Limiters: []gate.Limiter{perMinute("client", 1)}}))
			x.send(ask("GET /v1/text")).passed().untouched()
			x.send(ask("GET /v1/text")).is(429).silent().has(fieldRetryAfter, "60").
				problem("rate_limit_error", 60)
			x.ran(1)
		}},
	{"BR154_zero_is_a_value",
		"a field that is dropped because its number is 0 is missing at the very moment it matters",
		func(x *exam) {
			l := perMinute("client", 2)
			l.Cost = testCost
			x.app(x.limit(l))
			x.send(ask("GET /v1/text", costField, "0")).passed().budget(2, 2, 0)
			x.send(ask("GET /v1/text", costField, "2")).passed().budget(2, 0, 60)
		}},
	{"BR018_cost_zero_is_a_read",
		"asking what is left must not use it up, nor be refused",
		func(x *exam) {
			l := perMinute("client", 2)
			l.Cost = testCost
			x.app(x.limit(l))
			x.send(ask("GET /v1/text", costField, "2")).budget(2, 0, 60)
			x.send(ask("GET /v1/text", costField, "0")).passed().budget(2, 0, 60)
			x.send(ask("GET /v1/text", costField, "1")).refused(2, 0, 30, 30)
			x.ran(2)
		}},
	{"BR019_negative_cost_is_one",
		"a cost function that goes wrong must not give tokens away",
		func(x *exam) {
			l := perMinute("client", 2)
			l.Cost = testCost
			x.app(x.limit(l))
			x.send(ask("GET /v1/text", costField, "-5")).passed().budget(2, 1, 30)
			x.outcomes(1, "client allowed (invalid_cost)")
			x.try(ask("GET /v1/text", costField, "-5")).passed().budget(2, 0, 60)
			x.try(ask("GET /v1/text", costField, "-5")).refused(2, 0, 30, 30)
			x.ran(2)
		}},
	{"BR155_deltas_in_seconds",
		"a client that reads a point in time as a delta sleeps for fifty years",
		func(x *exam) {
			l := gate.RequestRate{Name: "day", Limit: limit.PerDay(1)}
			x.app(x.limit(l))
			x.send(ask("GET /v1/text")).passed().budget(1, 0, 86400)
			x.clock.advance(time.Hour)
			x.send(ask("GET /v1/text")).refused(1, 0, 82800, 82800).
				says("Request rate limit exceeded: 1 requests/day sustained (bursts to 1). Retry after 82800s.")
		}},
	{"BR153_promise",
		"a client that waits exactly Retry-After is admitted, and one that comes a second earlier is not",
		func(x *exam) {
			for i, rule := range []limit.Rule{
				limit.PerSecond(10), limit.PerSecond(3), limit.PerMinute(7), limit.PerHour(1), limit.Per(10, 90*time.Second),
			} {
				l := perTenant(1)
				l.Limit, l.Cost = rule, testCost
				x.serve(Site{App: gates(x.limit(l)), Routes: []Route{textRoute}})
				tenant := strconv.Itoa(i)
				x.try(ask("GET /v1/text", TenantHeader, tenant, costField, strconv.Itoa(rule.Capacity()))).passed()
				refused := x.try(ask("GET /v1/text", TenantHeader, tenant)).is(429)
				after, err := strconv.Atoi(strings.Join(refused.values(fieldRetryAfter), " and "))
				if err != nil {
					refused.failf("no Retry-After: %v", err)
					return
				}
				x.clock.advance(time.Duration(after)*time.Second - time.Second)
				if after > 1 {
					x.try(ask("GET /v1/text", TenantHeader, tenant)).is(429)
				}
				x.clock.advance(time.Second)
				x.try(ask("GET /v1/text", TenantHeader, tenant)).is(200)
				x.client.close()
			}
		}},
}

// goldenCases are the vectors of the specification that are buckets: exact fractions.
func goldenCases() []testCase {
	type step struct {
		wait time.Duration
		cost int
	}
	var list []testCase
	for _, v := range []struct {
		name                               string
		rule                               limit.Rule
		steps                              []step
		limit, remaining, reset, retryWait int
		policy, state                      string
	}{
		{"100_at_10_T_99", limit.PerSecond(10).WithBurst(100), []step{{0, 1}}, 100, 99, 1, 0, `"p";q=100;w=10`, `"p";r=99;t=10`},
		{"100_at_10_T_0", limit.PerSecond(10).WithBurst(100), []step{{0, 100}}, 100, 0, 10, 0, `"p";q=100;w=10`, `"p";r=0;t=1`},
		{"100_at_10_denied_at_0.2", limit.PerSecond(10).WithBurst(100), []step{{0, 100}, {20 * time.Millisecond, 1}}, 100, 0, 1, 1, `"p";q=100;w=10`, `"p";r=0;t=1`},
		{"500_at_100_T_499", limit.PerSecond(100).WithBurst(500), []step{{0, 1}}, 500, 499, 1, 0, `"p";q=500;w=5`, `"p";r=499;t=5`},
		{"500_at_100_T_250", limit.PerSecond(100), []step{{0, 250}}, 500, 250, 3, 0, `"p";q=500;w=5`, `"p";r=250;t=3`},
		{"5_at_10_T_4", limit.PerSecond(10).WithBurst(5), []step{{0, 1}}, 5, 4, 1, 0, `"p";q=5;w=1`, `"p";r=4;t=1`},
		{"10_at_2_T_3.5", limit.PerSecond(2), []step{{0, 10}, {2250 * time.Millisecond, 1}}, 10, 3, 4, 0, `"p";q=10;w=5`, `"p";r=3;t=2`},
		{"10_at_2_denied_at_3.5", limit.PerSecond(2), []step{{0, 10}, {1750 * time.Millisecond, 7}}, 10, 3, 2, 2, `"p";q=10;w=5`, `"p";r=3;t=2`},
		{"1_per_minute_denied_at_0.5", limit.PerMinute(1), []step{{0, 1}, {30 * time.Second, 1}}, 1, 0, 30, 30, `"p";q=1;w=60`, `"p";r=0;t=30`},
		{"1000_per_hour_T_999", limit.PerHour(1000), []step{{0, 1}}, 1000, 999, 4, 0, `"p";q=1000;w=3600`, `"p";r=999;t=3597`},
		{"1000_per_hour_denied_at_0", limit.PerHour(1000), []step{{0, 1000}, {0, 1}}, 1000, 0, 4, 4, `"p";q=1000;w=3600`, `"p";r=0;t=4`},
	} {
		list = append(list, testCase{"golden_" + v.name,
			"the numbers of a bucket are fixed by its exact fraction: a value that is an integer is not its neighbour",
			func(x *exam) {
				x.app(x.limit(gate.RequestRate{Name: "p", Limit: v.rule, Cost: testCost}))
				for i, s := range v.steps {
					x.clock.advance(s.wait)
					r := ask("GET /v1/text", costField, strconv.Itoa(s.cost))
					switch {
					case i < len(v.steps)-1:
						x.try(r).passed()
					case v.retryWait > 0:
						x.send(r).refused(v.limit, v.remaining, v.reset, v.retryWait).draft(v.policy, v.state)
					default:
						x.send(r).passed().budget(v.limit, v.remaining, v.reset).draft(v.policy, v.state)
					}
				}
			}})
	}
	return list
}
