package storetest

import (
	"math"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// slotEntryCases are about requests that claim slots beside other things, and about batches of them. All claims of one
// request have one subject; see slotSpreadCases.
var slotEntryCases = []Case{
	{"all_or_nothing_of_rate_and_slots", "a request that the slots refuse has paid, or one that the rate refuses holds a slot that nobody gives back",
		func(p *probe) {
			for i, rule := range []driver.Rule{perSecond(1, 100), fixed(100, time.Minute), sliding(100, time.Minute), driver.NewWindow(driver.KindDaily, 100, 0)} {
				for _, slotFirst := range []bool{false, true} {
					name := rule.String() + fmtBool(slotFirst)
					p.slotsRefuse(p.key("rate "+name), rule, p.key("slots "+name), slotFirst)
					narrow := []driver.Rule{perSecond(1, 3), fixed(3, time.Minute), sliding(3, time.Minute), driver.NewWindow(driver.KindDaily, 3, 0)}[i]
					p.rateRefuses(p.key("narrow rate "+name), narrow, p.key("wide slots "+name), slotFirst)
				}
			}
		}},
	{"all_or_nothing_of_two_limits_of_slots", "a request that one of two limits refuses holds a slot of the other",
		func(p *probe) { p.twoSlotLimits(p.key("wide"), p.key("narrow")) }},
	{"BR149_slots_between_two_rates", "what stands before the refusing limiter, or after it, is charged",
		func(p *probe) {
			a, k, b := p.key("a"), p.key("slots"), p.key("b")
			p.hold(k, 1, 1, at(0))
			for range 10 {
				r := p.entry(at(0), a.claim(perSecond(1, 5), 1), k.slot(1, newLease()), b.claim(fixed(5, time.Minute), 1))
				p.admitted("before, not taken", r[0], 5)
				p.noSlot("slots", r[1])
				p.admitted("after, not taken", r[2], 5)
			}
			p.fresh("before", a, at(0))
		}},
	{"every_claim_beside_slots_is_evaluated", "a client that sees only the first refusal waits for it, and is refused by the next",
		func(p *probe) {
			k, w, a := p.key("slots"), p.key("wide slots"), p.key("rate")
			p.hold(k, 2, 2, at(0))
			p.hold(w, 5, 1, at(0))
			p.take(a, perDay(1), 1, at(0))
			for range 3 {
				r := p.entry(at(0), k.slot(2, newLease()), a.claim(perDay(1), 1), w.slot(5, newLease()))
				p.noSlot("slots", r[0])
				p.refused("rate", r[1], 0, 24*time.Hour)
				p.admitted("the wide one, which fits and is not taken", r[2], 4)
			}
		}},
	{"shadow_slots_are_held_by_admitted_requests", "a shadow limiter that holds no slots tells nothing about the day it will enforce",
		func(p *probe) {
			a, s := p.key("a"), p.key("shadow")
			var ids []driver.ID
			for i := range 3 {
				id := newLease()
				r := p.entry(at(0), shadowed(s.slot(3, id)), a.claim(perSecond(1, 9), 1))
				p.admitted("shadow", r[0], 2-i)
				p.admitted("enforced", r[1], 8-i)
				ids = append(ids, id)
			}
			p.release(s, 3, at(0), ids[0])
			if p.left("released by one", s, 3, 1, at(0)); !p.renew(s, 3, ids[1], leaseTime, at(0)) {
				p.errorf("the lease of a shadow claim is lost")
			}
			p.admitted("only a shadow claim", p.entry(at(0), shadowed(s.slot(3, newLease())))[0], 0)
		}},
	{"shadow_slots_never_refuse", "a shadow limiter that refuses is not a shadow",
		func(p *probe) {
			a, b, s := p.key("a"), p.key("b"), p.key("shadow")
			p.hold(s, 1, 1, at(0))
			for i := range 3 {
				id := newLease()
				r := p.entry(at(0), shadowed(s.slot(1, id)), a.claim(perSecond(1, 9), 1), b.slot(9, newLease()))
				p.noSlot("the shadow, full", r[0])
				p.admitted("rate", r[1], 8-i)
				p.admitted("slots", r[2], 8-i)
				if p.renew(s, 1, id, leaseTime, at(0)) {
					p.errorf("a full shadow took a lease")
				}
			}
			p.left("the shadow's slots", s, 2, 1, at(0))
		}},
	{"shadow_slots_are_not_held_by_refused_requests", "a shadow limiter behind a refusing one holds slots for requests that never ran, and nobody gives them back",
		func(p *probe) {
			a, k, s := p.key("a"), p.key("slots"), p.key("shadow")
			p.take(a, perSecond(1, 5), 5, at(0))
			p.hold(k, 2, 2, at(0))
			for _, refusing := range []driver.Claim{a.claim(perSecond(1, 5), 1), k.slot(2, newLease())} {
				for _, shadowFirst := range []bool{true, false} {
					id := newLease()
					claims := []driver.Claim{refusing, shadowed(s.slot(4, id))}
					at0 := 1
					if shadowFirst {
						claims[0], claims[1], at0 = claims[1], claims[0], 0
					}
					r := p.entry(at(0), claims...)
					p.admitted("shadow, evaluated but not taken", r[at0], 4)
					if r[1-at0].Allowed || p.renew(s, 4, id, leaseTime, at(0)) {
						p.errorf("%s, and its shadow lease is held", show(r[1-at0]))
					}
				}
			}
			p.left("the shadow's slots", s, 4, 4, at(0))
			// Nor does a shadow bucket pay for a request that the slots refuse.
			b := p.key("bucket")
			p.entry(at(0), b.shadow(perSecond(1, 5), 1), k.slot(2, newLease()))
			p.fresh("shadow bucket", b, at(0))
		}},
	{"slots_from_shadow_to_enforce", "a limiter that is switched on must go on counting where it was",
		func(p *probe) {
			k := p.key("slots")
			for want := 2; want > 0; want-- {
				p.admitted("shadow", p.entry(at(0), shadowed(k.slot(3, newLease())))[0], want)
			}
			_, r := p.acquire(k, 3, at(0))
			p.admitted("enforced", r, 0)
			p.full("enforced", k, 3, at(0))
			p.noSlot("shadow again", p.entry(at(0), shadowed(k.slot(3, newLease())))[0])
		}},
	{"two_slots_in_one_request", "the second claim on a key that reads the count from before the first over-admits",
		func(p *probe) {
			k := p.key("slots")
			r := p.entry(at(0), k.slot(5, newLease()), k.slot(5, newLease()))
			p.admitted("first", r[0], 4)
			p.admitted("second", r[1], 3)
			p.hold(k, 5, 2, at(0))
			r = p.entry(at(0), k.slot(5, newLease()), k.slot(5, newLease()))
			if !r[0].Allowed || r[1].Allowed {
				p.errorf("1 left, twice 1: %s and %s; want the second refused", show(r[0]), show(r[1]))
			}
			p.left("nothing was taken", k, 5, 1, at(0))
		}},
	{"a_look_at_slots_among_others", "a look in a request must neither refuse it nor be refused",
		func(p *probe) {
			k, b := p.key("slots"), p.key("b")
			p.hold(k, 2, 2, at(0))
			r := p.entry(at(0), k.free(2), b.claim(perSecond(1, 3), 1), p.key("c").slot(3, newLease()))
			p.admitted("a look at full slots", r[0], 0)
			p.admitted("rate", r[1], 2)
			p.admitted("other slots", r[2], 2)
			r = p.entry(at(0), k.slot(9, newLease()), k.free(9))
			p.admitted("taken", r[0], 6)
			p.admitted("a look after it", r[1], 6)
		}},
	{"slots_of_a_batch_see_each_other", "requests packed into one call that all read the same count are all admitted",
		func(p *probe) {
			k, b := p.key("slots"), p.key("bucket")
			batch := make([]driver.Entry, 12)
			for i := range batch {
				batch[i].Claims = []driver.Claim{k.slot(5, newLease())}
				if i%3 == 0 {
					batch[i].Claims = append(batch[i].Claims, b.claim(perSecond(1, 9), 1))
				}
			}
			batch = append(batch, driver.Entry{Claims: []driver.Claim{k.free(5)}}, driver.Entry{Claims: []driver.Claim{k.slot(6, newLease())}},
				driver.Entry{Claims: []driver.Claim{k.free(7)}})
			for i, e := range p.decide(at(0), batch...) {
				switch r := e.Claims[0].Result; {
				case i < 5:
					p.admitted("in order", r, 4-i)
				case i < 12:
					p.noSlot("in order", r)
				case i == 14:
					p.admitted("a look in the end", r, 1)
				default:
					p.admitted("a look, or one more of 6", r, 0)
				}
			}
			p.admitted("the rate paid for the admitted only", p.take(b, perSecond(1, 9), 0, at(0)), 7)
		}},
	{"refused_entries_of_a_batch_hold_no_slot", "a refused request of a pack that keeps the slot it looked at",
		func(p *probe) {
			k, a := p.key("slots"), p.key("a")
			p.take(a, perSecond(1, 3), 3, at(0))
			refused := []driver.Claim{k.slot(1, newLease()), a.claim(perSecond(1, 3), 1)}
			e := p.decide(at(0), driver.Entry{Claims: refused}, driver.Entry{Claims: []driver.Claim{k.slot(1, newLease())}},
				driver.Entry{Claims: []driver.Claim{k.slot(1, newLease())}})
			p.admitted("the slot of the refused one", e[0].Claims[0].Result, 1)
			p.admitted("the next", e[1].Claims[0].Result, 0)
			p.noSlot("and one more", e[2].Claims[0].Result)
		}},
	{"answers_of_slots_overwrite_what_was_there", "a batch, or changes, used again show the answers of the last time",
		func(p *probe) {
			k := p.key("slots")
			ids := [2]driver.ID{newLease(), newLease()}
			for i, want := range []driver.Result{{Allowed: true}, {Reason: driver.ReasonLimit}} {
				c := k.slot(1, ids[i])
				c.Result = driver.Result{Allowed: i == 1, Reason: driver.ReasonMemory, Remaining: 77, RetryAfter: time.Hour,
					ResetAfter: time.Hour, Fraction: driver.Fraction{Num: 5, Den: 6}, Receipt: driver.Receipt{Start: 1, Unit: 2}}
				if got := p.entry(at(0), c)[0]; got != want {
					p.errorf("got %+v; want %+v", got, want)
				}
			}
			changes := []driver.Change{k.renewed(1, ids[0], leaseTime), k.renewed(1, ids[1], leaseTime)}
			changes[0].Lost = true
			if p.apply(at(0), changes...); changes[0].Lost || !changes[1].Lost {
				p.errorf("renewed, of two leases, the one that is held: lost %t and %t", changes[0].Lost, changes[1].Lost)
			}
		}},
	{"invalid_slots_hurt_their_own_entry_only", "one bad claim in a pack fails a stranger's request, or takes half of its own",
		func(p *probe) {
			good := p.key("good").slot(5, newLease())
			bad := map[string]func(*driver.Claim){
				"cost 2":          func(c *driver.Claim) { c.Cost = 2 },
				"cost -1":         func(c *driver.Claim) { c.Cost = -1 },
				"largest cost":    func(c *driver.Claim) { c.Cost = math.MaxInt },
				"no ID":           func(c *driver.Claim) { c.Lease = driver.ID{} },
				"no lease time":   func(c *driver.Claim) { c.LeaseFor = 0 },
				"negative time":   func(c *driver.Claim) { c.LeaseFor = -time.Second },
				"too short":       func(c *driver.Claim) { c.LeaseFor = driver.MinLease - 1 },
				"part of a ms":    func(c *driver.Claim) { c.LeaseFor = 1500 * time.Microsecond },
				"too long":        func(c *driver.Claim) { c.LeaseFor = driver.MaxLease + time.Millisecond },
				"no slots":        func(c *driver.Claim) { c.Rule = driver.NewSlots(0) },
				"negative slots":  func(c *driver.Claim) { c.Rule = driver.NewSlots(-1) },
				"too many slots":  func(c *driver.Claim) { c.Rule = driver.NewSlots(driver.MaxCount + 1) },
				"slots and burst": func(c *driver.Claim) { c.Rule = c.Rule.WithBurst(5) },
				"slots of a zone": func(c *driver.Claim) { c.Rule = c.Rule.In(time.UTC) },
			}
			for name, spoil := range bad {
				k, b, other := p.key("slots "+name), p.key("bucket "+name), p.key("other "+name)
				c := good
				c.Policy = k.policy
				c.Lease = newLease()
				id := c.Lease
				spoil(&c)
				first, last := newLease(), newLease()
				e := p.decide(at(0), driver.Entry{Claims: []driver.Claim{k.slot(5, first)}},
					driver.Entry{Claims: []driver.Claim{b.claim(perSecond(1, 5), 1), other.slot(5, newLease()), c}},
					driver.Entry{Claims: []driver.Claim{k.slot(5, last)}}, driver.Entry{Claims: []driver.Claim{c}})
				if e[0].Err != nil || e[1].Err == nil || e[2].Err != nil || e[3].Err == nil {
					p.fatalf("%s: Err of the four entries %v, %v, %v, %v; want the second and the last", name, e[0].Err, e[1].Err, e[2].Err, e[3].Err)
				}
				p.admitted(name+": the entry before", e[0].Claims[0].Result, 4)
				p.admitted(name+": the entry after", e[2].Claims[0].Result, 3)
				p.left(name+": its own slots", k, 5, 3, at(0))
				p.left(name+": the slots beside it", other, 5, 5, at(0))
				p.fresh(name+": the rate beside it", b, at(0))
				if id != (driver.ID{}) && p.renew(k, 5, id, leaseTime, at(0)) {
					p.errorf("%s: took a lease", name)
				}
			}
		}},
}

// slotSpreadCases are about one request whose claims on slots have different subjects: those of a tenant and of the fleet.
var slotSpreadCases = []Case{
	{"all_or_nothing_of_slots_across_subjects", "a request that the fleet refuses holds a slot of its tenant",
		func(p *probe) {
			p.twoSlotLimits(p.keyOf("wide", "fleet"), p.keyOf("narrow", "tenant"))
			p.twoSlotLimits(p.keyOf("wide 2", "tenant"), p.keyOf("narrow 2", "fleet"))
			p.slotsRefuse(p.keyOf("rate", "tenant"), perSecond(1, 100), p.keyOf("slots", "fleet"), false)
			p.rateRefuses(p.keyOf("narrow rate", "tenant"), perSecond(1, 3), p.keyOf("wide slots", "fleet"), true)
		}},
	{"shadow_slots_across_subjects", "a shadow fleet that holds slots for requests which a tenant's limit refused",
		func(p *probe) {
			k, fleet := p.keyOf("slots", "tenant"), p.keyOf("fleet", "fleet")
			for i := range 4 {
				r := p.entry(at(0), shadowed(fleet.slot(9, newLease())), k.slot(2, newLease()))
				if admitted := i < 2; r[1].Allowed != admitted || !r[0].Allowed {
					p.errorf("request %d of 2 slots: %s; the fleet: %s", i+1, show(r[1]), show(r[0]))
				}
			}
			p.left("the fleet", fleet, 9, 7, at(0))
		}},
	{"histories_of_slots_across_subjects", "agreement with the model for requests whose claims have different subjects",
		func(p *probe) { p.histories(slotHistoryRules(), spread) }},
}

// slotsRefuse fills 3 slots and checks that a rate of 100 is charged for admitted requests only.
func (p *probe) slotsRefuse(rate key, rule driver.Rule, k key, slotFirst bool) {
	var ids []driver.ID
	for i := range 8 {
		id := newLease()
		claims, slot := []driver.Claim{rate.claim(rule, 2), k.slot(3, id)}, 1
		if slotFirst {
			claims[0], claims[1], slot = claims[1], claims[0], 0
		}
		if r := p.entry(at(0), claims...); i < 3 {
			p.admitted("rate", r[1-slot], 98-2*i)
			p.admitted("slots", r[slot], 2-i)
			ids = append(ids, id)
		} else {
			p.admitted("rate, not taken", r[1-slot], 94)
			p.noSlot("slots", r[slot])
		}
	}
	p.admitted("rate, after all", p.take(rate, rule, 0, at(0)), 94)
	p.release(k, 3, at(0), ids...)
	p.left("after all", k, 3, 3, at(0))
}

// rateRefuses uses up a rate of 3 and checks that only admitted requests hold a slot.
func (p *probe) rateRefuses(rate key, rule driver.Rule, k key, slotFirst bool) {
	for i := range 8 {
		id := newLease()
		claims, slot := []driver.Claim{rate.claim(rule, 1), k.slot(50, id)}, 1
		if slotFirst {
			claims[0], claims[1], slot = claims[1], claims[0], 0
		}
		r := p.entry(at(0), claims...)
		if i < 3 {
			p.admitted("rate", r[1-slot], 2-i)
			p.admitted("slots", r[slot], 49-i)
		} else if r[1-slot].Allowed {
			p.errorf("rate: %s, want refused", show(r[1-slot]))
		} else {
			p.admitted("slots, not taken", r[slot], 47)
		}
		if held := p.renew(k, 50, id, leaseTime, at(0)); held != (i < 3) {
			p.errorf("request %d of 3: its lease is held: %t", i+1, held)
		}
	}
	p.left("after all", k, 50, 47, at(0))
}

// twoSlotLimits fills one of two limits and checks that refused requests hold no slot of the other, in both orders.
func (p *probe) twoSlotLimits(wide, narrow key) {
	for i := range 8 {
		w := newLease()
		claims, n := []driver.Claim{wide.slot(50, w), narrow.slot(3, newLease())}, 1
		if i%2 == 1 {
			claims[0], claims[1], n = claims[1], claims[0], 0
		}
		if r := p.entry(at(0), claims...); i < 3 {
			p.admitted("wide", r[1-n], 49-i)
			p.admitted("narrow", r[n], 2-i)
		} else {
			p.admitted("wide, not taken", r[1-n], 47)
			p.noSlot("narrow", r[n])
		}
		if held := p.renew(wide, 50, w, leaseTime, at(0)); held != (i < 3) {
			p.errorf("request %d of 3: its lease of the wide limit is held: %t", i+1, held)
		}
	}
	p.left("wide, after all", wide, 50, 47, at(0))
}
