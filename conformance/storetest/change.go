package storetest

import (
	"math"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// changeCases are about limits that change under live keys.
var changeCases = []Case{
	{"BR042_a_new_limit_counts_at_the_next_request", "a limit kept with the state is ignored until the key expires, for a busy key never",
		func(p *probe) {
			k := p.key("bucket")
			wide, narrow := perSecond(10, 100), perSecond(10, 10)
			p.admitted("20 of 100", p.take(k, wide, 20, at(0)), 80)
			p.admitted("burst 10", p.take(k, narrow, 1, at(0)), 9)
			p.admitted("burst 100 again, no jump", p.take(k, wide, 1, at(0)), 8)
			p.admitted("1s later", p.take(k, wide, 1, at(time.Second)), 17)
		}},
	{"BR044_raising_the_limit_gives_no_tokens", "whoever can cause a reload has no limit",
		func(p *probe) {
			k, rule := p.key("bucket"), perMinute(1, 5)
			p.admitted("5 of 5", p.take(k, rule, 5, at(0)), 0)
			for range 20 {
				p.refused("after a reload", p.take(k, rule, 1, at(0)), 0, time.Minute)
			}
			p.refused("burst 50", p.take(k, perMinute(1, 50), 1, at(0)), 0, time.Minute)
			p.admitted("burst 50, a minute later", p.take(k, perMinute(1, 50), 1, at(time.Minute)), 0)
		}},
	{"old_rule_does_not_delay", "a client that has to wait for the interval of a rule that is gone",
		func(p *probe) {
			k := p.key("bucket")
			p.admitted("1 per day", p.take(k, perDay(1), 1, at(0)), 0)
			p.refused("1000/s at once", p.take(k, perSecond(1000, 1), 1, at(0)), 0, time.Millisecond)
			p.admitted("1000/s after 1ms", p.take(k, perSecond(1000, 1), 1, at(time.Millisecond)), 0)
		}},
	{"changed_rule_keeps_the_fraction", "a part of a token is worth the same under every rule; revalued at the new rate 0.9 of a day's token is a full bucket",
		func(p *probe) {
			k, slow, fast := p.key("bucket"), perDay(1), perSecond(1000, 1000)
			p.admitted("1 per day", p.take(k, slow, 1, at(0)), 0)
			now := at(24 * time.Hour * 19 / 10) // 1.9 tokens
			p.admitted("the first", p.take(k, slow.WithBurst(2), 1, now), 0)
			p.refused("fast rule", p.take(k, fast, 1, now), 0, 100*time.Microsecond)
		}},
	{"debt_is_cut_to_the_new_burst", "debt of a large bucket that locks out the small one which replaced it",
		func(p *probe) {
			k := p.key("bucket")
			large, small := perSecond(1, 1000), perSecond(1, 10)
			p.admitted("drain", p.take(k, large, 1000, at(0)), 0)
			p.settle(k, large, 1000, at(0))
			p.refused("large", p.take(k, large, 1, at(0)), 0, 1001*time.Second)
			p.refused("small", p.take(k, small, 1, at(0)), 0, 11*time.Second)
		}},
}

// clockCases are about times that do not behave.
var clockCases = []Case{
	{"BR013_a_slow_clock_among_others", "a time stored without max() refills the bucket at the next request from a right clock",
		func(p *probe) {
			k, rule := p.key("bucket"), perSecond(2, 4)
			for i := range 4 {
				p.admitted("at T", p.take(k, rule, 1, at(0)), 3-i)
			}
			p.refused("at T-10s", p.take(k, rule, 1, at(-10*time.Second)), 0, 500*time.Millisecond)
			for range 4 {
				p.refused("at T again", p.take(k, rule, 1, at(0)), 0, 500*time.Millisecond)
			}
		}},
	{"BR014_clock_steps_back", "elapsed time below zero takes tokens away, and locks out until the clock has caught up",
		func(p *probe) {
			k, rule := p.key("bucket"), perSecond(10, 10)
			for i, d := range []time.Duration{0, -2 * time.Second, -time.Hour, 0} {
				r := p.take(k, rule, 1, at(d))
				p.admitted("at "+d.String(), r, 9-i)
				if want := time.Duration(i+1) * 100 * time.Millisecond; r.ResetAfter != want {
					p.errorf("at %v: reset after %v, want %v", d, r.ResetAfter, want)
				}
			}
		}},
	{"time_given_back_is_not_credited_twice", "a bucket that went back with the clock refills the same second again",
		func(p *probe) {
			k, rule := p.key("bucket"), perSecond(10, 10)
			p.admitted("9 of 10", p.take(k, rule, 9, at(time.Second)), 1)
			p.admitted("back at 0, the last", p.take(k, rule, 1, at(0)), 0)
			p.refused("back at 0, one more", p.take(k, rule, 1, at(0)), 0, 100*time.Millisecond)
			p.refused("t=1s again", p.take(k, rule, 1, at(time.Second)), 0, 100*time.Millisecond)
		}},
	{"own_clock", "without a given time a store has a clock of its own, and it moves",
		func(p *probe) {
			k, rule := p.key("day"), perDay(3)
			for i := range 3 {
				p.admitted("own clock", p.take(k, rule, 1, time.Time{}), 2-i)
			}
			if r := p.take(k, rule, 1, time.Time{}); r.Allowed || r.RetryAfter <= 0 || r.RetryAfter > 8*time.Hour {
				p.errorf("fourth of 3 a day: %s", show(r))
			}
			// 50 ms a token; asking again and again is the only waiting there is.
			k, rule = p.key("second"), perSecond(20, 1)
			start, refusals := time.Now(), 0
			for got := 0; got < 3; {
				if p.take(k, rule, 1, time.Time{}).Allowed {
					got++
				} else {
					refusals++
				}
				if time.Since(start) > 10*time.Second {
					p.fatalf("%d tokens in 10s at 20 a second", got)
				}
			}
			if refusals == 0 {
				p.errorf("3 tokens of a bucket of 1 without a refusal")
			}
		}},
}

// costCases are about what a request weighs.
var costCases = []Case{
	{"BR016_cost_above_capacity", "refused for ever with Remaining full: a client with correct backoff retries for ever",
		func(p *probe) {
			k, rule := p.key("bucket"), perSecond(1, 5)
			for _, cost := range []int{6, 1_000_000_001, math.MaxInt} {
				r := p.take(k, rule, cost, at(0))
				if r.Allowed || r.Reason != driver.ReasonCost || r.RetryAfter != 0 || r.Remaining != 5 || r.ResetAfter != 0 {
					p.errorf("cost %d: got %s; want refused (cost_exceeds_limit), remaining 5, no waits", cost, show(r))
				}
			}
			p.admitted("cost 5", p.take(k, rule, 5, at(0)), 0)
			p.refused("cost 1", p.take(k, rule, 1, at(0)), 0, time.Second)
			r := p.take(k, rule, 6, at(2*time.Second))
			if r.Allowed || r.Reason != driver.ReasonCost || r.Remaining != 2 || r.ResetAfter != 3*time.Second {
				p.errorf("cost 6 of a used bucket: got %s; want remaining 2, reset after 3s", show(r))
			}
		}},
	{"BR018_cost_zero_is_a_pure_read", "a read that writes extends lives and creates keys; one that consumes is worse",
		func(p *probe) {
			k, rule := p.key("bucket"), perSecond(1, 5)
			for range 3 {
				p.admitted("cost 0", p.take(k, rule, 0, at(0)), 5)
			}
			p.fresh("after cost 0", k, at(0))
			p.admitted("cost 1", p.take(k, rule, 1, at(0)), 4)
			p.admitted("cost 0", p.take(k, rule, 0, at(0)), 4)
			p.admitted("cost 4", p.take(k, rule, 4, at(0)), 0)
			p.admitted("cost 0 of nothing", p.take(k, rule, 0, at(0)), 0)
		}},
	{"cost_zero_under_another_rule_leaves_no_trace", "a read that writes the time down credits the past at the reader's rule",
		func(p *probe) {
			k, slow := p.key("bucket"), perDay(5)
			p.admitted("drain", p.take(k, slow, 5, at(0)), 0)
			p.admitted("read at a fast rule", p.take(k, perSecond(1, 5), 0, at(4*time.Second)), 4)
			p.refused("slow rule again", p.take(k, slow, 1, at(4*time.Second)), 0, 24*time.Hour/5-4*time.Second)
		}},
	{"BR019_negative_cost_mints_nothing", "a cost function that goes below zero grants credit above the capacity",
		func(p *probe) {
			k, other, rule := p.key("bucket"), p.key("other"), perSecond(1, 5)
			p.admitted("cost 1", p.take(k, rule, 1, at(0)), 4)
			for _, cost := range []int{-1, -3, math.MinInt} {
				e := p.decide(at(0), driver.Entry{Claims: []driver.Claim{k.claim(rule, cost), other.claim(rule, 1)}},
					driver.Entry{Claims: []driver.Claim{k.claim(rule, 0)}})
				if e[0].Err == nil {
					p.errorf("cost %d: the entry has no Err", cost)
				}
				if e[1].Err != nil || e[1].Claims[0].Result.Remaining != 4 {
					p.errorf("after cost %d: remaining %d, Err %v; want 4", cost, e[1].Claims[0].Result.Remaining, e[1].Err)
				}
			}
			p.fresh("the entry's other claim", other, at(0))
			got := 0
			for range 10 {
				if p.take(k, rule, 1, at(0)).Allowed {
					got++
				}
			}
			if got != 4 {
				p.errorf("%d more admitted, want 4", got)
			}
		}},
	{"invalid_rule_hurts_its_own_entry_only", "one bad rule in a pack fails a stranger's request",
		func(p *probe) {
			k, rule := p.key("bucket"), perSecond(1, 5)
			for _, bad := range []driver.Rule{
				{}, rule.WithBurst(0), rule.WithBurst(-1), rule.WithBurst(1_000_000_001), driver.NewBucket(0, time.Second),
				driver.NewBucket(-5, time.Second), driver.NewBucket(1, 0), driver.NewBucket(1, driver.MaxPeriod+1),
				driver.NewBucket(math.MaxInt, time.Second), driver.NewBucket(1, 32*24*time.Hour),
			} {
				e := p.decide(at(0), driver.Entry{Claims: []driver.Claim{k.claim(rule, 1)}},
					driver.Entry{Claims: []driver.Claim{k.claim(rule, 1), p.key("second").claim(bad, 1)}},
					driver.Entry{Claims: []driver.Claim{k.claim(rule, 0)}})
				if e[1].Err == nil || e[0].Err != nil || e[2].Err != nil {
					p.errorf("rule %v: Err of the three entries %v, %v, %v; want only the second", bad, e[0].Err, e[1].Err, e[2].Err)
				}
				p.admitted("the entry before", e[0].Claims[0].Result, 4)
				p.admitted("the entry after", e[2].Claims[0].Result, 4)
				k = p.key("bucket after " + bad.String() + unique())
			}
		}},
}
