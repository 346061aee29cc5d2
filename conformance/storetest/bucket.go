package storetest

import (
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// bucketCases are about the arithmetic of one token bucket, where a known fault or an edge has a name. Agreement with
// the model on arbitrary histories is in historyCases.
var bucketCases = []Case{
	{"BR001_small_bucket_with_a_fast_refill", "a lifetime rounded down to 0 fails every check, and failing open nobody is limited",
		func(p *probe) {
			k, rule := p.key("bucket"), perSecond(3, 1)
			p.admitted("t=0", p.take(k, rule, 1, at(0)), 0)
			p.refused("t=50ms", p.take(k, rule, 1, at(50*time.Millisecond)), 0, 283_334*time.Microsecond)
		}},
	{"BR002_rates_without_a_whole_interval", "a fraction in an argument or an expiry that must be an integer fails only some configurations",
		func(p *probe) {
			for _, rule := range []driver.Rule{
				perSecond(7, 3), driver.NewBucket(5, 2*time.Second).WithBurst(4), driver.NewBucket(3, 333*time.Millisecond),
				driver.NewBucket(7, 1500*time.Microsecond), driver.NewBucket(1, 1500*time.Nanosecond),
			} {
				k := p.key(rule.String())
				p.admitted(rule.String(), p.take(k, rule, 1, at(0)), rule.Capacity()-1)
			}
		}},
	{"BR005_one_per_day", "a rate below one per second kept in an integer is 0 or 1 per second",
		func(p *probe) {
			k, rule := p.key("bucket"), perDay(1)
			p.admitted("t=0", p.take(k, rule, 1, at(0)), 0)
			p.refused("t=43200s", p.take(k, rule, 1, at(12*time.Hour)), 0, 12*time.Hour)
			p.refused("t=86399s", p.take(k, rule, 1, at(24*time.Hour-time.Second)), 0, time.Second)
			p.admitted("t=86400s", p.take(k, rule, 1, at(24*time.Hour)), 0)
		}},
	{"BR006_very_large_rates", "an interval that rounds to zero means an error, or a full bucket for ever",
		func(p *probe) {
			for _, n := range []int{2000, 1_000_000, 10_000_000, 1_000_000_000} {
				rule := perSecond(n, 10)
				k := p.key(rule.String())
				for i := range 10 {
					p.admitted(rule.String(), p.take(k, rule, 1, at(0)), 9-i)
				}
				for range 90 {
					if r := p.take(k, rule, 1, at(0)); r.Allowed {
						p.errorf("%v: an 11th was allowed at one instant", rule)
					}
				}
				if n < 1_000_000 {
					continue
				}
				for i := range 11 {
					if r := p.take(k, rule, 1, at(time.Millisecond)); r.Allowed != (i < 10) {
						p.errorf("%v: after 1ms, request %d: %s", rule, i+1, show(r))
					}
				}
			}
		}},
	{"BR008_long_idle", "elapsed time times rate wraps, tokens become negative and everything is refused",
		func(p *probe) {
			for _, idle := range []time.Duration{12 * time.Hour, 365 * 24 * time.Hour, 80 * 365 * 24 * time.Hour} {
				for _, rule := range []driver.Rule{
					perSecond(1_000_000, 1_000_000), perSecond(1_000_000_000, 1_000_000_000),
					driver.NewBucket(999_999_937, time.Second).WithBurst(1_000_000_000),
				} {
					k := p.key(idle.String() + rule.String())
					p.admitted("drain", p.take(k, rule, rule.Capacity(), at(0)), 0)
					p.admitted("after "+idle.String(), p.take(k, rule, 1, at(idle)), rule.Capacity()-1)
				}
			}
		}},
	{"wide_product", "elapsed time times rate above 2^53 is exact too, not merely full: a slow rule with a huge burst",
		func(p *probe) {
			rule := driver.NewBucket(999_999_937, driver.MaxPeriod).WithBurst(1_000_000_000)
			k := p.key("bucket")
			p.admitted("drain", p.take(k, rule, 1_000_000_000, at(0)), 0)
			// 20 days and a bit: 999999937 x 1728000000001 / 2678400000000 is 645161249.68 tokens.
			r := p.take(k, rule, 0, at(20*24*time.Hour+time.Microsecond))
			p.admitted("20 days later", r, 645_161_249)
			if got := r.Fraction; got.Den != 2_678_400_000_000 || got.Num != 1_815_399_999_937 {
				p.errorf("fraction %d/%d, want 1815399999937/2678400000000", got.Num, got.Den)
			}
		}},
	{"BR021_fast_polling_keeps_its_fraction", "a fraction dropped while the time advances starves whoever polls faster than a token comes",
		func(p *probe) {
			k, rule := p.key("600ms"), perSecond(1, 1)
			for i := range 20 {
				if r := p.take(k, rule, 1, at(time.Duration(i)*600*time.Millisecond)); r.Allowed != (i%2 == 0) {
					p.errorf("every 600ms, request %d: %s", i+1, show(r))
				}
			}
			poll := func(name string, rule driver.Rule, every, total time.Duration, want int) {
				k, got := p.key(name), 0
				for t := time.Duration(0); t <= total; t += every {
					if p.take(k, rule, 1, at(t)).Allowed {
						got++
					}
				}
				if got != want {
					p.errorf("%s: %d admitted, want %d", name, got, want)
				}
			}
			poll("10ms", perSecond(1, 1), 10*time.Millisecond, 10*time.Second, 11)
			poll("1ms", perSecond(2, 1), time.Millisecond, 3*time.Second, 7)
			poll("7ms", perSecond(3, 2), 7*time.Millisecond, 7*time.Second, 2+21) // what is above a whole token stays
		}},
	{"BR022_tokens_come_evenly", "a clock of whole seconds delivers a second's tokens in one lump",
		func(p *probe) {
			k, rule := p.key("bucket"), perSecond(1000, 100)
			p.admitted("drain", p.take(k, rule, 100, at(0)), 0)
			for slot := 1; slot <= 200; slot++ {
				batch := make([]driver.Entry, 20)
				for i := range batch {
					batch[i].Claims = []driver.Claim{k.claim(rule, 1)}
				}
				p.decide(at(time.Duration(slot)*10*time.Millisecond), batch...)
				if got := allowed(batch); got != 10 {
					p.errorf("slot %d: %d admitted, want 10", slot, got)
				}
			}
		}},
	{"BR024_burst_is_what_passes_at_once", "a burst of n that lets n+1 pass, or reports one too few",
		func(p *probe) {
			for _, burst := range []int{1, 2, 15} {
				rule := perSecond(10, burst)
				k := p.key(rule.String())
				for i := range 20 {
					r := p.take(k, rule, 1, at(0))
					if i < burst {
						p.admitted(rule.String(), r, burst-1-i)
					} else {
						p.refused(rule.String(), r, 0, 100*time.Millisecond)
					}
				}
			}
		}},
	{"BR026_no_early_reset", "state that goes before it equals a fresh key hands out a full bucket",
		func(p *probe) {
			k, rule := p.key("bucket"), perSecond(1, 10)
			p.admitted("drain", p.take(k, rule, 10, at(0)), 0)
			p.refused("t=9.9s", p.take(k, rule, 10, at(9900*time.Millisecond)), 9, 100*time.Millisecond)
			p.admitted("t=10s", p.take(k, rule, 10, at(10*time.Second)), 0)
		}},
	{"BR039_refused_changes_nothing", "requests that are refused and yet counted keep a client out for as long as it asks",
		func(p *probe) {
			k, rule := p.key("bucket"), perSecond(1, 5)
			for i := range 5 {
				p.admitted("fill", p.take(k, rule, 1, at(0)), 4-i)
			}
			for range 500 {
				p.refused("t=0", p.take(k, rule, 1, at(0)), 0, time.Second)
			}
			p.refused("t=1s, cost 3", p.take(k, rule, 3, at(time.Second)), 1, 2*time.Second)
			p.admitted("t=1s, cost 1", p.take(k, rule, 1, at(time.Second)), 0)
		}},
	{"refused_under_another_rule_leaves_no_trace", "a refused request that writes the time down credits the past at a rule that was in force for one request",
		func(p *probe) {
			k, slow := p.key("bucket"), perDay(5)
			p.admitted("drain", p.take(k, slow, 5, at(0)), 0)
			p.refused("fast rule", p.take(k, perSecond(1, 5), 5, at(4*time.Second)), 4, time.Second)
			p.refused("slow rule again", p.take(k, slow, 1, at(4*time.Second)), 0, 24*time.Hour/5-4*time.Second)
		}},
	{"BR062_late_clock_keeps_every_digit", "a time in microseconds that passes through 14 digits loses the last ones",
		func(p *probe) {
			late := time.Date(2100, 12, 31, 23, 59, 59, 999_998_000, time.UTC)
			k, rule := p.key("bucket"), perSecond(1_000_000, 1)
			p.admitted("t=0", p.take(k, rule, 1, late), 0)
			p.refused("the same microsecond", p.take(k, rule, 1, late), 0, time.Microsecond)
			p.admitted("1us later", p.take(k, rule, 1, late.Add(time.Microsecond)), 0)
			p.refused("the same microsecond again", p.take(k, rule, 1, late.Add(time.Microsecond)), 0, time.Microsecond)
		}},
	{"BR153_waiting_as_told_is_enough", "a wait rounded down sends an obedient client into a second refusal; one rounded up keeps it out too long",
		func(p *probe) {
			for _, rule := range []driver.Rule{
				perSecond(10, 10), perSecond(3, 2), perMinute(7, 7), driver.NewBucket(1, time.Hour), perDay(1),
				driver.NewBucket(999_999_937, driver.MaxPeriod).WithBurst(1_000_000_000),
			} {
				p.promise(rule)
			}
		}},
}

// promise checks that both waits of an answer are tight: to the microsecond, neither too short nor too long.
func (p *probe) promise(rule driver.Rule) {
	k, now := p.key("promise "+rule.String()), at(0)
	for round := range 10 {
		r := p.take(k, rule, rule.Capacity(), now)
		if !r.Allowed {
			p.fatalf("%v round %d: a full bucket refused: %s", rule, round, show(r))
		}
		reset := now.Add(r.ResetAfter)
		now = now.Add(time.Duration(round) * 12_345 * time.Microsecond) // somewhere inside a token
		for p.take(k, rule, 1, now).Allowed {
			continue
		}
		cost := 1 + round*(rule.Capacity()-1)/20
		r = p.take(k, rule, cost, now)
		if r.Allowed || r.RetryAfter <= 0 {
			p.fatalf("%v round %d: cost %d of an empty bucket: %s", rule, round, cost, show(r))
		}
		now = now.Add(r.RetryAfter - time.Microsecond)
		if e := p.take(k, rule, cost, now); e.Allowed || e.RetryAfter != time.Microsecond {
			p.errorf("%v round %d: 1us before the promised %v: %s", rule, round, r.RetryAfter, show(e))
		}
		now = now.Add(time.Microsecond)
		if r = p.take(k, rule, cost, now); !r.Allowed {
			p.errorf("%v round %d: refused after waiting as told: %s", rule, round, show(r))
		}
		if r.ResetAfter <= 0 || round == 0 && now.Add(r.ResetAfter).Before(reset) {
			p.errorf("%v round %d: reset after %v, earlier than it was promised before anything else was taken", rule, round, r.ResetAfter)
		}
		now = now.Add(r.ResetAfter - time.Microsecond)
		if r = p.take(k, rule, rule.Capacity(), now); r.Allowed {
			p.errorf("%v round %d: full 1us before the promised reset", rule, round)
		}
		now = now.Add(time.Microsecond)
		if r = p.take(k, rule, 0, now); r.Remaining != rule.Capacity() || r.ResetAfter != 0 {
			p.errorf("%v round %d: not full at the promised reset: %s", rule, round, show(r))
		}
	}
}

// allowed counts the admitted entries of one claim each.
func allowed(batch []driver.Entry) int {
	n := 0
	for i := range batch {
		if batch[i].Claims[0].Result.Allowed {
			n++
		}
	}
	return n
}
