package storetest

import (
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// slotLeaseCases are about the life of leases: renewing, releasing, ending.
var slotLeaseCases = []Case{
	{"renewals", "a long request loses its slot although it renews, or one that lost it is not told",
		func(p *probe) {
			k, other := p.keyOf("slots", "alice"), p.keyOf("slots", "bob")
			if p.renew(k, 2, newLease(), leaseTime, at(0)) {
				p.errorf("a lease of a key that does not exist was renewed")
			}
			p.left("a renewal takes no slot", k, 2, 2, at(0))
			ids := p.hold(k, 2, 2, at(0))
			for range 3 {
				for i, id := range ids {
					if !p.renew(k, 2, id, leaseTime, at(0)) {
						p.errorf("held lease %d is lost", i+1)
					}
					if p.renew(other, 2, id, leaseTime, at(0)) {
						p.errorf("lease %d was renewed for somebody else", i+1)
					}
				}
			}
			p.left("renewals of others take no slot", other, 2, 2, at(0))
			p.full("renewals free no slot", k, 2, at(0))
		}},
	{"a_renewal_does_not_revive", "a lease that was released and comes back is held by nobody, for ever",
		func(p *probe) {
			k := p.key("slots")
			ids := p.hold(k, 2, 2, at(0))
			p.release(k, 2, at(0), ids...)
			for _, id := range append(ids, newLease()) {
				for range 2 {
					if p.renew(k, 2, id, leaseTime, at(0)) {
						p.errorf("a lease that is gone was renewed")
					}
				}
			}
			p.left("after renewals of what is gone", k, 2, 2, at(0))
		}},
	{"corrections_of_all_kinds_in_one_call", "a call whose corrections are sent in groups drops one group, or mixes their answers",
		func(p *probe) {
			k, w, a, b := p.key("slots"), p.key("more slots"), p.key("bucket"), p.key("window")
			ids, more := p.hold(k, 5, 5, at(0)), p.hold(w, 5, 3, at(0))
			p.take(a, perSecond(1, 9), 5, at(0))
			receipt := p.take(b, fixed(9, time.Minute), 5, at(0)).Receipt
			changes := []driver.Change{
				k.renewed(5, newLease(), leaseTime),
				{Kind: driver.Settle, Policy: a.policy, Subject: a.subject, Rule: perSecond(1, 9), Amount: -2},
				k.released(5, ids[0]),
				k.renewed(5, ids[1], leaseTime),
				w.released(5, more[2]),
				k.released(5, newLease()),
				w.renewed(5, ids[2], leaseTime), // of the other limit
				{Kind: driver.Settle, Policy: b.policy, Subject: b.subject, Rule: fixed(9, time.Minute), Amount: 3, Receipt: receipt},
				w.renewed(5, more[0], leaseTime),
				k.released(5, ids[3]),
				w.released(5, ids[4]), // of the other limit
				k.renewed(5, ids[2], leaseTime),
			}
			p.apply(at(0), changes...)
			for i, lost := range []bool{0: true, 6: true, 11: false} {
				if changes[i].Lost != lost {
					p.errorf("change %d of kind %d: lost %t, want %t", i, changes[i].Kind, changes[i].Lost, lost)
				}
			}
			p.left("two of five released", k, 5, 2, at(0))
			p.left("one of three released", w, 5, 3, at(0))
			p.admitted("2 of 5 given back", p.take(a, perSecond(1, 9), 0, at(0)), 6)
			p.admitted("3 more taken", p.take(b, fixed(9, time.Minute), 0, at(0)), 1)
		}},
	{"leases_of_the_process_end_by_release_alone", "a slot that is taken away from a request that runs, in a process that cannot have died",
		func(p *probe) {
			if !p.inProcess() {
				return
			}
			k := p.key("slots")
			ids := []driver.ID{newLease(), newLease()}
			for i, id := range ids {
				p.admitted("for a millisecond", p.entry(at(0), k.slotFor(2, id, time.Millisecond))[0], 1-i)
			}
			for _, now := range []time.Time{at(time.Second), at(365 * 24 * time.Hour), {}, at(-time.Hour)} {
				p.full("later", k, 2, now)
				for _, id := range ids {
					if !p.renew(k, 2, id, time.Millisecond, now) {
						p.errorf("at %v: a lease ended by itself", now)
					}
				}
			}
			p.release(k, 2, at(time.Hour), ids...)
			p.left("released", k, 2, 2, at(0))
		}},
	{"BR131_a_request_longer_than_its_lease", "the slot ends while the work goes on; the late release then frees the slot of whoever came after",
		func(p *probe) {
			if p.inProcess() {
				return
			}
			for _, renews := range []bool{true, false} {
				k := p.keyOf("slots", fmtBool(renews))
				first, second, third := newLease(), newLease(), newLease()
				one := func(id driver.ID, now time.Duration) driver.Result {
					return p.entry(at(now), k.slotFor(1, id, time.Second))[0]
				}
				p.admitted("the first", one(first, 0), 0)
				for d := 333 * time.Millisecond; renews && d < 3*time.Second; d += 333 * time.Millisecond {
					if !p.renew(k, 1, first, time.Second, at(d)) {
						p.errorf("at %v a lease that is renewed in time is lost", d)
					}
					if d == 1332*time.Millisecond {
						p.noSlot("the second, while the first renews", one(second, d+time.Millisecond))
					}
				}
				if !renews {
					p.admitted("the second, after the first's lease", one(second, 1500*time.Millisecond), 0)
					if p.renew(k, 1, first, time.Second, at(1600*time.Millisecond)) {
						p.errorf("a lease that was swept was renewed")
					}
					p.release(k, 1, at(2*time.Second), first)
					p.noSlot("the third, after the first's late release", one(third, 2400*time.Millisecond))
					p.release(k, 1, at(2450*time.Millisecond), second)
				}
				p.release(k, 1, at(3*time.Second), first)
				p.admitted("the third", one(third, 3100*time.Millisecond), 0)
				p.release(k, 1, at(3200*time.Millisecond), first, second)
				p.noSlot("one more, after releases of the others", one(newLease(), 3300*time.Millisecond))
			}
		}},
	{"leases_end_to_the_microsecond", "a lease that ends early lets one too many in; one that ends late keeps a slot of nobody",
		func(p *probe) {
			if p.inProcess() {
				return
			}
			for _, d := range []time.Duration{time.Millisecond, 1234 * time.Millisecond, time.Minute, driver.MaxLease} {
				k := p.key("slots " + d.String())
				p.admitted("the first", p.entry(at(0), k.slotFor(1, newLease(), d))[0], 0)
				for _, early := range []time.Duration{0, d / 2, d - time.Microsecond} {
					p.full("before "+d.String(), k, 1, at(early))
					p.left("before "+d.String(), k, 1, 0, at(early))
				}
				p.left("after "+d.String(), k, 1, 1, at(d))
				p.admitted("after "+d.String(), p.entry(at(d), k.slot(1, newLease()))[0], 0)
			}
		}},
	{"a_lease_that_is_over_counts_until_its_place_is_needed", "what is swept too early cannot be renewed any more, what is never swept keeps its place for ever",
		func(p *probe) {
			if p.inProcess() {
				return
			}
			k, ids := p.key("slots"), []driver.ID{newLease(), newLease(), newLease(), newLease(), newLease()}
			second := time.Second
			p.admitted("first", p.entry(at(0), k.slotFor(4, ids[0], second))[0], 3)
			p.admitted("second", p.entry(at(0), k.slotFor(4, ids[1], second))[0], 2)
			// Both are over; nobody needs their places yet, so Remaining is low.
			p.admitted("third", p.entry(at(5*second), k.slotFor(4, ids[2], 9*second))[0], 1)
			p.left("a look is exact", k, 4, 3, at(5*second))
			if !p.renew(k, 4, ids[0], 9*second, at(6*second)) {
				p.errorf("a lease that is over and still counts was swept")
			}
			p.left("a look, one of them renewed", k, 4, 2, at(6*second))
			p.admitted("fourth", p.entry(at(6*second), k.slotFor(4, ids[3], 9*second))[0], 0)
			// Now its place is needed: the second is swept, and those that are not over are not.
			p.admitted("fifth", p.entry(at(7*second), k.slotFor(4, ids[4], 9*second))[0], 0)
			for i, id := range ids {
				if held := p.renew(k, 4, id, 9*second, at(7*second)); held != (i != 1) {
					p.errorf("lease %d of 5, of which the second was swept: held %t", i+1, held)
				}
			}
			p.full("all four are held", k, 4, at(7*second))
		}},
	{"a_look_sweeps_nothing", "an operator who looks at a key ends the leases of requests that were about to renew them",
		func(p *probe) {
			if p.inProcess() {
				return
			}
			k := p.key("slots")
			ids := []driver.ID{newLease(), newLease()}
			for _, id := range ids {
				p.entry(at(0), k.slotFor(2, id, time.Second))
			}
			for _, n := range []int{1, 2, 3} {
				p.left("all are over", k, n, n, at(2*time.Second))
			}
			for i, id := range ids {
				if !p.renew(k, 2, id, time.Second, at(2*time.Second)) {
					p.errorf("lease %d was swept by a look", i+1)
				}
			}
			p.left("both renewed", k, 2, 0, at(2*time.Second))
		}},
	{"only_leases_that_are_over_are_swept", "a full key that makes room by throwing somebody out",
		func(p *probe) {
			k := p.key("slots")
			ids := p.hold(k, 3, 3, at(0))
			for _, n := range []int{3, 2, 1} {
				for i := range 20 {
					p.full("of live leases", k, n, at(time.Duration(i)*time.Minute))
				}
			}
			for i, id := range ids {
				if !p.renew(k, 3, id, leaseTime, at(20*time.Minute)) {
					p.errorf("lease %d, which was not over, is lost", i+1)
				}
			}
		}},
	{"a_refusal_by_another_limiter_may_sweep", "a lease that was swept for a request which then was refused must be lost, or its place is given twice",
		func(p *probe) {
			if p.inProcess() {
				return
			}
			k, a := p.key("slots"), p.key("rate")
			old := newLease()
			p.entry(at(0), k.slotFor(1, old, time.Second))
			p.take(a, perDay(1), 1, at(0))
			r := p.entry(at(2*time.Second), k.slot(1, newLease()), a.claim(perDay(1), 1))
			if p.admitted("the slot, which fits and is not taken", r[0], 1); p.renew(k, 1, old, time.Second, at(2*time.Second)) {
				p.errorf("a lease that was swept was renewed")
			}
			p.admitted("the next", p.entry(at(2*time.Second), k.slot(1, newLease()))[0], 0)
			// Also where the refused request had taken a place before it swept, and another one follows in the same call.
			w := p.key("more slots")
			for range 3 {
				p.entry(at(0), w.slotFor(4, newLease(), time.Second))
			}
			e := p.decide(at(2*time.Second),
				driver.Entry{Claims: []driver.Claim{w.slot(4, newLease()), w.slot(4, newLease()), a.claim(perDay(1), 1)}},
				driver.Entry{Claims: []driver.Claim{w.slot(4, newLease())}})
			p.admitted("the first slot of the refused request", e[0].Claims[0].Result, 1)
			p.admitted("its second slot, after a sweep", e[0].Claims[1].Result, 3)
			p.admitted("the next of the call", e[1].Claims[0].Result, 3)
			p.left("one is held", w, 4, 3, at(2*time.Second))
		}},
	{"a_clock_that_steps_back_ends_no_lease", "leases that are over by a clock that ran ahead",
		func(p *probe) {
			k := p.key("slots")
			id := newLease()
			p.admitted("for a minute", p.entry(at(0), k.slotFor(1, id, time.Minute))[0], 0)
			for _, d := range []time.Duration{-time.Hour, -time.Microsecond, 59 * time.Second, -30 * 24 * time.Hour} {
				p.full("at "+d.String(), k, 1, at(d))
			}
			if !p.renew(k, 1, id, time.Minute, at(0)) {
				p.errorf("a lease was lost while the clock went back")
			}
		}},
}

// inProcess says whether leases of the case's store end by release alone.
func (p *probe) inProcess() bool {
	_, ok := p.store().(driver.InProcess)
	return ok
}
