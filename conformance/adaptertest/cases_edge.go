package adaptertest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/headgate-go/headgate/core/gate"
)

var edgeCases = []testCase{
	{"host_is_a_field_too",
		"net/http keeps Host apart from the other fields; a key by host must not be absent in three frameworks of four",
		func(x *exam) {
			l := perMinute("host", 1)
			l.Key = gate.Header("host")
			l.Cost = func(r gate.Request) int { return len(r.HeaderValues("Host")) }
			x.app(x.limit(l))
			x.send(ask("GET /v1/text")).passed().budget(1, 0, 60)
			x.outcomes(1, "host allowed")
			x.send(ask("GET /v1/text")).refused(1, 0, 60, 60)
		}},
	{"absolute_target",
		"a request target may hold scheme and host; routers and limits see the path in it",
		func(x *exam) {
			l := perMinute("text", 1)
			l.Match = gate.Route("GET", "/v1/text")
			x.app(x.gate(gate.Config{Exempt: []string{"/healthz"}, Limiters: []gate.Limiter{l}}), textRoute, Route{"GET", "/healthz", Write})
			x.send(ask("GET http://site.test/v1/text")).passed().budget(1, 0, 60)
			x.send(ask("GET http://site.test/v1/text")).refused(1, 0, 60, 60)
			x.send(ask("GET http://site.test/healthz")).passed().untouched()
		}},
	{"BR091_long_keys",
		"keys that differ in their last byte only are two keys, however long they are",
		func(x *exam) {
			l := perMinute("api-key", 1)
			l.Key = gate.Header("X-Api-Key")
			x.app(x.limit(l))
			long := strings.Repeat("k", 2500)
			for _, last := range []string{"a", "b"} {
				x.try(ask("GET /v1/text", "X-Api-Key", long+last)).passed().budget(1, 0, 60)
				x.try(ask("GET /v1/text", "X-Api-Key", long+last)).refused(1, 0, 60, 60)
			}
		}},
	{"BR073_panicking_functions",
		"a panic of the user's own function reaches the framework's recovery, and never turns into a request that passed",
		func(x *exam) {
			panics := func(field string) gate.RequestRate {
				l := perMinute(strings.ToLower(field), 9)
				l.Cost = func(r gate.Request) int {
					if r.Header(field) != "" {
						panic(ErrPanic)
					}
					return 1
				}
				return l
			}
			x.serve(Site{App: gates(x.limit(panics("Outer"))), Group: gates(x.limit(panics("Inner"))), Routes: []Route{textRoute}})
			for _, field := range []string{"Outer", "Inner"} {
				x.try(ask("GET /v1/text", field, "1")).is(500).text("failed with 500\n")
			}
			x.ran(0)
			if s := x.saw(1); s.outcomes() != "outer allowed" || !s.panicked { // the gate whose own function panicked has decided nothing
				x.failf("the observer saw %q, panicked %t; want the outer gate's panic", s.outcomes(), s.panicked)
			}
			for _, err := range x.errorHandled(2) {
				if !errors.Is(err, ErrPanic) {
					x.failf("the recovery got %v; want the panic's own value", err)
				}
			}
			x.try(ask("GET /v1/text")).passed()
		}},
	{"custom_body_with_many_fields",
		"a body of the user's own may add any number of fields",
		func(x *exam) {
			x.app(x.gate(gate.Config{Limiters: []gate.Limiter{perMinute("client", 1)},
				Body: func(_ gate.Request, ref *gate.Refusal) (string, []byte) {
					for i := range 9 {
						ref.SetHeader(fmt.Sprintf("X-Field-%d", i), fmt.Sprint("value ", i))
					}
					return TextType, []byte("no")
				}}))
			x.try(ask("GET /v1/text")).passed()
			res := x.send(ask("GET /v1/text")).is(429).budget(1, 0, 60).has(fieldRetryAfter, "60").text("no")
			for i := range 9 {
				res.has(fmt.Sprintf("X-Field-%d", i), fmt.Sprint("value ", i))
			}
		}},
	{"BR097_printed_decisions",
		"who logs a decision with %v must not log the key that is inside of it",
		func(x *exam) {
			l := perMinute("api-key", 1)
			l.Key = gate.Header("Authorization")
			x.app(x.limit(l))
			x.try(ask("GET /v1/text", "Authorization", "Bearer s3cr3t-1")).passed()
			if text := fmt.Sprintf("%+v", x.saw(1).decisions); strings.Contains(text, "s3cr3t") {
				x.failf("a printed decision carries the key: %s", text)
			}
		}},
	{"custom_body_cannot_change_the_gates_fields",
		"what a gate itself sends stays as it is: a client's backoff depends on it",
		func(x *exam) {
			x.app(x.gate(gate.Config{Limiters: []gate.Limiter{perMinute("client", 1)},
				Body: func(_ gate.Request, ref *gate.Refusal) (string, []byte) {
					for _, name := range append(x.variant.names(), "Retry-After", "Cache-Control", "Content-Type", "Content-Length") {
						ref.SetHeader(name, "7")
					}
					return TextType, []byte("no")
				}}))
			x.try(ask("GET /v1/text")).passed()
			x.send(ask("GET /v1/text")).is(429).budget(1, 0, 60).has(fieldRetryAfter, "60").has("Cache-Control", "no-store").
				has("Content-Type", TextType).has("Content-Length", "2").text("no")
		}},
	{"inner_429_without_fields",
		"where the gate that refuses sends no numbers, those of an outer gate would say that there is room",
		func(x *exam) {
			inner := x.gate(gate.Config{Headers: gate.HeadersNone, Limiters: []gate.Limiter{perMinute("inner", 1)}})
			x.serve(Site{App: gates(x.limit(perMinute("outer", 9))), Group: gates(inner), Routes: []Route{textRoute}})
			x.send(ask("GET /v1/text")).passed().budget(9, 8, 7)
			x.send(ask("GET /v1/text")).is(429).has(fieldRetryAfter, "60").silent()
		}},
}
