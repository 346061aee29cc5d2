package faulttest

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// What the moves are about: a few tenants that make half of the traffic and whose slots move, and many whose do not.
const (
	moveRate   = 500
	hotTenants = 15
	hotBurst   = 2000 // more than the traffic asks for
	coldBurst  = 10
	heldSlots  = 3
)

var moveCases = []Case{
	{Name: "BR056_slots_moved_under_load", Why: "while a slot moves its keys are on two nodes, and calls of several keys are refused by both: limits are off, " +
		"or counted twice, whenever somebody adds a node", run: func(s *scene) {
		nodes := s.cluster(redistest.WithReplicas(0))
		limiter := tenants(coldBurst)
		limiter.LimitFor = func(_ gate.Request, key string) (limit.Rule, bool) {
			return limit.PerDay(1).WithBurst(hotBurst), strings.HasPrefix(key, secret+"hot")
		}
		slots := gate.ConcurrentRequests{Name: "slots", Max: plenty, Key: gate.Header(tenantHeader), LeaseTime: shortLease}
		slots.MaxFor = func(_ gate.Request, key string) (int, bool) { return heldSlots, strings.HasSuffix(key, "holder") }
		sv := s.serveOn(nodes.Addrs(), gate.Config{Limiters: []gate.Limiter{limiter, slots}, StoreTimeout: roomy})
		sv.settled("at first", "warm", patience)
		sv.warmUp()
		start := sv.atRest()
		sv.settled("after the warm-up", "warm", patience)

		var hot []string
		for i := range hotTenants {
			hot = append(hot, "hot"+strconv.Itoa(i))
		}
		// One of those that move holds all of its slots all the time, longer than a lease lives.
		holder := "hot-holder"
		var held []*gate.Admission
		for range heldSlots {
			held = append(held, sv.gate.Admit(context.Background(), call(holder)))
		}
		random, where := rand.New(rand.NewPCG(56, 0)), sv.owners()
		beside := s.bystander()
		load := sv.traffic(moveRate, func() string {
			switch n := random.IntN(20); {
			case n < 10:
				return hot[random.IntN(len(hot))]
			case n == 10:
				return holder
			}
			return "cold" + strconv.Itoa(random.IntN(200))
		})
		wait(500 * time.Millisecond)
		began := time.Now()
		for _, back := range []bool{false, true} {
			for _, tenant := range append(slices.Clone(hot), holder) {
				slot, home := where.slot(tenant), where.of(tenant)
				to := home
				if !back {
					to = nodes.Servers()[(slices.Index(nodes.Servers(), home)+1)%len(nodes.Servers())]
				}
				m := nodes.BeginMove(slot, to)
				wait(60 * time.Millisecond)
				m.Keys(1) // of two, where it is the holder's
				wait(60 * time.Millisecond)
				m.Finish()
			}
		}
		took := time.Since(began)
		wait(300 * time.Millisecond)
		again := s.answered("TRYAGAIN")
		asks := s.answered("ASK")
		shots := load.stop()
		all, each := byTenant(shots)
		s.notef("%d slots moved and moved back in %v under %d requests/s: %d requests, %d admitted, %d refused, %d undecided; the nodes answered "+
			"TRYAGAIN %d times and ASK %d times; failures: %v", len(hot)+1, took.Round(time.Millisecond), moveRate, all.asked, all.admitted, all.refused, all.open, again, asks, sv.classesOf(0, ""))
		if again == 0 || asks == 0 {
			sv.failf("no node answered TRYAGAIN, or none ASK: the case proves nothing")
		}
		if counted := sv.undisturbed(beside, shots); counted.open*200 > counted.asked {
			sv.failf("%d of %d requests were undecided; at most 0.5 %% should be; the breaker: %q; the log:\n%s", counted.open, counted.asked,
				sv.watch.changes(), sv.tail())
		}
		for tenant, one := range each {
			burst := coldBurst
			if strings.HasPrefix(tenant, "hot") {
				burst = hotBurst
			}
			switch {
			case tenant == holder && one.admitted > 0:
				sv.failf("%d requests were admitted where all %d slots were held", one.admitted, heldSlots)
			case tenant == holder:
			default:
				sv.exact(tenant, one, burst)
			}
		}
		for _, a := range held {
			a.Done(nil)
		}
		if _, ok := until(patience, func() bool { return sv.get(holder).status == 200 }); !ok {
			sv.failf("the slots that were held are not free")
		}
		now, left := sv.backAt(start, backWithin)
		s.notef("at the start %+v, %v after %+v", start, left.Round(time.Millisecond), now)
		sv.noLeases()
	}},
}

// exact checks that a tenant was admitted as often as its limit says, and charged for just that. A request that nobody
// decided may have been charged as well. It sends another one.
func (sv *service) exact(tenant string, one *sum, burst int) {
	var r *reply
	if _, ok := until(patience, func() bool { r = sv.get(tenant); return r.decided() }); !ok {
		sv.fatalf("%s is not decided any more", tenant)
	}
	got := burst // or else it would have passed
	if r.status == http.StatusOK {
		got = charged(r, burst) - 1
	}
	if one.admitted > burst || got < one.admitted || got > one.admitted+one.open || one.refused > 0 && got != burst {
		sv.failf("%s: of %d requests %d admitted, %d refused and %d undecided at a limit of %d; %d were charged", tenant, one.asked,
			one.admitted, one.refused, one.open, burst, got)
	}
}

// answered returns how often the nodes answered with an error of this name.
func (s *scene) answered(name string) int {
	n := 0
	for _, node := range s.nodes.Servers() {
		stats, _ := s.ask(node, "INFO", "errorstats").(string)
		for line := range strings.Lines(stats) {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "errorstat_"+name+":count="); ok {
				count, _ := strconv.Atoi(rest)
				n += count
			}
		}
	}
	return n
}
