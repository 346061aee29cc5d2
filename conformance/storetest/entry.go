package storetest

import (
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// entryCases are about one request with several claims. All of them have one subject; see spreadCases.
var entryCases = []Case{
	{"all_or_nothing", "a request that one limiter refuses has paid at the others",
		func(p *probe) { p.allOrNothing(p.key("wide"), p.key("narrow")) }},
	{"BR149_hour_then_minute", "the burst limiter refuses, the hourly one was charged already: refused retries burn the day's quota",
		func(p *probe) { p.hourAndMinute(false, 1) }},
	{"BR149_minute_then_hour", "the same in the other order",
		func(p *probe) { p.hourAndMinute(true, 1) }},
	{"BR149_with_a_cost", "the same with a cost",
		func(p *probe) { p.hourAndMinute(false, 3) }},
	{"every_claim_is_evaluated", "a client that sees only the first refusal waits for it, and is refused by the next",
		func(p *probe) {
			a, b, c := p.key("a"), p.key("b"), p.key("c")
			p.take(a, perSecond(1, 1), 1, at(0))
			p.take(b, perDay(1), 1, at(0))
			for _, order := range [][3]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
				claims := []driver.Claim{a.claim(perSecond(1, 1), 1), b.claim(perDay(1), 1), c.claim(perSecond(1, 7), 2)}
				r := p.entry(at(0), claims[order[0]], claims[order[1]], claims[order[2]])
				for i, which := range order {
					switch which {
					case 0:
						p.refused("a", r[i], 0, time.Second)
					case 1:
						p.refused("b", r[i], 0, 24*time.Hour)
					case 2:
						p.admitted("c, which fits and is not taken", r[i], 7)
						if r[i].ResetAfter != 0 {
							p.errorf("c: reset after %v, as if it had been taken", r[i].ResetAfter)
						}
					}
				}
			}
		}},
	{"shadow_takes_when_admitted", "a shadow limiter that is not charged tells nothing about the day it will enforce",
		func(p *probe) {
			a, s, rule := p.key("a"), p.key("s"), perSecond(1, 5)
			for i := range 3 {
				r := p.entry(at(0), s.shadow(rule, 1), a.claim(rule, 1))
				p.admitted("shadow", r[0], 4-i)
				p.admitted("enforced", r[1], 4-i)
			}
			p.admitted("only shadow claims", p.entry(at(0), s.shadow(rule, 2))[0], 0)
		}},
	{"shadow_never_refuses", "a shadow limiter that refuses is not a shadow",
		func(p *probe) {
			a, s, rule := p.key("a"), p.key("s"), perSecond(1, 2)
			for i := range 5 {
				r := p.entry(at(0), s.shadow(rule, 1), a.claim(perSecond(1, 9), 1))
				p.admitted("enforced", r[1], 8-i)
				if i < 2 {
					p.admitted("shadow", r[0], 1-i)
				} else {
					p.refused("shadow", r[0], 0, time.Second)
				}
			}
			r := p.entry(at(0), s.shadow(rule, 3), a.claim(perSecond(1, 9), 1))
			if r[0].Reason != driver.ReasonCost || !r[1].Allowed {
				p.errorf("shadow cost above capacity: %s; enforced: %s", show(r[0]), show(r[1]))
			}
		}},
	{"shadow_is_not_charged_for_refused_requests", "a shadow limiter behind a refusing one counts requests it would never have seen",
		func(p *probe) {
			a, s, rule := p.key("a"), p.key("s"), perSecond(1, 5)
			p.take(a, rule, 5, at(0))
			for _, shadowFirst := range []bool{true, false} {
				claims := []driver.Claim{a.claim(rule, 1), s.shadow(rule, 1)}
				if shadowFirst {
					claims[0], claims[1] = claims[1], claims[0]
				}
				r := p.entry(at(0), claims...)
				if shadowFirst {
					r[0], r[1] = r[1], r[0]
				}
				p.refused("enforced", r[0], 0, time.Second)
				p.admitted("shadow, evaluated but not taken", r[1], 5)
			}
			p.fresh("shadow", s, at(0))
		}},
	{"shadows_do_not_stop_each_other", "one shadow limiter that is full hides what the next one would have done",
		func(p *probe) {
			a, s, u, rule := p.key("a"), p.key("s"), p.key("u"), perSecond(1, 5)
			p.take(s, rule, 5, at(0))
			for i := range 3 {
				r := p.entry(at(0), s.shadow(rule, 1), u.shadow(rule, 1), a.claim(rule, 1))
				p.refused("the full one", r[0], 0, time.Second)
				p.admitted("the other", r[1], 4-i)
				p.admitted("enforced", r[2], 4-i)
			}
		}},
	{"from_shadow_to_enforce", "a limiter that is switched on must go on counting where it was",
		func(p *probe) {
			k, rule := p.key("a"), perSecond(1, 3)
			p.admitted("shadow", p.entry(at(0), k.shadow(rule, 2))[0], 1)
			p.admitted("enforced", p.take(k, rule, 1, at(0)), 0)
			p.refused("enforced", p.take(k, rule, 1, at(0)), 0, time.Second)
			p.refused("shadow again", p.entry(at(0), k.shadow(rule, 1))[0], 0, time.Second)
		}},
	{"two_claims_on_one_key", "the second claim on a key that reads the state from before the first over-admits",
		func(p *probe) {
			k, rule := p.key("a"), perSecond(1, 5)
			r := p.entry(at(0), k.claim(rule, 2), k.claim(rule, 2))
			p.admitted("first", r[0], 3)
			p.admitted("second", r[1], 1)
			if r = p.entry(at(0), k.claim(rule, 1), k.claim(rule, 1)); !r[0].Allowed || r[1].Allowed {
				p.errorf("1 left, twice 1: %s and %s; want the second refused", show(r[0]), show(r[1]))
			}
			p.admitted("nothing was taken", p.take(k, rule, 0, at(0)), 1)
		}},
	{"cost_zero_among_others", "a read in a request must neither refuse it nor be refused",
		func(p *probe) {
			a, b, rule := p.key("a"), p.key("b"), perSecond(1, 3)
			p.take(a, rule, 3, at(0))
			r := p.entry(at(0), a.claim(rule, 0), b.claim(rule, 1))
			p.admitted("read of an empty bucket", r[0], 0)
			p.admitted("the other", r[1], 2)
		}},
}

// spreadCases are about one request whose claims have different subjects.
var spreadCases = []Case{
	{"all_or_nothing_across_subjects", "a request that one limiter refuses has paid at the others",
		func(p *probe) { p.allOrNothing(p.keyOf("wide", "tenant"), p.keyOf("narrow", "address")) }},
	{"many_subjects_in_one_request", "a request with more claims than anybody thought of",
		func(p *probe) {
			var claims []driver.Claim
			rule := perSecond(1, 2)
			for i := range 40 {
				claims = append(claims, p.keyOf("many", string(rune('a'+i))).claim(rule, 1))
			}
			last := p.keyOf("many", "last")
			for i, r := range p.entry(at(0), append(claims, last.claim(rule, 2))...) {
				if !r.Allowed {
					p.errorf("claim %d: %s", i, show(r))
				}
			}
			p.refused("one more", p.entry(at(0), append(claims, last.claim(rule, 1))...)[40], 0, time.Second)
			for i, r := range p.entry(at(0), claims...) {
				p.admitted("claim "+string(rune('a'+i)), r, 0)
			}
		}},
	{"histories_across_subjects", "agreement with the model for requests whose claims have different subjects",
		func(p *probe) { p.histories(historyRules, spread) }},
	{"opposite_orders_at_once", "two requests that lock each other out, or each charge half",
		func(p *probe) { p.oppositeOrders(p.keyOf("a", "tenant"), p.keyOf("b", "address")) }},
}

// allOrNothing empties a narrow bucket and checks that a wide one is charged for admitted requests only, in both orders.
func (p *probe) allOrNothing(wide, narrow key) {
	for i := range 10 {
		claims := []driver.Claim{wide.claim(perSecond(1, 100), 2), narrow.claim(perSecond(1, 3), 1)}
		first, second := 0, 1
		if i%2 == 1 {
			claims[0], claims[1] = claims[1], claims[0]
			first, second = 1, 0
		}
		r := p.entry(at(0), claims...)
		if i < 3 {
			p.admitted("wide", r[first], 98-2*i)
			p.admitted("narrow", r[second], 2-i)
		} else {
			p.admitted("wide, not taken", r[first], 94)
			p.refused("narrow", r[second], 0, time.Second)
		}
	}
	p.admitted("wide, after all", p.take(wide, perSecond(1, 100), 0, at(0)), 94)
}

func (p *probe) hourAndMinute(reverse bool, cost int) {
	hour, minute := driver.NewBucket(30, time.Hour), perMinute(10, 10)
	h, m := p.key("hour"), p.key("minute")
	left := 30
	for i := range 31 {
		claims := []driver.Claim{h.claim(hour, cost), m.claim(minute, cost)}
		hi, mi := 0, 1
		if reverse {
			claims[0], claims[1] = claims[1], claims[0]
			hi, mi = 1, 0
		}
		r := p.entry(at(time.Duration(i)*time.Second), claims...)
		if r[hi].Allowed && r[mi].Allowed {
			left -= cost
		}
		// Less than one token of the hour comes back in half a minute.
		if r[hi].Remaining != left {
			p.errorf("request %d: the hour has %d left, want %d: 30 less what was admitted", i+1, r[hi].Remaining, left)
		}
	}
	if left == 30 || left < 0 {
		p.errorf("%d of the hour's 30 left", left)
	}
}
