package faulttest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
)

// atRate runs n calls of f, each in a goroutine of the service, and returns when all are done.
func (sv *service) atRate(n int, every time.Duration, f func(i int)) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	sv.inService(func() {
		var running sync.WaitGroup
		for i := range n {
			<-ticker.C
			running.Go(func() { f(i) })
		}
		running.Wait()
	})
}

// timed runs f and checks that it came back soon.
func (sv *service) timed(what string, f func()) {
	start, allowance := time.Now(), sv.pulse.allowance()
	f()
	if took := time.Since(start); took > answered+allowance() {
		sv.failf("%s came back after %v", what, took)
	}
}

var flowCases = []Case{
	{Name: "BR065_parallel_decisions_of_a_silent_server", Why: "clients ignore deadlines by default, wait for each other's locks and for the pool: " +
		"the deadline must be kept without their help", run: func(s *scene) {
		sv := s.serve(s.proxied(), gate.Config{Limiters: []gate.Limiter{tenants(plenty)}})
		sv.settled("at first", "a", patience)
		s.proxy.Silence()
		sv.inService(func() {
			var running sync.WaitGroup
			for i := range 150 {
				running.Go(func() {
					switch i % 3 {
					case 0:
						sv.timed("a request", func() { sv.admit("a") })
					case 1:
						sv.timed("a decision with a deadline of 50ms", func() {
							err := sv.decide(time.Time{}, "b", plenty, 1, 50*time.Millisecond)
							if class := driver.ClassOf(err); class != driver.ClassTimeout && class != driver.ClassOverflow {
								sv.failf("a decision of a silent server: %v", err)
							}
						})
					case 2:
						ctx, cancel := context.WithCancel(context.Background())
						batch := []driver.Entry{{Claims: []driver.Claim{claim("c", plenty, 1)}}}
						time.AfterFunc(20*time.Millisecond, cancel)
						sv.timed("a canceled decision", func() { _ = sv.store.Decide(ctx, time.Time{}, batch) })
						cancel()
					}
				})
			}
			running.Wait()
		})
		s.proxy.Drop()
		s.proxy.Pass()
		sv.settled("afterwards", "a", backWithin)
	}},
	{Name: "far_away_after_an_outage", Why: "where dialing and a handshake take longer than a decision may, a client that does both within the " +
		"decision's deadline never gets a connection again", Waits: true, run: func(s *scene) {
		const trip = 300 * time.Millisecond // two of them, and what the machine needs, are longer than the deadline
		sv := s.serve(s.proxied(), gate.Config{Limiters: []gate.Limiter{tenants(plenty)}, StoreTimeout: 2 * trip})
		sv.settled("at first", "a", patience)
		s.proxy.Drop()
		sv.load(20, faultRate, "a")
		s.proxy.Delay(trip)
		took := sv.settled("after the outage", "a", 2*backWithin) // a client may have several connections to make
		s.notef("enforced %v after the outage, with round trips of %v and a deadline of %v", took.Round(time.Millisecond), trip, 2*trip)
		s.proxy.Pass()
		sv.audit(1)
	}},
	{Name: "BR067_overload_and_outage", Why: "whoever waits for a connection of the pool waits without a deadline, and after an outage the pool does not recover",
		run: func(s *scene) {
			sv := s.serve(s.proxied(), gate.Config{Limiters: []gate.Limiter{tenants(plenty)}})
			sv.settled("at first", "a", patience)
			s.proxy.Delay(5 * time.Millisecond)
			const n = 2000
			var open atomic.Int64
			sv.atRate(n, time.Millisecond, func(i int) {
				sv.timed("a request", func() {
					if sv.admit(fmt.Sprint("a", i%50)).Outcome == gate.OutcomeFailOpen {
						open.Add(1)
					}
				})
			})
			s.server.Stop()
			sv.atRate(400, 5*time.Millisecond, func(i int) { sv.timed("a request", func() { sv.admit(fmt.Sprint("a", i%50)) }) })
			s.server.Restart()
			s.proxy.Pass()
			took := sv.settled("after the outage", "a", backWithin)
			s.notef("%d of %d requests undecided under overload; enforced %v after the outage", open.Load(), n, took.Round(time.Millisecond))
			sv.auditLog()
		}},
	{Name: "BR068_clients_that_leave", Why: "a wave of reloads is no failure of the store: it must neither open the breaker nor give requests away",
		run: func(s *scene) {
			limiter := tenants(60)
			sv := s.serve(s.proxied(), gate.Config{Limiters: []gate.Limiter{limiter}, StoreTimeout: steady})
			sv.settled("at first", "other", patience)
			s.proxy.Delay(5 * time.Millisecond)
			var running sync.WaitGroup
			for range 25 {
				running.Go(func() {
					for range 20 {
						sv.leave("leaver")
					}
				})
			}
			for range 10 {
				running.Go(func() {
					for range 10 {
						sv.get("stayer")
					}
				})
			}
			running.Wait()
			var passed, left, charged int
			_, _ = until(patience, func() bool { // those who left do not tell when they are done
				n := sv.watch.count()
				_, more := until(100*time.Millisecond, func() bool { return sv.watch.count() > n })
				return !more
			})
			for _, e := range sv.watch.since(0) {
				switch {
				case strings.HasSuffix(e.tenant, "stayer") && !e.refused:
					passed++
				case strings.HasSuffix(e.tenant, "leaver"):
					left++
					if !e.refused {
						charged++
					}
				}
			}
			if passed != 60 {
				sv.failf("%d of 100 requests of clients that stayed passed at a limit of 60", passed)
			}
			if left < 60 || charged != 60 {
				sv.failf("%d requests of clients that left were seen, and %d charged at a limit of 60", left, charged)
			}
			outcomes := sv.watch.outcomes()
			if open, changes := outcomes[gate.OutcomeFailOpen], sv.watch.changes(); open != 0 || len(changes) > 0 {
				sv.failf("%d requests are counted as fail_open, and the breaker changed to %q; the log:\n%s", open, changes, sv.tail())
			}
			s.notef("%d requests of clients that left, %d of them seen to leave", left, outcomes[gate.OutcomeCanceled])
		}},
	{Name: "BR088_BR040_several_processes", Why: "with the state in each process, four processes admit four times the limit",
		run: func(s *scene) {
			addr := s.direct()
			var all [4]*service
			for i := range all {
				all[i] = s.serve(addr, gate.Config{Limiters: []gate.Limiter{limited("tenant", 10)}, StoreTimeout: steady})
			}
			var running sync.WaitGroup
			for i := range 100 {
				running.Go(func() {
					sv := all[i%len(all)]
					if r := sv.get("a"); !r.decided() {
						sv.failf("a request was not decided")
					}
				})
			}
			running.Wait()
			passed := 0
			for _, sv := range all {
				passed += int(sv.passed.Load())
			}
			if passed != 10 {
				s.failf("%d of 100 requests to four processes passed at a limit of 10", passed)
			}
		}},
}

// leave sends a request and closes the connection a millisecond later.
func (sv *service) leave(tenant string) {
	c, err := net.Dial("tcp", strings.TrimPrefix(sv.base, "http://"))
	if err != nil {
		sv.failf("dial: %v", err)
		return
	}
	defer c.Close()
	req, _ := http.NewRequest("GET", sv.base+"/", nil)
	req.Header.Set(tenantHeader, secret+tenant)
	_ = req.Write(c)
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, _ = c.Read(make([]byte, 1))
}
