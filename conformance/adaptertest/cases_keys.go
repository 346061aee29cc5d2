package adaptertest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

var keyCases = []testCase{
	{"value_of_earlier_middleware",
		"the key that is worth having is the one that authentication stored; each framework stores it its own way",
		func(x *exam) {
			x.app(x.limit(perTenant(2)))
			x.send(ask("GET /v1/text", TenantHeader, "a")).passed().budget(2, 1, 30)
			x.send(ask("GET /v1/text", TenantHeader, "a")).passed().budget(2, 0, 60)
			x.send(ask("GET /v1/text", TenantHeader, "a")).refused(2, 0, 30, 30)
			x.send(ask("GET /v1/text", TenantHeader, "b")).passed().budget(2, 1, 30)
			x.ran(3)
		}},
	{"keys_survive_the_next_request",
		"Fiber reuses the memory behind its strings: a key that is not copied turns into the next request's",
		func(x *exam) {
			x.app(x.limit(perTenant(20)))
			tenants := []string{"tenantAAAA", "tenantBBBB", "tenantC"}
			for i := range 20 {
				for _, tenant := range tenants {
					x.try(ask("GET /v1/text", TenantHeader, tenant)).passed().budget(20, 19-i, 3*(i+1))
				}
			}
			x.try(ask("GET /v1/text", TenantHeader, "tenantBBBB")).refused(20, 0, 3, 3)
			keys := map[string]string{}
			for i, s := range x.events(61)[:60] {
				if tenant := tenants[i%3]; i < 3 {
					keys[tenant] = s.keys()
				} else if keys[tenant] != s.keys() {
					x.failf("event %d: the key of %s has another digest than at first", i, tenant)
				}
			}
			if len(keys) != 3 || keys[tenants[0]] == keys[tenants[1]] || keys[tenants[1]] == keys[tenants[2]] {
				x.failf("the digests are %v; want three different ones", keys)
			}
			if x.client.dials != 1 {
				x.failf("%d connections were needed; the case is about one", x.client.dials)
			}
		}},
	{"BR095_no_key_uses_the_address",
		"callers without a key must not share one budget with all others, nor go unlimited",
		func(x *exam) {
			l := perTenant(5)
			l.Anonymous = limit.PerMinute(1)
			x.app(x.limit(l))
			x.send(ask("GET /v1/text")).passed().budget(1, 0, 60)
			x.outcomes(1, "tenant allowed (missing_key)")
			x.send(ask("GET /v1/text", TenantHeader, "  ")).refused(1, 0, 60, 60)
			x.outcomes(2, "tenant denied (missing_key)")
			x.send(ask("GET /v1/text", TenantHeader, "127.0.0.1")).passed().budget(5, 4, 12)
			x.outcomes(3, "tenant allowed")
			x.ran(2)
		}},
	{"BR095_no_key_skips",
		"who chose to skip gets no header and no refusal, and the skip is counted",
		func(x *exam) {
			l := perTenant(1)
			l.OnMissingKey = gate.MissingKeySkip
			x.app(x.limit(l))
			x.send(ask("GET /v1/text")).passed().untouched()
			x.try(ask("GET /v1/text")).passed().untouched()
			x.outcomes(2, "tenant skipped (missing_key)")
			x.send(ask("GET /v1/text", TenantHeader, "a")).passed().budget(1, 0, 60)
		}},
	{"BR095_no_key_is_rejected",
		"a 400 says what is missing, has no numbers, and leaves the other limiters alone",
		func(x *exam) {
			l := perTenant(2)
			l.OnMissingKey = gate.MissingKeyReject
			x.app(x.limit(perMinute("client", 10), l))
			x.send(ask("GET /v1/text")).is(400).silent().lacks(fieldRetryAfter).
				problem("invalid_request_error", 0).of("tenant").says(`The request carries no key for the limit "tenant".`)
			x.outcomes(1, "client skipped, tenant rejected (missing_key)")
			x.send(ask("GET /v1/text", TenantHeader, "a")).passed().budget(2, 1, 30)
			x.ran(1)
		}},
	{"BR095_key_function_fails",
		"an error of the key function is an absent key, never a silent skip",
		func(x *exam) {
			l := perMinute("func", 1)
			l.Key = gate.KeyFunc(func(r gate.Request) (string, error) {
				if r.Header("X-Fail") != "" {
					return "", errors.New("no such account")
				}
				return r.Header("X-Account"), nil
			})
			x.app(x.limit(l))
			x.try(ask("GET /v1/text", "X-Account", "a")).passed().budget(1, 0, 60)
			x.try(ask("GET /v1/text", "X-Account", "a")).refused(1, 0, 60, 60)
			x.try(ask("GET /v1/text", "X-Fail", "1")).passed().budget(1, 0, 60)
			x.outcomes(3, "func allowed (missing_key)")
			x.try(ask("GET /v1/text", "X-Fail", "1")).refused(1, 0, 60, 60)
		}},
	{"header_key_is_the_first_line",
		"field names have no case; of several lines the first counts, in every framework; values are not changed",
		func(x *exam) {
			l := perMinute("api-key", 1)
			l.Key = gate.Header("X-Api-Key")
			x.app(x.limit(l))
			x.send(ask("GET /v1/text", "X-Api-Key", "one", "X-Api-Key", "two")).passed().budget(1, 0, 60)
			x.send(ask("GET /v1/text", "x-api-KEY", "one")).refused(1, 0, 60, 60)
			x.send(ask("GET /v1/text", "X-Api-Key", "two")).passed().budget(1, 0, 60)
			x.send(ask("GET /v1/text", "X-Api-Key", "ONE")).passed().budget(1, 0, 60)
		}},
	{"cookie_and_joined_keys",
		"a key of parts reads several fields of one request; none may have changed when the last is read",
		func(x *exam) {
			l := perMinute("session", 1)
			l.Key = gate.Join(gate.Cookie("sid"), gate.Header("X-A"), gate.Header("X-B"), gate.Value(TenantValue))
			x.app(x.limit(l))
			fields := []string{"Cookie", "other=1; sid=s1", "X-A", "aaaa", "X-B", "bbbb", TenantHeader, "tttt"}
			x.send(ask("GET /v1/text", fields...)).passed().budget(1, 0, 60)
			x.try(ask("GET /v1/text", fields...)).refused(1, 0, 60, 60)
			for i, other := range []string{"other=1; sid=s2", "aaab", "bbbc", "tttu"} {
				changed := append([]string(nil), fields...)
				changed[2*i+1] = other
				x.try(ask("GET /v1/text", changed...)).passed().budget(1, 0, 60)
			}
			x.ran(5)
		}},
	{"fields_stay_while_asked",
		"a cost function may hold two fields, and all lines of one, at the same time",
		func(x *exam) {
			l := perMinute("client", 60)
			l.Cost = func(r gate.Request) int {
				method, path, a, b := r.Method(), r.Path(), r.Header("X-A"), r.Header("X-B")
				lines := r.HeaderValues("X-Line")
				got := fmt.Sprintf("%s %s %s %s %q %q %q", method, path, a, b, lines, r.HeaderValues("X-None"), r.Header("X-None"))
				if want := `GET /v1/text aaa bbb ["1" "2, 3" "4"] [] ""`; got != want {
					x.probe.fault("the cost function found %s; want %s", got, want)
				}
				return len(lines)
			}
			x.app(x.limit(l))
			x.send(ask("GET /v1/text", "X-Line", "1", "X-A", "aaa", "X-Line", "2, 3", "X-B", "bbb", "X-Line", "4")).passed().budget(60, 57, 3)
		}},
	{"BR097_keys_are_secrets",
		"an API key in a log line or an event is an API key in everybody's hands",
		func(x *exam) {
			l := perMinute("api-key", 1)
			l.Key = gate.Header("Authorization")
			store := newSwitchStore(false)
			x.app(x.gate(gate.Config{Store: store, Limiters: []gate.Limiter{l}}))
			x.try(ask("GET /v1/text", "Authorization", "Bearer s3cr3t-1")).passed()
			x.try(ask("GET /v1/text", "Authorization", "Bearer s3cr3t-1")).is(429)
			store.broken.Store(true)
			x.try(ask("GET /v1/text", "Authorization", "Bearer s3cr3t-2")).passed()
			for _, e := range x.events(3) {
				if text := fmt.Sprint(e.outcomes(), e.keys(), e.route, e.err); strings.Contains(text, "s3cr3t") {
					x.failf("an event carries the key: %s", text)
				}
			}
			if text := x.logs.String(); strings.Contains(text, "s3cr3t") || !strings.Contains(text, "the store failed") {
				x.failf("the log must tell the failure and not the key: %s", text)
			}
		}},
}
