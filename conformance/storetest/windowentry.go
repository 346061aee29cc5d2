package storetest

import (
	"math"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// windowEntryCases are about requests with several claims of which some are windows, and about batches of them.
var windowEntryCases = []Case{
	{"all_or_nothing_of_bucket_and_window", "a request that one limiter refuses has paid at the other",
		func(p *probe) {
			for _, narrow := range both(3, time.Minute) {
				p.allOrNothingOf(p.key("wide bucket"+narrow.String()), perSecond(1, 100), p.key("narrow"+narrow.String()), narrow, time.Minute)
			}
			for i, wide := range append(both(100, time.Minute), driver.NewWindow(driver.KindDaily, 100, 0)) {
				p.allOrNothingOf(p.key("wide"+wide.String()), wide, p.key("narrow bucket"+wide.String()), perSecond(1, 3), time.Second)
				narrow := both(3, time.Hour)[i%2]
				p.allOrNothingOf(p.key("wide 2"+wide.String()), wide, p.key("narrow 2"+wide.String()), narrow, time.Hour)
			}
		}},
	{"BR149_day_then_minute", "the minute's window refuses, the day's was charged already: refused retries burn the day's quota",
		func(p *probe) {
			for _, reverse := range []bool{false, true} {
				day, minute := driver.NewWindow(driver.KindDaily, 30, 0), sliding(10, time.Minute)
				d, m := p.keyOf("day", fmtBool(reverse)), p.keyOf("minute", fmtBool(reverse))
				left := 30
				for i := range 31 {
					claims := []driver.Claim{d.claim(day, 1), m.claim(minute, 1)}
					di, mi := 0, 1
					if reverse {
						claims[0], claims[1] = claims[1], claims[0]
						di, mi = 1, 0
					}
					r := p.entry(at(time.Duration(i)*time.Second), claims...)
					if r[di].Allowed && r[mi].Allowed {
						left--
					}
					if r[di].Remaining != left {
						p.errorf("request %d: the day has %d left, want %d", i+1, r[di].Remaining, left)
					}
				}
				if left != 20 {
					p.errorf("%d of the day's 30 left, want 20", left)
				}
			}
		}},
	{"shadow_windows", "a shadow window that refuses, or that is charged for requests which somebody else refused",
		func(p *probe) {
			for _, rule := range both(2, time.Minute) {
				a, s := p.key("enforced"+rule.String()), p.key("shadow"+rule.String())
				for i := range 4 {
					r := p.entry(at(0), s.shadow(rule, 1), a.claim(perSecond(1, 4), 1))
					p.admitted("enforced", r[1], 3-i)
					if i < 2 {
						p.admitted("shadow", r[0], 1-i)
					} else if r[0].Allowed || r[0].RetryAfter <= 0 {
						p.errorf("%v: shadow, full: %s", rule, show(r[0]))
					}
				}
				k := p.key("uncharged" + rule.String())
				r := p.entry(at(0), k.shadow(rule, 1), a.claim(perSecond(1, 4), 1))
				p.admitted("shadow of a refused request", r[0], 2)
				p.admitted("nothing was charged", p.take(k, rule, 0, at(0)), 2)
				// And a shadow bucket beside a window that refuses.
				full, b := p.key("full"+rule.String()), p.key("bucket"+rule.String())
				p.take(full, rule, 2, at(0))
				r = p.entry(at(0), b.shadow(perSecond(1, 5), 1), full.claim(rule, 1))
				if p.admitted("shadow bucket of a refused request", r[0], 5); r[1].Allowed {
					p.errorf("%v: a full window: %s", rule, show(r[1]))
				}
			}
		}},
	{"two_claims_on_one_window", "the second claim on a key that reads the state from before the first over-admits",
		func(p *probe) {
			for _, rule := range both(5, time.Minute) {
				k := p.key(rule.String())
				r := p.entry(at(0), k.claim(rule, 2), k.claim(rule, 2))
				p.admitted("first", r[0], 3)
				p.admitted("second", r[1], 1)
				if r = p.entry(at(0), k.claim(rule, 1), k.claim(rule, 1)); !r[0].Allowed || r[1].Allowed {
					p.errorf("%v: 1 left, twice 1: %s and %s; want the second refused", rule, show(r[0]), show(r[1]))
				}
				p.admitted("nothing was taken", p.take(k, rule, 0, at(0)), 1)
			}
		}},
	{"windows_of_a_batch_see_each_other", "requests packed into one call that all read the same state are all admitted",
		func(p *probe) {
			for _, rule := range append(both(5, time.Minute), daily(5, "Europe/Berlin")) {
				k, b := p.key(rule.String()), p.key("bucket"+rule.String())
				batch := make([]driver.Entry, 12)
				for i := range batch {
					batch[i].Claims = []driver.Claim{k.claim(rule, 1)}
					if i%3 == 0 {
						batch[i].Claims = append(batch[i].Claims, b.claim(perSecond(1, 9), 1))
					}
				}
				for i, e := range p.decide(at(0), batch...) {
					if i < 5 {
						p.admitted("in order", e.Claims[0].Result, 4-i)
					} else if e.Claims[0].Result.Allowed {
						p.errorf("%v: request %d of 5 in a batch: %s", rule, i+1, show(e.Claims[0].Result))
					}
				}
				p.admitted("the bucket beside them", p.take(b, perSecond(1, 9), 0, at(0)), 7)
			}
		}},
	{"answers_of_windows_overwrite_what_was_there", "a batch that is used again shows the answers of the last time",
		func(p *probe) {
			k, rule := p.key("window"), fixed(1, time.Minute)
			junk := driver.Result{Allowed: true, Reason: driver.ReasonMemory, Remaining: 77, RetryAfter: time.Hour,
				ResetAfter: time.Hour, Fraction: driver.Fraction{Num: 5, Den: 6}, Receipt: driver.Receipt{Start: 1, Unit: 2}}
			for i := range 2 {
				c := k.claim(rule, 1)
				c.Result = junk
				want := driver.Result{Allowed: true, ResetAfter: time.Minute, Receipt: driver.Receipt{Start: noon.UnixMicro(), Unit: 60_000_000}}
				if i == 1 {
					want.Allowed, want.Reason, want.RetryAfter = false, driver.ReasonLimit, time.Minute
				}
				if got := p.entry(at(0), c)[0]; got != want {
					p.errorf("got %+v; want %+v", got, want)
				}
			}
		}},
	{"invalid_windows_hurt_their_own_entry_only", "one bad rule in a pack fails a stranger's request",
		func(p *probe) {
			rule := fixed(5, time.Minute)
			for _, bad := range []driver.Rule{
				fixed(0, time.Minute), fixed(-1, time.Minute), sliding(1_000_000_001, time.Minute), sliding(math.MaxInt, time.Minute),
				fixed(5, 0), fixed(5, -time.Second), sliding(5, time.Millisecond-1), fixed(5, driver.MaxPeriod+time.Microsecond),
				sliding(5, time.Minute+1), rule.WithBurst(5), rule.WithBurst(0), rule.In(time.UTC), rule.In(nil), perSecond(1, 5).In(time.UTC),
				driver.NewWindow(driver.KindDaily, 0, 0), driver.NewWindow(driver.KindMonthly, 5, 0).In(nil),
			} {
				k := p.keyOf("window", bad.String()+unique())
				e := p.decide(at(0), driver.Entry{Claims: []driver.Claim{k.claim(rule, 1)}},
					driver.Entry{Claims: []driver.Claim{k.claim(rule, 1), p.key("second").claim(bad, 1)}},
					driver.Entry{Claims: []driver.Claim{k.claim(rule, -1)}}, driver.Entry{Claims: []driver.Claim{k.claim(rule, 0)}})
				if e[0].Err != nil || e[1].Err == nil || e[2].Err == nil || e[3].Err != nil {
					p.errorf("rule %v: Err of the four entries %v, %v, %v, %v; want the second and the third", bad, e[0].Err, e[1].Err, e[2].Err, e[3].Err)
				}
				p.admitted("the entry before", e[0].Claims[0].Result, 4)
				p.admitted("the entry after", e[3].Claims[0].Result, 4)
			}
		}},
	{"key_names_of_windows", "a key that changes with the kind of a window loses its counts; one that a bucket shares is misread",
		func(p *probe) {
			namer, ok := p.store().(driver.KeyNamer)
			if !ok {
				return
			}
			name := namer.KeyName("tenant", "alice", fixed(5, time.Minute))
			for _, rule := range []driver.Rule{fixed(9, time.Hour), sliding(5, time.Minute), daily(5, "Europe/Berlin"), monthly(5, "UTC")} {
				if got := namer.KeyName("tenant", "alice", rule); got != name {
					p.errorf("%v: key %q, and %q for another window", rule, got, name)
				}
			}
			if bucket := namer.KeyName("tenant", "alice", perSecond(1, 5)); name == "" || name == bucket {
				p.errorf("key %q of a window, and %q of a bucket", name, bucket)
			}
		}},
}

func fmtBool(b bool) string {
	if b {
		return "reverse"
	}
	return "straight"
}

// allOrNothingOf fills a narrow limit of 3 and checks that a wide one of 100 is charged for admitted requests only, in
// both orders. What the narrow one refuses it refuses for at least wait.
func (p *probe) allOrNothingOf(wide key, wideRule driver.Rule, narrow key, narrowRule driver.Rule, wait time.Duration) {
	for i := range 10 {
		claims := []driver.Claim{wide.claim(wideRule, 2), narrow.claim(narrowRule, 1)}
		first, second := 0, 1
		if i%2 == 1 {
			claims[0], claims[1] = claims[1], claims[0]
			first, second = 1, 0
		}
		r := p.entry(at(0), claims...)
		if i < 3 {
			p.admitted("wide", r[first], 98-2*i)
			p.admitted("narrow", r[second], 2-i)
			continue
		}
		p.admitted("wide, not taken", r[first], 94)
		if r[second].Allowed || r[second].RetryAfter < wait || r[second].RetryAfter > 2*wait {
			p.errorf("narrow: %s, want refused for %v or more", show(r[second]), wait)
		}
	}
	p.admitted("wide, after all", p.take(wide, wideRule, 0, at(0)), 94)
}
