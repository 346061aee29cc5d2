package faulttest

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// limited is a limiter of the cases that count: so many, and no token comes back within a test.
func limited(name string, burst int) gate.RequestRate {
	return gate.RequestRate{Name: name, Limit: limit.PerDay(1).WithBurst(burst), Key: gate.Header(tenantHeader)}
}

// decidedRun sends requests until n of them were decided, and checks how many of those pass.
func (sv *service) decidedRun(what, tenant string, n, pass int) {
	decided, passed := 0, 0
	if _, ok := until(patience, func() bool {
		if r := sv.get(tenant); r.decided() {
			decided++
			if r.status == http.StatusOK {
				passed++
			}
		}
		return decided == n
	}); !ok || passed != pass {
		sv.failf("%s: %d of %d that were decided passed; want %d of %d", what, passed, decided, pass, n)
	}
}

// run sends n requests one after another and checks how many pass and are refused: none is undecided.
func (sv *service) run(what, tenant string, n, pass int) {
	passed, refused := 0, 0
	for range n {
		switch r := sv.get(tenant); {
		case !r.decided():
		case r.status == http.StatusOK:
			passed++
		case r.status == http.StatusTooManyRequests:
			refused++
		}
	}
	if passed != pass || refused != n-pass {
		sv.failf("%s: %d of %d passed and %d were refused; want %d and %d", what, passed, n, refused, pass, n-pass)
	}
}

var serverCases = []Case{
	{Name: "BR052_script_flush_and_restart", Why: "a server that forgot the script fails every call from then on: the limit is off for ever",
		run: func(s *scene) {
			addr := s.direct()
			sv := s.serve(addr, gate.Config{Limiters: []gate.Limiter{limited("tenant", 5)}, StoreTimeout: steady})
			sv.run("before the flush", "a", 2, 2)
			s.do("SCRIPT", "FLUSH")
			_, before := s.scriptCalls()
			sv.run("after the flush", "a", 10, 3)
			if _, texts := s.scriptCalls(); texts-before != 1 {
				sv.failf("after the flush the text was sent %d times", texts-before)
			}
			sv.run("before the restart", "b", 3, 3)

			three := s.serve(addr, gate.Config{Name: "three", StoreTimeout: steady,
				Limiters: []gate.Limiter{limited("x", 7), limited("y", 5), limited("z", 6)}})
			s.do("SCRIPT", "FLUSH")
			three.run("three limiters, after the flush", "a", 10, 5)
			three.audit(3)

			s.server.Restart()
			// The connections were cut, too. A client learns that of each of them by itself.
			sv.decidedRun("after the restart", "b", 10, 5)
			sv.audit(1)
		}},
	{Name: "BR063_foreign_state", Why: "a key that somebody else wrote must not switch off the limits of others, nor the service",
		run: func(s *scene) {
			sv := s.serve(s.direct(), gate.Config{Limiters: []gate.Limiter{limited("tenant", 1000)}, StoreTimeout: steady})
			key := sv.gate.StoreKey("tenant", secret+"a")
			sv.settled("at first", "a", patience)
			for _, command := range [][]string{{"RPUSH", key, "x"}, {"HSET", key, "x", "y"}, {"SADD", key, "x"}, {"ZADD", key, "1", "x"}} {
				s.do("DEL", key)
				s.do(command...)
				var running sync.WaitGroup
				for i := range 24 {
					running.Go(func() {
						if i%8 == 0 {
							if r := sv.get("a"); r.decided() || r.status != http.StatusOK {
								sv.failf("%s: answered with status %d, %v", command[0], r.status, r.header)
							}
						} else if r := sv.get("b" + strconv.Itoa(i)); !r.decided() {
							sv.failf("%s: a request of another tenant was not decided", command[0])
						}
					})
				}
				running.Wait()
			}
			s.do("DEL", key)
			if r := sv.get("a"); !r.decided() {
				sv.failf("not decided after the key was removed")
			}
			// A string that is no state of ours is as good as none, and gets an end.
			s.do("SET", key, "junk")
			sv.run("over a foreign string", "a", 2, 2)
			if life, _ := s.do("PTTL", key).(int64); life <= 0 {
				sv.failf("the key's PTTL is %d", life)
			}
			sv.audit(1)
		}},
	{Name: "BR073_start_while_the_store_is_down", Why: "a limiter is no reason for a service not to start",
		run: func(s *scene) {
			addr := s.proxied()
			s.proxy.Refuse()
			sv := s.serve(addr, gate.Config{Limiters: []gate.Limiter{tenants(plenty)}})
			for _, r := range sv.load(50, faultRate, "a") {
				if r.decided() {
					sv.failf("a request was decided without a store")
				}
			}
			s.proxy.Pass()
			took := sv.settled("after the start of the store", "a", backWithin)
			s.notef("enforced %v after the store appeared", took.Round(time.Millisecond))
			sv.audit(1)
		}},
	{Name: "closed_store", Why: "a store closed under a gate is no reason to panic or to refuse, and must be seen",
		run: func(s *scene) {
			sv := s.serve(s.direct(), gate.Config{Limiters: []gate.Limiter{tenants(plenty)}})
			sv.settled("at first", "a", patience)
			if err := sv.store.Close(); err != nil {
				sv.failf("Close: %v", err)
			}
			n := sv.watch.count()
			sv.load(20, 100, "a")
			sv.during(n, []driver.Class{driver.ClassClosed})
			sv.audit(1)
		}},
}

var lifeCases = []Case{
	{Name: "BR035_no_key_without_an_end", Why: "a key whose expiry is set by a second command stays for ever if the connection breaks between the two: " +
		"that client is refused for ever", run: func(s *scene) {
		sv := s.serve(s.proxied(), gate.Config{Limiters: []gate.Limiter{tenants(plenty)}})
		sv.left("warm", 10)
		for i := range 300 {
			name := "key" + strconv.Itoa(i%50)
			if i%10 == 0 {
				s.proxy.Cut(1)
				_ = sv.decide(time.Time{}, name, 10, 1, answered)
				s.proxy.Pass()
				sv.left("warm", 10)
			} else if err := sv.decide(time.Time{}, name, 10, 1, patience); err != nil {
				sv.left("warm", 10)
			}
		}
		keys, _ := s.do("KEYS", "*").([]any)
		if len(keys) < 50 {
			sv.failf("the server has %d keys; 50 or more are expected", len(keys))
		}
		for _, key := range keys {
			if life, _ := s.do("PTTL", key.(string)).(int64); life <= 0 {
				sv.failf("the PTTL of key %s is %d", key, life)
			}
		}
	}},
	{Name: "BR026_BR036_lives", Why: "state that ends early is a full bucket for whoever waits for it, and a unit mixed up keeps every key a thousand times too long",
		run: func(s *scene) {
			sv := s.serve(s.direct(), gate.Config{Limiters: []gate.Limiter{tenants(plenty)}})
			namer, ok := sv.store.(driver.KeyNamer)
			if !ok {
				sv.fatalf("the store is no driver.KeyNamer: nobody could look its keys up")
			}
			for i, rule := range []limit.Rule{limit.PerSecond(10).WithBurst(10), limit.PerMinute(60).WithBurst(60),
				limit.PerHour(60).WithBurst(60), limit.PerDay(1)} {
				fill := time.Duration(rule.Capacity()) * time.Hour
				if count, period := rule.Rate(); count > 0 {
					fill = time.Duration(rule.Capacity()) * period / time.Duration(count)
				}
				c := driver.Claim{Policy: "p", Subject: string(driver.AppendSubject(nil, fmt.Sprint("life", i))), Rule: rule, Cost: rule.Capacity()}
				key := namer.KeyName(c.Policy, c.Subject, c.Rule)
				start := time.Now()
				if _, err := sv.result(time.Time{}, c, patience); err != nil {
					sv.fatalf("%v: %v", rule, err)
				}
				life, _ := s.do("PTTL", key).(int64)
				low := fill.Milliseconds() - time.Since(start).Milliseconds() - 1
				if life < low || life > 2*fill.Milliseconds()+1000 {
					sv.failf("%v, emptied: PTTL %d ms, where %d ms fill it", rule, life, fill.Milliseconds())
				}
				if i > 0 {
					continue
				}
				took, gone := until(patience, func() bool { return s.do("EXISTS", key) == int64(0) })
				if !gone || time.Since(start) < fill {
					sv.failf("%v: the key is gone: %v, after %v", rule, gone, took)
				}
			}
		}},
}
