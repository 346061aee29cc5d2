package adaptertest

import (
	"fmt"

	"github.com/headgate-go/headgate/core/gate"
)

// behind is a gate that trusts the client itself as a proxy: the peer of every case is 127.0.0.1.
func (x *exam) behind(header string, n int, trusted ...string) *gate.Gate {
	return x.gate(gate.Config{Limiters: []gate.Limiter{perMinute("client", n)},
		Client: gate.ClientAddress{Trusted: gate.Prefixes(append(trusted, "127.0.0.1/32")...), Header: header}})
}

const forwardedFor = "X-Forwarded-For"

var proxyCases = []testCase{
	{"BR089_forged_addresses_are_ignored",
		"where no proxy is trusted, a client that invents a new address for each request gets no new budget",
		func(x *exam) {
			x.app(x.limit(perMinute("client", 5)))
			for i, name := range []string{forwardedFor, "X-Real-IP", "Forwarded", "CF-Connecting-IP", "True-Client-IP"} {
				value := fmt.Sprintf("203.0.113.%d", i)
				if name == "Forwarded" {
					value = "for=" + value
				}
				x.send(ask("GET /v1/text", name, value)).passed().budget(5, 4-i, 12*(i+1))
			}
			for i := range 15 {
				x.try(ask("GET /v1/text", forwardedFor, fmt.Sprintf("198.51.100.%d", i), "X-Real-IP", fmt.Sprintf("192.0.2.%d", i))).
					refused(5, 0, 12, 12)
			}
			x.send(ask("GET /v1/text", forwardedFor, "8.8.8.8")).refused(5, 0, 12, 12)
			x.ran(5)
		}},
	{"BR089_trusted_proxy_is_read_from_the_right",
		"what stands left of the address that our own proxy wrote was written by strangers",
		func(x *exam) {
			x.app(x.behind("", 5))
			for i := range 5 {
				x.send(ask("GET /v1/text", forwardedFor, fmt.Sprintf("6.6.6.%d, 203.0.113.7", i))).passed().budget(5, 4-i, 12*(i+1))
			}
			x.send(ask("GET /v1/text", forwardedFor, "6.6.6.66, 203.0.113.7")).refused(5, 0, 12, 12)
			x.send(ask("GET /v1/text", forwardedFor, "203.0.113.8")).passed().budget(5, 4, 12)
			x.send(ask("GET /v1/text", "X-Real-IP", "203.0.113.9")).passed().budget(5, 4, 12) // the peer itself
			x.try(ask("GET /v1/text")).passed().budget(5, 3, 24)
		}},
	{"BR089_several_lines_are_joined",
		"a proxy may add a line of its own instead of appending: the right-most is in the last line",
		func(x *exam) {
			x.app(x.behind("", 2, "10.0.0.0/8"))
			x.send(ask("GET /v1/text", forwardedFor, "6.6.6.6", forwardedFor, "203.0.113.7, 10.1.1.1", forwardedFor, "10.2.2.2")).
				passed().budget(2, 1, 30)
			x.send(ask("GET /v1/text", forwardedFor, "9.9.9.9", forwardedFor, "203.0.113.7", forwardedFor, "10.2.2.2")).passed().budget(2, 0, 60)
			x.send(ask("GET /v1/text", forwardedFor, "203.0.113.7")).refused(2, 0, 30, 30)
			x.send(ask("GET /v1/text", forwardedFor, "9.9.9.9")).passed().budget(2, 1, 30)
		}},
	{"BR089_garbage_stops_the_walk",
		"what is no address was not written by our proxy; the last good hop is the client",
		func(x *exam) {
			x.app(x.behind("", 2, "10.0.0.0/8"))
			x.send(ask("GET /v1/text", forwardedFor, "203.0.113.7, junk, 10.0.0.1")).passed().budget(2, 1, 30)
			x.send(ask("GET /v1/text", forwardedFor, "203.0.113.8, , 10.0.0.1")).passed().budget(2, 0, 60)
			x.send(ask("GET /v1/text", forwardedFor, "10.0.0.1")).refused(2, 0, 30, 30)
			x.send(ask("GET /v1/text", forwardedFor, "junk")).passed().budget(2, 1, 30) // the peer itself
		}},
	{"BR089_all_trusted",
		"where every hop is trusted, the right-most is the one that our own peer wrote; the left-most can be forged",
		func(x *exam) {
			x.app(x.behind("", 2, "10.0.0.0/8"))
			x.send(ask("GET /v1/text", forwardedFor, "10.0.0.1, 10.0.0.9")).passed().budget(2, 1, 30)
			x.send(ask("GET /v1/text", forwardedFor, "10.0.0.2, 10.0.0.9")).passed().budget(2, 0, 60)
			x.send(ask("GET /v1/text", forwardedFor, "10.0.0.9")).refused(2, 0, 30, 30)
		}},
	{"one_client_has_one_address",
		"port, brackets and the IPv4-in-IPv6 form are spellings, not clients",
		func(x *exam) {
			x.app(x.behind("", 5))
			for i, value := range []string{"203.0.113.7", "203.0.113.7:1234", "::ffff:203.0.113.7", "[::ffff:203.0.113.7]:80", " 203.0.113.7 "} {
				x.send(ask("GET /v1/text", forwardedFor, value)).passed().budget(5, 4-i, 12*(i+1))
			}
			x.try(ask("GET /v1/text", forwardedFor, "203.0.113.7")).refused(5, 0, 12, 12)
		}},
	{"BR092_IPv6_counts_by_network",
		"a household has a /64 to choose addresses from",
		func(x *exam) {
			x.app(x.behind("", 2))
			x.send(ask("GET /v1/text", forwardedFor, "2001:db8:1:2::1")).passed().budget(2, 1, 30)
			x.send(ask("GET /v1/text", forwardedFor, "[2001:db8:1:2::ffff]:443")).passed().budget(2, 0, 60)
			x.send(ask("GET /v1/text", forwardedFor, "2001:db8:1:2:3:4:5:6")).refused(2, 0, 30, 30)
			x.send(ask("GET /v1/text", forwardedFor, "2001:db8:1:3::1")).passed().budget(2, 1, 30)
			x.try(ask("GET /v1/text", forwardedFor, "203.0.113.7")).passed().budget(2, 1, 30)
			x.try(ask("GET /v1/text", forwardedFor, "203.0.113.8")).passed().budget(2, 1, 30)
		}},
}

var addressCases = []testCase{
	{"Forwarded_header",
		"RFC 7239 quotes addresses; with this header chosen, X-Forwarded-For is a stranger's",
		func(x *exam) {
			x.app(x.behind("Forwarded", 2))
			x.send(ask("GET /v1/text", "Forwarded", `for=6.6.6.6, for="203.0.113.7:80";proto=https`)).passed().budget(2, 1, 30)
			x.send(ask("GET /v1/text", "Forwarded", `For=203.0.113.7;by=10.0.0.1`, forwardedFor, "9.9.9.9")).passed().budget(2, 0, 60)
			x.send(ask("GET /v1/text", "Forwarded", `by=10.0.0.1; for=203.0.113.7`)).refused(2, 0, 30, 30)
			x.send(ask("GET /v1/text", "Forwarded", `for=_hidden`)).passed().budget(2, 1, 30) // the peer itself
		}},
	{"single_address_header",
		"a content network sends one address in a header of its own; no other header is then read",
		func(x *exam) {
			x.app(x.behind("CF-Connecting-IP", 1))
			x.send(ask("GET /v1/text", "CF-Connecting-IP", "203.0.113.7", forwardedFor, "9.9.9.9")).passed().budget(1, 0, 60)
			x.send(ask("GET /v1/text", "cf-connecting-ip", "203.0.113.7")).refused(1, 0, 60, 60)
			x.send(ask("GET /v1/text", forwardedFor, "203.0.113.8")).passed().budget(1, 0, 60) // the peer itself
			x.try(ask("GET /v1/text")).refused(1, 0, 60, 60)
		}},
	{"an_address_is_no_api_key",
		"an API key 127.0.0.1 must not drain the budget of that address",
		func(x *exam) {
			l := perMinute("key", 1)
			l.Key = gate.Header("X-Api-Key")
			x.app(x.limit(l))
			x.try(ask("GET /v1/text", "X-Api-Key", "127.0.0.1")).passed().budget(1, 0, 60)
			x.try(ask("GET /v1/text")).passed().budget(1, 0, 60)
			x.try(ask("GET /v1/text")).refused(1, 0, 60, 60)
		}},
	{"BR094_unix_socket_has_no_address",
		"all clients behind a unix socket must not become one client, nor one called <nil>",
		func(x *exam) {
			x.probe.network = "unix"
			x.app(x.limit(perMinute("client", 1)))
			for range 2 {
				x.send(ask("GET /v1/text", forwardedFor, "203.0.113.7")).passed().untouched()
			}
			x.outcomes(2, "client skipped (missing_key)")
		}},
	{"BR094_trusted_unix_socket",
		"a proxy on the same machine speaks for its clients, where TrustUnix says so",
		func(x *exam) {
			x.probe.network = "unix"
			x.app(x.gate(gate.Config{Limiters: []gate.Limiter{perMinute("client", 1)}, Client: gate.ClientAddress{TrustUnix: true}}))
			for _, addr := range []string{"203.0.113.7", "203.0.113.8"} {
				x.send(ask("GET /v1/text", forwardedFor, addr)).passed().budget(1, 0, 60)
				x.send(ask("GET /v1/text", forwardedFor, addr)).refused(1, 0, 60, 60)
			}
			x.send(ask("GET /v1/text")).passed().untouched()
		}},
}
