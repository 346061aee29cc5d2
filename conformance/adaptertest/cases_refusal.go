package adaptertest

import (
	"fmt"
	"time"

	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// registry is how a body of RFC 9457 begins.
const registry = `{"type":"https://iana.org/assignments/http-problem-types#`

var refusalCases = []testCase{
	{"BR108_refused_handler_does_not_run",
		"a refusal that lets the handler run has done the work it refused, and sends two bodies in one",
		func(x *exam) {
			x.app(x.limit(perMinute("client", 1)))
			x.send(ask("GET /v1/text")).passed().budget(1, 0, 60)
			for range 4 {
				x.try(ask("GET /v1/text")).refused(1, 0, 60, 60)
			}
			res := x.send(ask("GET /v1/text")).refused(1, 0, 60, 60).of("client").
				says("Request rate limit exceeded: 1 requests/minute sustained (bursts to 1). Retry after 60s.")
			res.text(x.variant.either(`{"error":{"type":"rate_limit_error","message":"Request rate limit exceeded: 1 requests/minute `+
				`sustained (bursts to 1). Retry after 60s.","limit_type":"request_rate","policy":"client","retry_after":60}}`,
				registry+`quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,`+
					`"detail":"Request rate limit exceeded: 1 requests/minute sustained (bursts to 1). Retry after 60s.",`+
					`"violated-policies":["client"],"limit_type":"request_rate","retry_after":60}`))
			x.ran(1)
			x.letThrough(1)
			x.errorHandled(0)
			if s := x.saw(6); s.refused != 429 || s.outcomes() != "client denied (limit)" {
				x.failf("the observer saw refusal %d, outcomes %q; want 429, client denied (limit)", s.refused, s.outcomes())
			}
			if x.client.dials != 1 {
				x.failf("%d connections were needed; a refusal must leave the connection usable", x.client.dials)
			}
		}},
	{"BR108_HEAD_is_refused_without_a_body",
		"HEAD gets the fields of a GET, Content-Length included: a body would be taken for the next response",
		func(x *exam) {
			x.app(x.limit(perMinute("client", 1)), Route{"HEAD", "/v1/text", Write}, textRoute)
			x.send(ask("HEAD /v1/text")).is(200).budget(1, 0, 60).text("").has("Content-Length", fmt.Sprint(len(Text)))
			res := x.send(ask("HEAD /v1/text")).is(429).budget(1, 0, 60).has(fieldRetryAfter, "60").text("").
				has("Content-Type", x.variant.contentType()).has("Cache-Control", "no-store")
			get := x.send(ask("GET /v1/text")).refused(1, 0, 60, 60)
			res.has("Content-Length", fmt.Sprint(len(get.body)))
			x.ran(1)
		}},
	{"BR016_cost_above_capacity",
		"a client that is told to wait for what can never pass retries for ever",
		func(x *exam) {
			l := perMinute("client", 5)
			l.Cost = testCost
			x.app(x.limit(l))
			x.send(ask("GET /v1/text", costField, "2")).passed().budget(5, 3, 24)
			x.send(ask("GET /v1/text", costField, "6")).is(429).budget(5, 3, 24).lacks(fieldRetryAfter).
				problem("rate_limit_error", 0).says("Request cost 6 exceeds the limit's capacity of 5. Retrying cannot succeed.").
				draft(`"client";q=5;w=60`, `"client";r=3`)
			x.outcomes(2, "client denied (cost_exceeds_limit)")
			x.send(ask("GET /v1/text", costField, "3")).passed().budget(5, 0, 60)
			x.send(ask("GET /v1/text", costField, "1")).refused(5, 0, 12, 12)
			x.ran(2)
		}},
	{"messages_name_the_period",
		"the message says what was exceeded in the words of the configuration",
		func(x *exam) {
			for i, v := range []struct {
				rule  limit.Rule
				words string
				reset int
			}{
				{limit.PerSecond(1).WithBurst(1), "1 requests/second", 1},
				{limit.PerHour(1), "1 requests/hour", 3600},
				{limit.Per(1, 90*time.Second), "1 requests per 1m30s", 90},
				{limit.Per(1, 2*time.Hour), "1 requests per 2h", 7200},
			} {
				x.app(x.limit(gate.RequestRate{Name: fmt.Sprintf("p%d", i), Limit: v.rule}))
				x.try(ask("GET /v1/text")).passed()
				x.send(ask("GET /v1/text")).refused(1, 0, v.reset, v.reset).says(fmt.Sprintf(
					"Request rate limit exceeded: %s sustained (bursts to 1). Retry after %ds.", v.words, v.reset))
				x.client.close()
			}
		}},
	{"docs_url_ends_the_message",
		"a link must stay readable: a JSON helper that escapes & or adds a newline makes frameworks differ",
		func(x *exam) {
			x.app(x.gate(gate.Config{DocsURL: "https://docs.example.com/limits?a=1&b=<2>", Limiters: []gate.Limiter{perMinute("client", 1)}}))
			x.try(ask("GET /v1/text")).passed()
			res := x.send(ask("GET /v1/text")).refused(1, 0, 60, 60)
			const message = `"Request rate limit exceeded: 1 requests/minute sustained (bursts to 1). Retry after 60s. ` +
				`See https://docs.example.com/limits?a=1&b=<2>"`
			res.text(x.variant.either(`{"error":{"type":"rate_limit_error","message":`+message+
				`,"limit_type":"request_rate","policy":"client","retry_after":60}}`,
				registry+`quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,`+
					`"detail":`+message+`,"violated-policies":["client"],"limit_type":"request_rate","retry_after":60}`))
		}},
	{"problem_json",
		"RFC 9457 in the words of the registry, with every policy that refused",
		func(x *exam) {
			down, tenant := perMinute("down", 1), perTenant(1)
			down.OnStoreError, tenant.OnMissingKey, tenant.Cost = gate.FailClosed, gate.MissingKeyReject, testCost
			x.serve(Site{Routes: []Route{textRoute, {"GET", "/down", Write}},
				App: gates(x.gate(gate.Config{Body: gate.ProblemJSON, Store: newSwitchStore(true), Limiters: []gate.Limiter{
					matching(down, gate.Paths("/down"))}})),
				Group: gates(x.gate(gate.Config{Body: gate.ProblemJSON, Limiters: []gate.Limiter{tenant, perMinute("client", 1)}}))})
			x.try(ask("GET /v1/text", TenantHeader, "a")).passed()
			x.send(ask("GET /v1/text", TenantHeader, "a")).is(429).budget(1, 0, 60).has(fieldRetryAfter, "60").
				has("Content-Type", "application/problem+json").has("Cache-Control", "no-store").text(registry +
				`quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,` +
				`"detail":"Request rate limit exceeded: 1 requests/minute sustained (bursts to 1). Retry after 60s.",` +
				`"violated-policies":["tenant","client"],"limit_type":"request_rate","retry_after":60}`)
			x.send(ask("GET /v1/text", TenantHeader, "b", costField, "2")).is(429).budget(1, 1, 0).lacks(fieldRetryAfter).text(registry +
				`quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,` +
				`"detail":"Request cost 2 exceeds the limit's capacity of 1. Retrying cannot succeed.",` +
				`"violated-policies":["tenant","client"],"limit_type":"request_rate"}`)
			x.send(ask("GET /down")).is(503).silent().has(fieldRetryAfter, "1").has("Cache-Control", "no-store").text(registry +
				`temporary-reduced-capacity","title":"Request cannot be satisfied due to temporary server capacity constraints",` +
				`"status":503,"detail":"The limiter's store is unavailable. Retry after 1s.",` +
				`"violated-policies":["down"],"limit_type":"request_rate","retry_after":1}`)
			x.send(ask("GET /v1/text")).is(400).has("Content-Type", "application/problem+json").silent().lacks(fieldRetryAfter)
		}},
	{"custom_body",
		"a body of the user's own is sent as it is, with fields of its own, and gets the request",
		func(x *exam) {
			x.app(x.gate(gate.Config{
				Limiters: []gate.Limiter{perMinute("client", 1)},
				Body: func(r gate.Request, ref *gate.Refusal) (string, []byte) {
					ref.SetHeader("X-Refused-By", ref.Policy)
					return "text/csv; header=absent", fmt.Appendf(nil, "%s,%s,%d,%d\n", r.Method(), r.Path(), ref.Status, ref.RetryAfterSeconds())
				},
			}))
			x.try(ask("GET /v1/text")).passed().lacks("X-Refused-By")
			x.send(ask("GET /v1/text")).is(429).budget(1, 0, 60).has(fieldRetryAfter, "60").has("X-Refused-By", "client").
				has("Content-Type", "text/csv; header=absent").has("Cache-Control", "no-store").text("GET,/v1/text,429,60\n")
		}},
	{"custom_body_may_be_empty",
		"an empty body must not be filled in by the framework",
		func(x *exam) {
			x.app(x.gate(gate.Config{
				Limiters: []gate.Limiter{perMinute("client", 1)},
				Body:     func(gate.Request, *gate.Refusal) (string, []byte) { return "text/plain", nil },
			}))
			x.try(ask("GET /v1/text")).passed()
			x.send(ask("GET /v1/text")).is(429).budget(1, 0, 60).has("Content-Type", "text/plain").has("Content-Length", "0").text("")
		}},
	{"BR160_jitter_only_adds",
		"clients refused together must not come back together, and none too early; the reset stays exact",
		func(x *exam) {
			l := perMinute("client", 6)
			l.Jitter, l.Cost = gate.JitterOn, testCost
			x.app(x.gate(gate.Config{Limiters: []gate.Limiter{l}, Rand: func() float64 { return 0.9 }}))
			x.try(ask("GET /v1/text", costField, "6")).passed().budget(6, 0, 60)
			x.send(ask("GET /v1/text", costField, "3")).refused(6, 0, 30, 36).draft(`"client";q=6;w=60`, `"client";r=0;t=30`).
				says("Request rate limit exceeded: 6 requests/minute sustained (bursts to 6). Retry after 36s.")
		}},
	{"one_refusal_is_reported",
		"of several limiters that refuse, the one with the longest wait is told, and nothing is taken from any",
		func(x *exam) {
			short, long := perMinute("short", 2), gate.RequestRate{Name: "long", Limit: limit.PerHour(1)}
			wide := perMinute("wide", 10)
			x.app(x.limit(short, long, wide))
			x.send(ask("GET /v1/text")).passed().budget(1, 0, 3600)
			x.send(ask("GET /v1/text")).refused(1, 0, 3600, 3600).of("long")
			x.outcomes(2, "short allowed, long denied (limit), wide allowed")
			x.clock.advance(time.Hour)
			x.try(ask("GET /v1/text")).passed()
			x.outcomes(3, "short allowed, long allowed, wide allowed")
		}},
	{"BR149_refused_consumes_nothing",
		"a request that one limiter refuses must not use up the others, or retries burn the day's quota",
		func(x *exam) {
			minute, hour := perMinute("minute", 2), gate.RequestRate{Name: "hour", Limit: limit.PerHour(30)}
			x.app(x.limit(hour, minute), Route{"GET", "/v1/report", Report})
			for range 2 {
				x.try(ask("GET /v1/report")).is(200)
			}
			for range 5 {
				x.try(ask("GET /v1/report")).is(429)
			}
			x.clock.advance(30 * time.Second)
			x.send(ask("GET /v1/report")).is(200).text("hour allowed 27/30\nminute allowed 0/2\n").budget(2, 0, 60)
			x.ran(3)
		}},
}
