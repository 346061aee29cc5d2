package faulttest

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/gate"
)

// Kills is how many primaries tests kill in every run.
const Kills = 1

// RunKills kills primaries of a cluster under load, one after another, each when the one before is back as a replica, which is
// after clients had to find the new one without it, and tells what each failover cost. [Kills] is what tests use; twenty are for looking at the figures:
//
//	go test -v -run TestKills -faulttest.kills=20
//
// where the test has a flag of that name.
func RunKills(t *testing.T, newStore NewStoreOn, kills int) {
	runAll(t, []Case{KillCase(kills)}, newStore, 1)
}

const (
	killRate    = 500
	killTenants = 90 // of each round
	killBurst   = 25 // reached by half of them before, during or after the failover
	// enforcedWithin is how soon limits hold again once there is a new primary.
	enforcedWithin = 5 * time.Second
	// replicated is how old a write may be and lost all the same with the primary that confirmed it: replication does not
	// wait. On loopback it is a moment, if anything.
	replicated = 100 * time.Millisecond
)

// KillCase is the case of [RunKills].
func KillCase(kills int) Case {
	return Case{Name: "BR057_primaries_killed_under_load", Waits: true,
		Why: "a client that goes on asking the node that is gone leaves a third of the tenants without limits until somebody restarts the service",
		run: func(s *scene) {
			nodes := s.cluster()
			sv := s.serveOn(nodes.Addrs(), gate.Config{Limiters: both(killBurst), StoreTimeout: roomy})
			sv.replaced(kills, killRate, killed)
		}}
}

// costs tells and checks what the failovers cost.
func (sv *service) costs(all []failover, shots []shot, how takeover, beside *bystander) {
	var inside sum
	var slowest time.Duration
	for i, k := range all {
		var hit, others sum
		var from time.Time // of what may be the end
		run := 0
		for _, x := range shots {
			if x.sent.Before(k.at) || x.sent.After(k.end) {
				continue
			}
			if !k.hit[x.tenant] {
				others.add(x)
				continue
			}
			hit.add(x)
			switch {
			case run >= backRun || x.sent.Before(k.heir):
			case !x.decided:
				run = 0
			default:
				if run++; run == 1 {
					from = x.sent
				}
			}
		}
		if run < backRun {
			sv.failf("failover %d: limits are not enforced %v after there was a new primary", i+1, enforcedWithin)
			continue
		}
		back := from.Sub(k.heir)
		slowest = max(slowest, back)
		inside.merge(hit)
		inside.merge(others)
		sv.notef("failover %d: a new primary after %v, enforced %v later; undecided were %d of %d requests of the node's tenants, %d of %d of the others", i+1,
			k.heir.Sub(k.at).Round(time.Millisecond), back.Round(time.Millisecond), hit.open, hit.asked, others.open, others.asked)
	}
	outside := sv.undisturbed(beside, slices.DeleteFunc(slices.Clone(shots), func(x shot) bool { return within(all, x) }))
	total, each := byTenant(shots)
	sv.notef("%d failovers, %d requests: %d admitted, %d refused, %d passed undecided; enforced at most %v after the new primary; outside the failovers "+
		"%d of %d undecided (%.2f %%)", len(all), total.asked, total.admitted, total.refused, total.open, slowest.Round(time.Millisecond), outside.open, outside.asked,
		100*float64(outside.open)/float64(max(outside.asked, 1)))
	if outside.open*100 >= outside.asked {
		sv.failf("outside the failovers %d of %d requests were undecided; less than 1 %% should be: %v", outside.open, outside.asked, sv.classesOf(0, ""))
	}
	if inside.open == 0 && !how.gentle {
		sv.failf("no request was undecided while a primary was dead: the case proves nothing")
	}
	sv.lost(all, shots, each)
}

// backRun is how many requests of a node's tenants are decided in a row where limits are enforced again.
const backRun = 10

func (s *sum) merge(o sum) {
	s.asked, s.admitted, s.refused, s.open = s.asked+o.asked, s.admitted+o.admitted, s.refused+o.refused, s.open+o.open
}

// within says whether a request was on its way between the death of a primary and the end of the time to come back.
func within(all []failover, x shot) bool {
	for _, k := range all {
		if x.back.After(k.at) && x.sent.Before(k.end) {
			return true
		}
	}
	return false
}

// lost counts what was admitted beyond the limits. What passed undecided is the price of failing open. What was decided is
// bounded by the limit, but for admissions that the old primary confirmed and the new one never heard of: those of the moment
// before a kill, and under sentinels those of the time in which both are primaries, since the old one is told last.
func (sv *service) lost(all []failover, shots []shot, each map[string]*sum) {
	recent := map[string]int{}
	for _, k := range all {
		for _, x := range shots {
			if x.decided && x.passed && k.hit[x.tenant] && x.sent.Before(k.one) && x.back.After(k.at.Add(-replicated)) {
				recent[x.tenant]++
			}
		}
	}
	var above, worst, open, forgotten, limited int
	for tenant, one := range each {
		excess := max(0, one.admitted-killBurst)
		above += excess
		worst = max(worst, one.admitted+one.open-killBurst)
		open = max(open, one.open)
		if one.refused > 0 {
			limited++
		}
		if excess > recent[tenant] {
			sv.failf("%s: %d requests admitted at a limit of %d, beside %d that passed undecided; %d were confirmed just before it had another primary", tenant,
				one.admitted, killBurst, one.open, recent[tenant])
		}
		// One more tells what the state remembers.
		if r := sv.get(tenant); r.decided() && r.status == http.StatusOK {
			charged := charged(r, killBurst) - 1
			forgotten += max(0, one.admitted-charged)
			if charged > one.admitted+one.open {
				sv.failf("%s: %d requests charged, where %d were admitted and %d undecided", tenant, charged, one.admitted, one.open)
			}
		}
	}
	sv.notef("%d tenants with a limit of %d, %d of them reached it: decided admissions above limits %d in all; with what passed undecided at most %d above on a "+
		"key (at most %d undecided on one); admissions that the new primaries did not know: %d", len(each), killBurst, limited, above, worst, open, forgotten)
}
