package adaptertest

import (
	"github.com/headgate-go/headgate/core/gate"
)

var modeCases = []testCase{
	{"BR162_shadow_changes_nothing",
		"a limiter on trial must not show in any response: not beyond its limit, not for an impossible cost",
		func(x *exam) {
			l := perMinute("client", 2)
			l.Mode, l.Cost = gate.Shadow, testCost
			x.app(x.limit(l), textRoute, Route{"GET", "/v1/none", NotFound})
			for range 2 {
				x.try(ask("GET /v1/text")).passed().untouched()
			}
			x.send(ask("GET /v1/text")).passed().untouched()
			x.outcomes(3, "client would_deny (limit)")
			x.send(ask("GET /v1/none", costField, "3")).is(404).text("nothing of that name\n").untouched()
			x.outcomes(4, "client would_deny (cost_exceeds_limit)")
			x.ran(4)
		}},
	{"BR162_shadow_with_no_key",
		"also the paths beside the limit itself keep to the mode: a missing key that would be a 400",
		func(x *exam) {
			l := perTenant(2)
			l.Mode, l.OnMissingKey = gate.Shadow, gate.MissingKeyReject
			x.app(x.limit(l))
			x.send(ask("GET /v1/text")).passed().untouched()
			x.outcomes(1, "tenant would_deny (missing_key)")
		}},
	{"BR162_shadow_with_the_store_down",
		"FailClosed in shadow would be a 503 from a limiter that is on trial",
		func(x *exam) {
			l := perMinute("client", 2)
			l.Mode, l.OnStoreError = gate.Shadow, gate.FailClosed
			x.app(x.gate(gate.Config{Store: newSwitchStore(true), Limiters: []gate.Limiter{l}}))
			x.send(ask("GET /v1/text")).passed().untouched()
			x.outcomes(1, "client would_shed")
		}},
	{"BR163_shadow_beside_enforce",
		"a limiter on trial neither refuses nor speaks for the one beside it",
		func(x *exam) {
			trial := perMinute("trial", 1)
			trial.Mode = gate.Shadow
			g := x.limit(trial, perMinute("client", 3))
			x.app(g)
			x.send(ask("GET /v1/text")).passed().budget(3, 2, 20)
			x.send(ask("GET /v1/text")).passed().budget(3, 1, 40)
			x.outcomes(2, "trial would_deny (limit), client allowed")
			if err := g.SetMode("trial", gate.Enforce); err != nil {
				x.failf("SetMode: %v", err)
			}
			x.send(ask("GET /v1/text")).refused(1, 0, 60, 60).of("trial")
			x.outcomes(3, "trial denied (limit), client allowed")
		}},
	{"off_does_nothing",
		"a limiter that is off is as if it were not there, and can be switched on without a restart",
		func(x *exam) {
			l := perMinute("client", 1)
			l.Mode = gate.Off
			g := x.limit(l)
			x.app(g)
			for range 3 {
				x.try(ask("GET /v1/text")).passed().untouched()
			}
			x.send(ask("GET /v1/text")).passed().untouched()
			x.saw(0)
			if err := g.SetMode(gate.All, gate.Enforce); err != nil {
				x.failf("SetMode: %v", err)
			}
			x.send(ask("GET /v1/text")).passed().budget(1, 0, 60)
			x.try(ask("GET /v1/text")).refused(1, 0, 60, 60)
		}},
	{"match_by_path_and_method",
		"a limiter is about the requests that core matches on the path; the framework's route is not asked",
		func(x *exam) {
			l := perMinute("login", 1)
			l.Match = gate.Route("POST", "/v1/login/:id")
			x.app(x.limit(l), Route{"POST", "/v1/login/:id", Write}, Route{"GET", "/v1/login/:id", Write}, textRoute)
			x.send(ask("GET /v1/text")).passed().untouched()
			x.send(ask("GET /v1/login/7")).passed().untouched()
			x.send(ask("POST /v1/login/7").with([]byte{})).passed().budget(1, 0, 60)
			x.send(ask("POST /v1/login/8").with([]byte{})).refused(1, 0, 60, 60).of("login")
			x.ran(3)
		}},
}

var passCases = []testCase{
	{"BR145_exempt_byte_for_byte",
		"health probes must pass when all else is refused; any other spelling is a way around the limit",
		func(x *exam) {
			l := perMinute("client", 1)
			x.app(x.gate(gate.Config{Exempt: []string{"/healthz"}, Limiters: []gate.Limiter{l}}), Route{"GET", "/*", Write})
			x.send(ask("GET /healthz")).passed().untouched()
			x.try(ask("GET /v1/anything")).passed().budget(1, 0, 60)
			x.send(ask("GET /healthz")).passed().untouched()
			x.saw(1)
			x.ran(3)
			for _, path := range []string{"/v1/analytics/../../healthz", "//healthz", "/healthz/", "/HEALTHZ", "/healthz2",
				"/healthz/../v1", "/./healthz", "/healthz;x"} {
				x.send(ask("GET "+path)).refused(1, 0, 60, 60)
			}
			x.send(ask("GET /v1", "X-Original-URL", "/healthz", "X-Rewrite-URL", "/healthz")).refused(1, 0, 60, 60)
			x.send(ask("GET /healthz?full=1")).passed().untouched()
			x.ran(4)
		}},
	{"BR145_encoded_spelling",
		"routers differ in what they decode: an encoded spelling is either the exempt route itself, or charged",
		func(x *exam) {
			x.app(x.gate(gate.Config{Exempt: []string{"/healthz"}, Limiters: []gate.Limiter{perMinute("client", 1)}}),
				Route{"GET", "/healthz", Created}, Route{"GET", "/:id", Write})
			x.try(ask("GET /other")).passed().budget(1, 0, 60)
			if res := x.try(ask("GET /%68ealthz")); res.status != 429 {
				res.is(201).untouched()
				x.notef("/%%68ealthz: the router sees /healthz, so the request is exempt and runs that route")
			}
			x.try(ask("GET /%48ealthz")).is(429)
		}},
	{"BR104_preflights_are_free",
		"a browser sends preflights on its own, and shows a refused one as a network error instead of a 429",
		func(x *exam) {
			x.app(x.limit(perMinute("client", 4)), textRoute, Route{"HEAD", "/v1/text", Write}, Route{"OPTIONS", "/v1/text", NoContent})
			preflight := ask("OPTIONS /v1/text", "Origin", "https://app.example.com", "Access-Control-Request-Method", "GET")
			for i := range 2 {
				x.try(preflight).is(204).untouched()
				x.try(ask("GET /v1/text")).passed().budget(4, 3-i, 15*(i+1))
			}
			x.send(preflight).is(204).untouched()
			x.send(ask("OPTIONS /v1/text")).is(204).budget(4, 1, 45)
			x.send(ask("HEAD /v1/text")).is(200).budget(4, 0, 60)
			x.send(ask("GET /v1/text", "Origin", "https://app.example.com", "Access-Control-Request-Method", "GET")).refused(4, 0, 15, 15)
			x.send(ask("GET /v1/text", "Origin", "https://app.example.com", "Access-Control-Request-Method", "GET",
				"X-HTTP-Method-Override", "OPTIONS")).refused(4, 0, 15, 15)
			x.send(ask("OPTIONS /v1/text", "Origin", "https://app.example.com")).refused(4, 0, 15, 15)
			x.send(preflight).is(204).untouched()
			x.ran(8)
		}},
	{"no_limiter_is_about_it",
		"a request that no limiter matches passes, and its handler finds no admission",
		func(x *exam) {
			l := perMinute("client", 1)
			l.Match = gate.PathPrefix("/v1/paid")
			x.app(x.limit(l), Route{"GET", "/v1/report", Report}, Route{"GET", "/v1/paid", Report})
			x.send(ask("GET /v1/report")).is(200).text("no admission\n").untouched()
			x.send(ask("GET /v1/paid")).is(200).text("client allowed 0/1\n").budget(1, 0, 60)
			x.send(ask("GET /v1/report")).is(200).text("no admission\n").untouched()
			x.saw(1)
		}},
}
