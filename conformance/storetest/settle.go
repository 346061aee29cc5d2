package storetest

import (
	"math"
	"strconv"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// settleCases are about corrections after the decision.
var settleCases = []Case{
	{"give_back", "a cost that was given back must be there again, at once",
		func(p *probe) {
			k, rule := p.key("bucket"), perSecond(1, 5)
			p.admitted("drain", p.take(k, rule, 5, at(0)), 0)
			p.settle(k, rule, -3, at(0))
			p.admitted("3 given back", p.take(k, rule, 0, at(0)), 3)
			p.admitted("and used", p.take(k, rule, 3, at(0)), 0)
			p.refused("and gone", p.take(k, rule, 1, at(0)), 0, time.Second)
		}},
	{"give_back_fills_at_most", "credit above the capacity is a limit that was not one",
		func(p *probe) {
			rule := perSecond(1, 5)
			for _, amount := range []int{-1, -5, -6, -1_000_000_000, math.MinInt} {
				k := p.key("bucket " + strconv.Itoa(amount))
				p.admitted("take 1", p.take(k, rule, 1, at(0)), 4)
				p.settle(k, rule, amount, at(0))
				p.admitted("all", p.take(k, rule, 5, at(0)), 0)
				p.refused("more", p.take(k, rule, 1, at(0)), 0, time.Second)
			}
		}},
	{"give_back_to_an_absent_key", "a key without state is full; a write here would create it, or fill it twice",
		func(p *probe) {
			k, rule := p.key("bucket"), perSecond(1, 5)
			p.settle(k, rule, -3, at(0))
			p.fresh("after a give-back to nothing", k, at(0))
			p.admitted("all", p.take(k, rule, 5, at(0)), 0)
			p.refused("more", p.take(k, rule, 1, at(0)), 0, time.Second)
		}},
	{"settle_takes_without_asking", "what a request turned out to cost is taken, also from a bucket that does not hold it",
		func(p *probe) {
			k, rule := p.key("bucket"), perSecond(1, 5)
			p.settle(k, rule, 2, at(0))
			p.admitted("a new key", p.take(k, rule, 0, at(0)), 3)
			p.settle(k, rule, 5, at(0))
			p.refused("debt of 2", p.take(k, rule, 1, at(0)), 0, 3*time.Second)
			if r := p.take(k, rule, 0, at(time.Second)); r.Remaining != 0 || r.ResetAfter != 6*time.Second {
				p.errorf("debt of 1: %s; want remaining 0, reset after 6s", show(r))
			}
			p.admitted("paid", p.take(k, rule, 1, at(3*time.Second)), 0)
		}},
	{"debt_is_one_capacity_at_most", "debt without a bound locks a client out for good",
		func(p *probe) {
			rule := perSecond(1, 5)
			for _, amount := range []int{5, 6, 1_000_000_000, math.MaxInt} {
				k := p.key("bucket " + strconv.Itoa(amount))
				p.admitted("drain", p.take(k, rule, 5, at(0)), 0)
				p.settle(k, rule, amount, at(0))
				p.refused("deepest debt", p.take(k, rule, 1, at(0)), 0, 6*time.Second)
				p.settle(k, rule, amount, at(0))
				p.refused("no deeper", p.take(k, rule, 1, at(0)), 0, 6*time.Second)
			}
		}},
	{"settle_zero_is_nothing", "a correction of nothing creates a key, or writes the time down",
		func(p *probe) {
			k, rule := p.key("bucket"), perSecond(1, 5)
			p.settle(k, rule, 0, at(0))
			p.fresh("after settling 0", k, at(0))
		}},
	{"settlements_in_any_order", "corrections of two requests that arrive in either order come to the same",
		func(p *probe) {
			rule := perSecond(1, 10)
			for _, order := range [][3]int{{3, -1, -2}, {-2, 3, -1}, {-1, -2, 3}} {
				k := p.key("bucket " + strconv.Itoa(order[0]))
				p.take(k, rule, 5, at(0))
				var changes []driver.Change
				for _, amount := range order {
					changes = append(changes, driver.Change{Kind: driver.Settle, Policy: k.policy, Subject: k.subject, Rule: rule, Amount: amount})
				}
				p.apply(at(0), changes...)
				p.admitted("after 3, -1 and -2", p.take(k, rule, 0, at(0)), 5)
			}
		}},
	{"settle_touches_its_key_only", "a correction that reaches another limiter of the client, or another client",
		func(p *probe) {
			rule := perSecond(1, 5)
			k, others := p.keyOf("a", "alice"), []key{p.keyOf("b", "alice"), p.keyOf("a", "bob")}
			for _, o := range others {
				p.take(o, rule, 2, at(0))
			}
			p.take(k, rule, 2, at(0))
			p.settle(k, rule, -2, at(0))
			for _, o := range others {
				p.admitted(o.policy, p.take(o, rule, 0, at(0)), 3)
			}
		}},
	{"settle_with_a_clock_that_steps_back", "a correction that moves the time back refills the bucket a second time",
		func(p *probe) {
			k, rule := p.key("bucket"), perSecond(1, 5)
			p.admitted("drain", p.take(k, rule, 5, at(0)), 0)
			p.settle(k, rule, 1, at(-10*time.Second))
			p.refused("debt of 1", p.take(k, rule, 1, at(0)), 0, 2*time.Second)
		}},
}
