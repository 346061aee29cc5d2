package faulttest

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

var countCases = []Case{
	{Name: "BR077_one_call_per_decision", Why: "two commands for each limiter of each request make the store the bottleneck",
		run: func(s *scene) {
			shadow := tenants(plenty)
			shadow.Name, shadow.Mode = "shadow", gate.Shadow
			sv := s.serve(s.direct(), gate.Config{Limiters: []gate.Limiter{tenants(plenty), shadow}, StoreTimeout: steady})
			sv.get("a")
			before, _ := s.scriptCalls()
			const n = 50
			for range n {
				if r := sv.get("a"); !r.decided() {
					sv.failf("a request was not decided")
				}
			}
			if after, texts := s.scriptCalls(); after-before != n || texts > 1 {
				sv.failf("%d requests were %d calls of the script, %d of them with its text", n, after-before, texts)
			}
			sv.audit(1) // nothing failed
		}},
	{Name: "BR077_callers_share_calls", Why: "a hot key with a call for each request ends at what one core of the server can do",
		run: func(s *scene) {
			sv := s.serve(s.direct(), gate.Config{Limiters: []gate.Limiter{tenants(plenty)}, StoreTimeout: steady})
			sv.get("a")
			before, _ := s.scriptCalls()
			const callers, each = 256, 20
			sv.inService(func() {
				var running sync.WaitGroup
				start := make(chan struct{})
				for i := range callers {
					running.Go(func() {
						<-start
						for range each {
							if d := sv.admit("a" + strconv.Itoa(i%4)); d.Outcome != gate.OutcomeAllowed {
								sv.failf("outcome %v: %v", d.Outcome, d.Err)
							}
						}
					})
				}
				close(start)
				running.Wait()
			})
			after, _ := s.scriptCalls()
			s.notef("%d requests of %d callers were %d calls of the script", callers*each, callers, after-before)
			if after-before > callers*each/4 {
				sv.failf("%d requests of %d callers at a time were %d calls of the script", callers*each, callers, after-before)
			}
		}},
}

var memoryCases = []Case{
	{Name: "refused_tenant_costs_nothing", Why: "a client that hammers must not be able to keep the store busy with its refusals",
		run: func(s *scene) {
			sv := s.serve(s.direct(), gate.Config{Limiters: []gate.Limiter{limited("tenant", 1)}, StoreTimeout: steady})
			sv.run("at first", "a", 1, 1)
			start := time.Now()
			before, _ := s.scriptCalls()
			n := 0
			ticker := time.NewTicker(2 * time.Millisecond)
			defer ticker.Stop()
			for ; time.Since(start) < hammering; n++ {
				<-ticker.C
				if d := sv.admit("a"); d.Outcome != gate.OutcomeDenied {
					sv.failf("outcome %v, %v", d.Outcome, d.Err)
				}
			}
			after, _ := s.scriptCalls()
			most := int64(time.Since(start)/(2*time.Second)) + 1
			s.notef("%d refused requests in %v: %d calls of the script", n, time.Since(start).Round(time.Millisecond), after-before)
			if got := after - before; got > most || got < 1 {
				sv.failf("%d requests of a refused tenant in %v were %d calls of the script; want at most one every 2s", n, time.Since(start), got)
			}
		}},
	{Name: "memory_never_refuses_what_fits", Why: "a refused cost of 7 says nothing of cost 1: a memory that mixes them up refuses what was paid for",
		run: func(s *scene) {
			limiter := limited("tenant", 8)
			limiter.Limit = limit.PerSecond(10).WithBurst(8)
			cost := 1
			limiter.Cost = func(gate.Request) int { return cost }
			addr := s.direct()
			sv := s.serve(addr, gate.Config{Limiters: []gate.Limiter{limiter}, StoreTimeout: steady})
			// Another process looks before each request. What is there then is still there later, since the tenant sends
			// one request at a time.
			other := limiter
			other.Cost = func(gate.Request) int { return 0 }
			watcher := s.serve(addr, gate.Config{Limiters: []gate.Limiter{other}, StoreTimeout: steady})
			random := rand.New(rand.NewPCG(1, 2))
			remembered := 0
			_, _ = until(hammering, func() bool {
				cost = 1 + random.IntN(8)
				there := watcher.admit("a").Remaining
				d := sv.admit("a")
				if d.Outcome != gate.OutcomeAllowed && there >= cost {
					sv.failf("cost %d was refused (%v, reason %q) with %d tokens there", cost, d.Outcome, d.Reason, there)
				}
				if d.Reason == driver.ReasonMemory {
					remembered++
				}
				return false
			})
			if remembered == 0 {
				sv.failf("nothing was answered from memory; the case proves nothing")
			}
		}},
}

// hammering is how long a refused tenant hammers: long enough for two looks at the store.
const hammering = 4500 * time.Millisecond
