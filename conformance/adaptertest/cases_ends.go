package adaptertest

import (
	"github.com/headgate-go/headgate/core/gate"
)

// endCases are about when a slot is given back.
var endCases = []testCase{
	{"BR120_no_end_leaks_a_slot",
		"a release at the end of the happy path lets the least reliable endpoint lock itself out",
		func(x *exam) {
			g := x.limit(slots(3))
			routes := append(routesOfFailing(), holdRoute, Route{"GET", "/v1/abort", Abort}, Route{"GET", "/v1/goexit", Goexit},
				Route{"GET", "/v1/nil", PanicNil}, Route{"GET", "/v1/none", NotFound}, Route{"GET", "/v1/moved", Redirect})
			x.app(g, routes...)
			for i := range 100 {
				r := routes[i%len(routes)]
				if r.Do == Hold {
					x.letGo(1)
				}
				_, _ = x.client.do(ask("GET " + r.Pattern)) // Goexit and Abort end the connection
				if r.Do == Hold {
					x.entered(1)
				}
			}
			x.frees(g, "slots", 0, 3)
			x.balanced()
			for end, atLeast := range map[gate.LeaseEnd]int{gate.EndPanic: 10, gate.EndError: 40, gate.EndReturned: 20} {
				if n := x.ended(end); n < atLeast {
					x.failf("%d slots ended as %s; want %d or more", n, end, atLeast)
				}
			}
			held := x.start(3, ask("GET /v1/hold"))
			x.try(ask("GET /v1/hold")).crowded(3, 1, 1)
			x.letGo(3)
			for _, p := range held {
				p.reply().passed()
			}
			x.frees(g, "slots", 0, 3)
		}},
	{"BR120_default_error_handlers",
		"the framework's own error handler and recovery run after the slot is free, and do not keep it",
		func(x *exam) {
			g := x.limit(slots(1))
			x.serve(Site{App: gates(g), Routes: routesOfFailing(), DefaultErrors: true})
			for _, f := range failingRoutes {
				x.try(ask("GET "+f.Pattern)).is(f.status).budget(1, 0, 1)
				x.frees(g, "slots", 0, 1)
			}
			x.balanced()
		}},
	{"BR124_streams_hold_their_slots",
		"a stream that no longer counts once its handler returned makes the cap a cap on beginnings",
		func(x *exam) {
			streams := slots(2)
			streams.Match = gate.Route("GET", "/v1/stream")
			g := x.limit(streams)
			x.app(g, Route{"GET", "/v1/stream", Stream}, textRoute)
			a, b := x.open(ask("GET /v1/stream")), x.open(ask("GET /v1/stream"))
			x.holds(g, "slots", 2, 2)
			x.try(ask("GET /v1/stream")).crowded(2, 1, 1)
			x.try(ask("GET /v1/text")).passed().untouched() // other routes are not affected
			x.letGo(2)
			a.end().is(200).text(firstPiece+secondPiece).budget(2, 1, 1)
			b.end().is(200).text(firstPiece+secondPiece).budget(2, 0, 1)
			x.frees(g, "slots", 0, 2)
			x.balanced()
		}},
	{"BR124_dead_streams_end",
		"clients that are gone hold a few slots until a write fails, and then no more",
		func(x *exam) {
			g := x.limit(slots(5))
			x.app(g, Route{"GET", "/v1/events", Endless})
			var open []*stream
			for range 5 {
				open = append(open, x.open(ask("GET /v1/events")))
			}
			x.try(ask("GET /v1/events")).crowded(5, 1, 1)
			for _, s := range open[:3] {
				s.c.close()
			}
			x.frees(g, "slots", 2, 5)
			for range 3 {
				open = append(open, x.open(ask("GET /v1/events")))
			}
			x.holds(g, "slots", 5, 5)
			x.try(ask("GET /v1/events")).crowded(5, 1, 1)
			for _, s := range open[3:] {
				s.c.close()
			}
			x.frees(g, "slots", 0, 5)
			x.balanced()
		}},
	{"BR124_streams_of_two_gates",
		"a framework that keeps one thing to close per request must close it for both gates",
		func(x *exam) {
			wide := slots(3)
			wide.Name = "wide"
			outer, inner := x.limit(wide), x.limit(slots(2))
			x.serve(Site{App: gates(outer), Group: gates(inner), Routes: []Route{{"GET", "/v1/stream", Stream}, {"GET", "/v1/events", Endless}}})
			a, b := x.open(ask("GET /v1/stream")), x.open(ask("GET /v1/events"))
			x.holds(outer, "wide", 2, 3)
			x.holds(inner, "slots", 2, 2)
			x.letGo(1)
			a.end()
			x.frees(outer, "wide", 1, 3)
			x.frees(inner, "slots", 1, 2)
			b.c.close()
			x.frees(outer, "wide", 0, 3)
			x.frees(inner, "slots", 0, 2)
			x.balanced()
		}},
	{"BR125_sockets_hold_their_slots",
		"a WebSocket is one request for as long as it is served, and not a moment longer",
		func(x *exam) {
			g := x.limit(slots(3))
			x.app(g, Route{"GET", "/v1/socket", Hijack}, textRoute)
			var open []*stream
			for range 3 {
				s, ok := x.upgrade("GET /v1/socket")
				if !ok {
					return
				}
				open = append(open, s)
			}
			x.holds(g, "slots", 3, 3)
			x.try(ask("GET /v1/socket")).crowded(3, 1, 1)
			open[0].echo()
			x.frees(g, "slots", 2, 3)
			x.try(ask("GET /v1/text")).passed().budget(3, 0, 1)
			x.frees(g, "slots", 2, 3)
			open[1].c.close()
			open[2].echo()
			x.frees(g, "slots", 0, 3)
			x.balanced()
		}},
	{"BR125_a_handler_that_leaves_its_socket",
		"where a handler hijacks and returns, its slot is free when it returns: nobody tells when the connection ends",
		func(x *exam) {
			g := x.limit(slots(1))
			x.app(g, Route{"GET", "/v1/away", HijackAway})
			s, ok := x.upgrade("GET /v1/away")
			if !ok {
				return
			}
			x.frees(g, "slots", 0, 1)
			s.echo()
			x.balanced()
		}},
	{"BR126_BR135_clients_that_leave",
		"a slot that waits for its lease because the client is gone is held by nobody; where no framework tells, by the handler",
		func(x *exam) {
			g := x.limit(slots(2))
			x.app(g, holdRoute)
			x.letGo(1)
			x.try(ask("GET /v1/hold")).passed()
			x.entered(1)
			told := x.probe.sees.Load()
			for range 20 {
				for _, c := range []*client{x.leave(ask("GET /v1/hold")), x.leave(ask("GET /v1/hold"))} {
					c.close()
				}
				if !told {
					x.holds(g, "slots", 2, 2)
					x.letGo(2)
				}
				x.frees(g, "slots", 0, 2)
			}
			if !told {
				x.notef("not with this framework: handlers that are told of a client that left; a slot is free when the handler ends")
			}
			x.ran(41)
			x.balanced()
		}},
	{"BR120_timeouts",
		"a timeout in front of the gate answers while the handler goes on: its slot is held until it returns",
		func(x *exam) {
			g := x.limit(slots(2))
			x.app(g, holdRoute, Route{"GET", "/v1/late", TimedOut})
			for range 10 {
				x.try(ask("GET /v1/hold", TimeoutHeader, "1")) // 503, or where it only ends the context, what the handler makes of that
				x.frees(g, "slots", 0, 2)
				if res := x.try(ask("GET /v1/late")); res.status < 400 {
					res.failf("the status is %d; want the timeout's", res.status)
				}
				x.frees(g, "slots", 0, 2)
			}
			x.balanced()
		}},
	{"slots_of_large_responses",
		"a client that reads slowly, or stops in the middle, holds its slot for as long as the handler writes, and no longer",
		func(x *exam) {
			g := x.limit(slots(1))
			x.bigFile(x.megabytes(1))
			x.probe.leaving = true
			x.app(g, Route{"GET", "/v1/large", Large}, Route{"GET", "/v1/file", File}, Route{"HEAD", "/v1/stream", Stream})
			for _, path := range []string{"/v1/large", "/v1/file"} {
				x.try(ask("GET "+path)).budget(1, 0, 1)
				x.frees(g, "slots", 0, 1)
				c := x.fresh()
				if _, _, err := c.begin(ask("GET " + path)); err != nil {
					x.failf("%s: %v", path, err)
				}
				c.close()
				x.frees(g, "slots", 0, 1)
			}
			x.letGo(1)
			x.try(ask("HEAD /v1/stream", "Connection", "close")).is(200).text("").budget(1, 0, 1)
			x.frees(g, "slots", 0, 1)
			x.balanced()
		}},
}
