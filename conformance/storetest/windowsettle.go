package storetest

import (
	"context"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// correct settles an amount for what a result's receipt names.
func (p *probe) correct(k key, rule driver.Rule, amount int, receipt driver.Receipt, now time.Time) {
	p.apply(now, driver.Change{Kind: driver.Settle, Policy: k.policy, Subject: k.subject, Rule: rule, Amount: amount, Receipt: receipt})
}

// windowSettleCases are about corrections of windows, which count only as long as the window of the decision runs.
var windowSettleCases = []Case{
	{"give_back_to_a_window", "a cost that was given back must be there again, at once, and no more than that",
		func(p *probe) {
			for _, rule := range both(5, time.Minute) {
				k := p.key(rule.String())
				r := p.take(k, rule, 5, at(0))
				p.correct(k, rule, -3, r.Receipt, at(30*time.Second))
				p.admitted("3 given back", p.take(k, rule, 3, at(30*time.Second)), 0)
				for _, amount := range []int{-6, -1_000_000_000, math.MinInt} {
					p.correct(k, rule, amount, r.Receipt, at(40*time.Second))
					p.admitted("all given back", p.take(k, rule, 5, at(40*time.Second)), 0)
				}
				if r = p.take(k, rule, 1, at(40*time.Second)); r.Allowed {
					p.errorf("%v: more than all: %s", rule, show(r))
				}
			}
		}},
	{"give_back_after_a_limit_was_lowered", "counts above twice the limit of today, of which only twice the limit goes",
		func(p *probe) {
			k := p.key("window")
			p.admitted("400 of 500", p.take(k, fixed(500, time.Minute), 400, at(0)), 100)
			p.settle(k, fixed(10, time.Minute), -395, at(0))
			p.admitted("5 left of 400, at a limit of 10", p.take(k, fixed(10, time.Minute), 0, at(0)), 5)
		}},
	{"a_window_that_is_over_is_left_alone", "what was taken yesterday is given back today: a limit that was not one",
		func(p *probe) {
			for _, rule := range append(both(10, time.Minute), both(10, time.Hour)...) {
				_, length := rule.Rate()
				k := p.key(rule.String())
				old := p.take(k, rule, 4, at(0)).Receipt
				p.admitted("the next window", p.take(k, rule, 5, at(2*length-time.Microsecond)), 5-bit(rule.Kind() == driver.KindSliding))
				p.correct(k, rule, -4, old, at(2*length-time.Microsecond))
				r := p.take(k, rule, 0, at(2*length-time.Microsecond))
				p.admitted("given back for the window before", r, 5-bit(rule.Kind() == driver.KindSliding))
				p.correct(k, rule, 4, old, at(2*length-time.Microsecond))
				r = p.take(k, rule, 0, at(2*length-time.Microsecond))
				p.admitted("taken for the window before", r, 5-bit(rule.Kind() == driver.KindSliding))
				p.correct(k, rule, -2, r.Receipt, at(2*length-time.Microsecond))
				p.admitted("given back for this window", p.take(k, rule, 0, at(2*length-time.Microsecond)), 7-bit(rule.Kind() == driver.KindSliding))
				p.correct(k, rule, -2, r.Receipt, at(2*length))
				r = p.take(k, rule, 0, at(3*length))
				p.correct(k, rule, 3, r.Receipt, at(3*length))
				p.admitted("two windows later", p.take(k, rule, 0, at(3*length)), 7)
			}
		}},
	{"calendar_windows_that_are_over", "a refund on the first of the month for the last day of the one before",
		func(p *probe) {
			k, rule := p.key("month"), monthly(10, "Europe/Berlin")
			end := time.Date(2031, 3, 31, 22, 0, 0, 0, time.UTC) // midnight in Berlin
			old := p.take(k, rule, 6, end.Add(-time.Second)).Receipt
			p.correct(k, rule, -1, old, end.Add(-time.Microsecond))
			p.admitted("on the last day", p.take(k, rule, 0, end.Add(-time.Microsecond)), 5)
			p.admitted("on the first", p.take(k, rule, 6, end), 4)
			p.correct(k, rule, -5, old, end)
			p.admitted("nothing came back", p.take(k, rule, 0, end), 4)
		}},
	{"a_receipt_of_another_length", "a window and a longer one that begin at the same moment are two: what was taken from the one is given back to the other",
		func(p *probe) {
			for _, rules := range [][2]driver.Rule{
				{fixed(10, time.Minute), fixed(10, time.Hour)}, {sliding(10, time.Hour), fixed(10, time.Minute)}, {fixed(10, 12*time.Hour), daily(10, "Etc/GMT-12")},
			} {
				k := p.key(rules[0].String())
				old := p.take(k, rules[0], 6, at(0)).Receipt
				p.admitted("under another length", p.take(k, rules[1], 0, at(0)), 4)
				p.correct(k, rules[1], -3, old, at(0))
				p.admitted("under another length, given back with the receipt of "+rules[0].String(), p.take(k, rules[1], 0, at(0)), 4)
				p.correct(k, rules[0], -3, old, at(0))
				p.admitted("given back under the length it was taken under", p.take(k, rules[1], 0, at(0)), 7)
			}
		}},
	{"give_back_to_an_absent_window", "a write here would create a key, or count below zero",
		func(p *probe) {
			for _, rule := range both(5, time.Minute) {
				k := p.key(rule.String())
				p.settle(k, rule, -3, at(0))
				p.settle(k, rule, 0, at(0))
				p.admitted("all", p.take(k, rule, 5, at(0)), 0)
				if r := p.take(k, rule, 1, at(0)); r.Allowed {
					p.errorf("%v: more than all: %s", rule, show(r))
				}
			}
		}},
	{"settle_counts_without_asking", "what a request turned out to cost is counted, also where it does not fit",
		func(p *probe) {
			for _, amount := range []int{7, 10, 11, 1_000_000_000, math.MaxInt} {
				k, rule := p.key("window "+strconv.Itoa(amount)), sliding(5, time.Minute)
				p.settle(k, rule, 2, at(0))
				p.admitted("a new key", p.take(k, rule, 0, at(0)), 3)
				p.settle(k, rule, amount, at(0))
				p.settle(k, rule, -1, at(0))
				// Twice the limit at most: of 9, or of 8, in the next window 4 must have slid out for one request.
				counted := 2 + min(amount, 8) - 1
				wait := time.Minute + time.Minute - time.Duration(4*60_000_000/counted)*time.Microsecond
				p.refused(strconv.Itoa(counted)+" counted", p.take(k, rule, 1, at(0)), 0, wait)
			}
		}},
	{"settlements_of_windows_in_any_order", "corrections of two requests that arrive in either order come to the same",
		func(p *probe) {
			rule := fixed(10, time.Minute)
			for _, order := range [][3]int{{3, -1, -2}, {-2, 3, -1}, {-1, -2, 3}} {
				k := p.key("window " + strconv.Itoa(order[0]))
				r := p.take(k, rule, 5, at(0))
				for _, amount := range order {
					p.correct(k, rule, amount, r.Receipt, at(0))
				}
				p.admitted("after 3, -1 and -2", p.take(k, rule, 0, at(0)), 5)
			}
		}},
	{"settled_windows_touch_their_key_only", "a correction that reaches another limiter of the client, its bucket, or another client",
		func(p *probe) {
			rule := fixed(5, time.Minute)
			k, others := p.keyOf("a", "alice"), []key{p.keyOf("b", "alice"), p.keyOf("a", "bob")}
			for _, o := range others {
				p.take(o, rule, 2, at(0))
			}
			p.take(k, perSecond(1, 5), 2, at(0))
			r := p.take(k, rule, 2, at(0))
			p.correct(k, rule, -2, r.Receipt, at(0))
			p.correct(k, perSecond(1, 5), -1, driver.Receipt{}, at(0))
			for _, o := range others {
				p.admitted(o.policy, p.take(o, rule, 0, at(0)), 3)
			}
			p.admitted("its bucket", p.take(k, perSecond(1, 5), 0, at(0)), 4)
			p.admitted("the window", p.take(k, rule, 0, at(0)), 5)
		}},
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// month is a window that does not end while a case runs.
const month = driver.MaxPeriod

// windowConcurrencyCases run many goroutines at once, on the store's own clock.
var windowConcurrencyCases = []Case{
	{"BR040_exactly_the_limit_of_a_window_passes", "check first, count later: of many requests at once more than the limit pass",
		func(p *probe) {
			handles := p.handles(4)
			for _, rule := range append(both(25, month), driver.NewWindow(driver.KindMonthly, 25, 0)) {
				for range 25 {
					k := p.keyOf("window", unique())
					got := p.atOnce(250, handles, func(int) []driver.Claim { return []driver.Claim{k.claim(rule, 1)} })
					if got != 25 {
						p.errorf("%v: %d of 250 admitted at a limit of 25", rule, got)
					}
				}
			}
		}},
	{"bucket_and_window_at_once", "two limits of one client, taken in either order: a request that pays half, or two that wait for each other",
		func(p *probe) {
			handles := p.handles(4)
			for _, rule := range both(40, month) {
				for range 10 {
					k, w := p.keyOf("bucket", unique()), p.keyOf("window", unique())
					w.subject = k.subject
					got := p.atOnce(100, handles, func(i int) []driver.Claim {
						claims := []driver.Claim{k.claim(perDay(25), 1), w.claim(rule, 1)}
						if i%2 == 0 {
							claims[0], claims[1] = claims[1], claims[0]
						}
						return claims
					})
					if got != 25 {
						p.errorf("%d of 100 admitted at limits of 25 and 40", got)
					}
					p.admitted("the wider limit", p.entry(time.Time{}, w.claim(rule, 0))[0], 15)
				}
			}
		}},
	{"windows_settled_at_once", "corrections that run into each other and are lost",
		func(p *probe) {
			store, k, rule := p.store(), p.key("window"), fixed(1000, month)
			receipt := p.entry(time.Time{}, k.claim(rule, 500))[0].Receipt
			var failed atomic.Pointer[error]
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for i := range 50 {
						changes := []driver.Change{{Kind: driver.Settle, Policy: k.policy, Subject: k.subject, Rule: rule, Amount: 2 - i%2*3, Receipt: receipt}}
						if err := store.Apply(context.Background(), time.Time{}, changes); err != nil {
							failed.Store(&err)
						}
					}
				})
			}
			wg.Wait()
			if err := failed.Load(); err != nil {
				p.fatalf("Apply: %v", *err)
			}
			p.admitted("500 - 8 x 25 x (2 - 1)", p.entry(time.Time{}, k.claim(rule, 0))[0], 300)
		}},
}
