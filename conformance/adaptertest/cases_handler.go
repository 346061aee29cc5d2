package adaptertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate-go/headgate/core/gate"
)

// failing are the behaviours that end in a failure, and the status that each is answered with.
var failingRoutes = []struct {
	Route
	status int
}{
	{Route{"GET", "/v1/error", Error}, 503},
	{Route{"GET", "/v1/wrapped", WrappedError}, 503},
	{Route{"GET", "/v1/plain", PlainError}, 500},
	{Route{"GET", "/v1/panic", Panic}, 500},
}

func routesOfFailing() (list []Route) {
	for _, f := range failingRoutes {
		list = append(list, f.Route)
	}
	return list
}

var handlerCases = []testCase{
	{"BR110_fields_on_errors_and_panics",
		"fields that are set on the way back miss what the framework writes for a returned error or a panic",
		func(x *exam) {
			x.app(x.limit(perMinute("client", 60)), routesOfFailing()...)
			for i, f := range failingRoutes {
				x.send(ask("GET "+f.Pattern)).is(f.status).text(fmt.Sprintf("failed with %d\n", f.status)).budget(60, 59-i, i+1)
			}
			x.ran(len(failingRoutes))
			seenErrors := x.errorHandled(len(failingRoutes)) // once each: who writes the error as well writes it twice
			if err := seenErrors[len(seenErrors)-1]; err != nil && !errors.Is(err, ErrPanic) {
				x.failf("the recovery got %v; want the panic's own value", err)
			}
		}},
	{"BR110_fields_on_long_responses",
		"a body that is longer than any buffer commits the header before the handler returns",
		func(x *exam) {
			x.app(x.limit(perMinute("client", 60)), Route{"GET", "/v1/large", Large}, Route{"HEAD", "/v1/large", Large})
			want, _ := Large.answer()
			x.send(ask("GET /v1/large")).is(200).text(string(want.body)).budget(60, 59, 1)
			x.send(ask("HEAD /v1/large")).is(200).text("").has("Content-Length", fmt.Sprint(len(want.body))).budget(60, 58, 2)
		}},
	{"BR103_unmatched_routes_are_charged",
		"a scanner must not get 404s without limit where the framework lets the application's middleware run",
		func(x *exam) {
			x.app(x.limit(perMinute("client", 4)), textRoute)
			for i := range 3 {
				x.send(ask("GET /v1/unknown")).is(404).text("failed with 404\n").budget(4, 3-i, 15*(i+1))
			}
			x.try(ask("POST /v1/text").with([]byte("x"))).is(405).text("failed with 405\n").budget(4, 0, 60)
			x.send(ask("GET /v1/unknown")).refused(4, 0, 15, 15)
			x.try(ask("POST /v1/text").with([]byte("x"))).refused(4, 0, 15, 15) // Gin adds an Allow of its own
			x.ran(0)
			x.letThrough(4)
			for _, e := range x.events(6) {
				if strings.Contains(e.route, "unknown") {
					x.failf("the route label is %q: each path a client invents would be a time series of its own", e.route)
				}
			}
		}},
	{"BR106_limits_by_route_on_the_application",
		"in an application's middleware Fiber's route is / and net/http has none: buckets and labels must not collapse",
		func(x *exam) {
			users, orders := perMinute("users", 2), perMinute("orders", 2)
			users.Match, orders.Match = gate.Route("GET", "/v1/users/:id"), gate.Route("GET", "/v1/orders/{id}")
			x.app(x.limit(users, orders), Route{"GET", "/v1/users/:id", Write}, Route{"GET", "/v1/orders/:id", Write})
			x.send(ask("GET /v1/users/17")).passed().budget(2, 1, 30)
			x.outcomes(1, "users allowed")
			x.send(ask("GET /v1/users/18")).passed().budget(2, 0, 60)
			x.send(ask("GET /v1/orders/17")).passed().budget(2, 1, 30)
			x.send(ask("GET /v1/users/19")).refused(2, 0, 30, 30).of("users")
			labels := map[string]bool{}
			for _, e := range x.events(4)[:3] {
				labels[e.route] = true
				if strings.Contains(e.route, "/17") || strings.Contains(e.route, "/18") {
					x.failf("the route label is %q; want the template", e.route)
				}
			}
			if len(labels) != 2 && !labels[""] {
				x.failf("the route labels are %v; want one for each route, or none", labels)
			}
			x.notef("route labels: %v", labels)
		}},
	{"route_labels_from_the_configuration",
		"where the framework cannot tell the route, Config.Routes labels telemetry",
		func(x *exam) {
			x.app(x.gate(gate.Config{Routes: []string{"GET /v1/users/:id"}, Limiters: []gate.Limiter{perMinute("client", 9)}}),
				Route{"GET", "/v1/users/:id", Write})
			x.try(ask("GET /v1/users/17")).passed()
			if label := x.saw(1).route; !slices.Contains([]string{"/v1/users/:id", "/v1/users/{id}", "GET /v1/users/:id"}, label) {
				x.failf("the route label is %q; want the template", label)
			}
		}},
	{"the_way_back",
		"a handler reaches what was decided, through the adapter and through the context",
		func(x *exam) {
			x.app(x.limit(perMinute("client", 2), perTenant(9)), Route{"GET", "/v1/report", Report})
			x.send(ask("GET /v1/report", TenantHeader, "a")).is(200).text("client allowed 1/2\ntenant allowed 8/9\n").budget(2, 1, 30)
		}},
	{"BR108_body_stays_readable",
		"a request that passed has its whole body: the gate reads none of it",
		func(x *exam) {
			x.app(x.limit(perMinute("client", 2)), Route{"POST", "/v1/echo", ReadBody})
			body := []byte(strings.Repeat("stops,", 1000))
			x.send(ask("POST /v1/echo").with(body)).is(200).text(string(body)).budget(2, 1, 30)
			x.send(ask("POST /v1/echo").with([]byte{})).is(200).text("").budget(2, 0, 60)
			x.send(ask("POST /v1/echo").with(body)).refused(2, 0, 30, 30)
			x.send(ask("POST /v1/echo").with([]byte("again"))).refused(2, 0, 30, 30)
			x.ran(2)
		}},
	{"BR110_no_fields_from_elsewhere",
		"an application without a gate is left alone",
		func(x *exam) {
			x.serve(Site{Routes: []Route{textRoute, {"GET", "/v1/report", Report}}})
			x.send(ask("GET /v1/text")).passed().untouched()
			x.send(ask("GET /v1/report")).is(200).text("no admission\n").untouched()
		}},
}

var resultCases = []testCase{
	{"BR112_failures_are_failures",
		"Echo and Fiber write a returned error after the middleware: read too early, every failure is a 200",
		func(x *exam) {
			routes := append(routesOfFailing(), Route{"GET", "/v1/broken", Broken}, Route{"GET", "/v1/none", NotFound})
			x.app(x.limit(perMinute("client", 60)), routes...)
			for i, r := range routes {
				res := x.try(ask("GET " + r.Pattern))
				x.failedWith(i+1, res, r.Do)
			}
			x.failedWith(len(routes)+1, x.try(ask("GET /v1/unknown")), 0)
		}},
	{"BR112_default_error_handlers",
		"the status that is counted must be the one that the framework's own error handler sends",
		func(x *exam) {
			g := x.limit(perMinute("client", 60))
			routes := routesOfFailing()
			x.serve(Site{App: gates(g), Routes: routes, DefaultErrors: true})
			for i, f := range failingRoutes {
				res := x.try(ask("GET "+f.Pattern)).is(f.status).budget(60, 59-i, i+1)
				x.failedWith(i+1, res, f.Do)
			}
			x.failedWith(len(routes)+1, x.try(ask("GET /v1/unknown")).is(404).budget(60, 59-len(routes), len(routes)+1), 0)
		}},
	{"BR112_successes_are_not",
		"what a handler answered well must not be given back as failed",
		func(x *exam) {
			routes := []Route{textRoute, {"GET", "/v1/created", Created}, {"GET", "/v1/empty", NoContent}, {"GET", "/v1/moved", Redirect},
				{"GET", "/v1/same", NotModified}, {"GET", "/v1/large", Large}, {"POST", "/v1/echo", ReadBody}}
			x.app(x.limit(perMinute("client", 60)), routes...)
			for i, r := range routes {
				res := x.try(ask(r.Method + " " + r.Pattern).with([]byte("x")))
				if s := x.saw(i + 1); s.failed() || s.result.Status != res.status {
					x.failf("%s: the observer saw status %d, error %v, panicked %t; the client %d", res.r, s.result.Status, s.err, s.panicked, res.status)
				}
			}
		}},
	{"BR112_every_gate_sees_the_failure",
		"an error must reach the outer gate through the inner one, and a panic too",
		func(x *exam) {
			outer, inner := x.limit(perMinute("outer", 60)), x.limit(perMinute("inner", 60))
			x.serve(Site{App: gates(outer), Group: gates(inner), Routes: routesOfFailing()})
			for i, f := range failingRoutes {
				res := x.try(ask("GET " + f.Pattern)).is(f.status)
				list := x.events(2 * (i + 1))
				if list[2*i].outcomes() != "inner allowed" || list[2*i+1].outcomes() != "outer allowed" {
					x.failf("%s: the observer saw %q, then %q; want the inner gate's first", f.Pattern, list[2*i].outcomes(), list[2*i+1].outcomes())
					return
				}
				x.failure(res, f.Do, list[2*i])
				x.failure(res, f.Do, list[2*i+1])
			}
		}},
}

// failedWith checks the n-th event, which is the last, against the response.
func (x *exam) failedWith(n int, res *reply, do Behaviour) { x.failure(res, do, x.saw(n)) }

func (x *exam) failure(res *reply, do Behaviour, s seen) {
	switch {
	case do == Panic:
		if !s.panicked || s.err != nil {
			x.failf("%s: the observer saw panicked %t, error %v; want a panic", res.r, s.panicked, s.err)
		}
		return
	case s.panicked || !s.failed() || s.result.Status != res.status:
		x.failf("%s: the observer saw status %d, error %v, panicked %t; the client %d", res.r, s.result.Status, s.err, s.panicked, res.status)
	}
	if (do == PlainError || do == WrappedError) && s.err != nil && !errors.Is(s.err, ErrHandler) {
		x.failf("%s: the observer saw the error %v; want the handler's own", res.r, s.err)
	}
}
