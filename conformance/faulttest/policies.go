package faulttest

import (
	"net/http"
	"runtime"
	"strconv"

	"github.com/headgate-go/headgate/core/gate"
)

var policyCases = []Case{
	{Name: "fail_closed_and_fail_local", Why: "whoever asked for a refusal, or for a local limit, must get it, in an outage of all times",
		run: func(s *scene) {
			closed, local := tenants(plenty), tenants(10)
			closed.Name, closed.OnStoreError, closed.Match = "closed", gate.FailClosed, gate.Paths("/closed")
			local.Name, local.OnStoreError, local.Match = "local", gate.FailLocal, gate.Paths("/local")
			sv := s.serve(s.proxied(), gate.Config{Limiters: []gate.Limiter{closed, local}, Instances: 2})
			for _, path := range []string{"/closed", "/local"} {
				if _, ok := until(patience, func() bool { return sv.try("warm", path).decided() }); !ok {
					sv.fatalf("%s is not decided at first", path)
				}
			}
			s.proxy.Refuse()
			handled := sv.handled.Load()
			for range 30 {
				if r := sv.try("a", "/closed"); r.err != nil || r.status != http.StatusServiceUnavailable || r.took > answered ||
					r.header.Get("Retry-After") == "" {
					sv.failf("fail_closed: %v, status %d, %v, after %v", r.err, r.status, r.header, r.took)
				}
			}
			if n := sv.handled.Load() - handled; n != 0 {
				sv.failf("fail_closed: the handler ran %d times", n)
			}
			passed := 0
			for range 30 {
				r := sv.try("a", "/local")
				if r.status == http.StatusOK {
					passed++
				} else if r.status != http.StatusTooManyRequests {
					sv.failf("fail_local: %v, status %d", r.err, r.status)
				}
			}
			if passed != 5 {
				sv.failf("fail_local: %d of 30 passed; half of a limit of 10 is 5", passed)
			}
			s.proxy.Pass()
			if _, ok := until(backWithin, func() bool {
				r := sv.try("b", "/closed")
				return r.status == http.StatusOK && r.decided()
			}); !ok {
				sv.failf("fail_closed: still refused after the outage; the log:\n%s", sv.tail())
			}
			sv.auditLog()
		}},
	{Name: "BR074_fail_local_is_bounded", Why: "an emergency map without a bound turns the outage of a store into one of memory",
		Waits: true, run: func(s *scene) {
			const keys, burst = 150_000, 10
			local := tenants(burst)
			local.OnStoreError = gate.FailLocal
			cost := burst
			local.Cost = func(gate.Request) int { return cost }
			addr := s.proxied()
			s.proxy.Refuse()
			sv := s.serve(addr, gate.Config{Limiters: []gate.Limiter{local}, Instances: 1})
			sv.watch.forget = true
			before := heap()
			for i := range keys {
				if d := sv.admit(strconv.Itoa(i)); d.Outcome != gate.OutcomeFailLocal {
					sv.failf("the first request of a key: outcome %v", d.Outcome)
				}
			}
			grown := int64(heap()) - int64(before)
			// All of them are empty now. Those that are not remembered were let go, which is what a bound is.
			known, sample := 0, 0
			cost = 1
			for i := 0; i < keys; i += 10 {
				sample++
				if sv.admit(strconv.Itoa(i)).Outcome == gate.OutcomeDenied {
					known++
				}
			}
			s.notef("%d keys: the heap grew by %d KiB; %d of %d are remembered", keys, grown>>10, known, sample)
			if grown > 64<<20 || known > sample*9/10 {
				sv.failf("of %d keys during an outage %d of %d are remembered, in %d MiB: there is no bound", keys, known, sample, grown>>20)
			}
			if known == 0 {
				sv.failf("no key is remembered: there is no limit")
			}
		}},
}

// heap returns how many bytes of it are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what the first found dead is freed by now
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
