package storetest

import (
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// windowChangeCases are about windows whose rule changes under live keys, and about times that do not behave.
var windowChangeCases = []Case{
	{"BR042_a_new_limit_of_a_window_counts_at_once", "a limit kept with the state is ignored until the window ends, for a busy key of a long window nearly for ever",
		func(p *probe) {
			for _, kind := range []driver.Kind{driver.KindFixed, driver.KindSliding} {
				rule := func(n int) driver.Rule { return driver.NewWindow(kind, n, time.Minute) }
				k := p.key(rule(1).String())
				p.admitted("50 of 100", p.take(k, rule(100), 50, at(0)), 50)
				r := p.take(k, rule(30), 1, at(time.Second))
				if r.Allowed || r.Remaining != 0 || r.Reason != driver.ReasonLimit {
					p.errorf("lowered to 30: %s", show(r))
				}
				p.admitted("raised to 80", p.take(k, rule(80), 1, at(time.Second)), 29)
				p.admitted("raised to 150", p.take(k, rule(150), 1, at(time.Second)), 98)
			}
		}},
	{"BR044_a_reload_keeps_the_counts", "whoever can cause a reload has no limit",
		func(p *probe) {
			k := p.key("window")
			p.admitted("5 of 5", p.take(k, fixed(5, time.Minute), 5, at(0)), 0)
			for range 20 {
				p.refused("after a reload", p.take(k, fixed(5, time.Minute), 1, at(0)), 0, time.Minute)
			}
			p.admitted("raised to 50", p.take(k, fixed(50, time.Minute), 1, at(0)), 44)
		}},
	{"a_change_of_kind_keeps_the_counts", "a window that becomes a sliding one, or one of a calendar, and begins at nothing",
		func(p *probe) {
			k := p.key("window")
			day := driver.NewWindow(driver.KindDaily, 10, 0)
			p.admitted("fixed", p.take(k, fixed(10, time.Minute), 2, at(0)), 8)
			p.admitted("sliding", p.take(k, sliding(10, time.Minute), 2, at(time.Second)), 6)
			p.admitted("daily", p.take(k, day, 2, at(2*time.Second)), 4)
			p.admitted("fixed again", p.take(k, fixed(10, time.Minute), 4, at(3*time.Second)), 0)
			p.refused("sliding again", p.take(k, sliding(10, time.Minute), 1, at(4*time.Second)), 0, 62*time.Second)
			p.refused("daily again", p.take(k, day, 1, at(4*time.Second)), 0, 12*time.Hour-4*time.Second)
			// What a fixed window counted is the window before of a sliding one.
			p.admitted("sliding, in the middle of the next", p.take(k, sliding(10, time.Minute), 5, at(90*time.Second)), 0)
		}},
	{"a_change_of_length_keeps_the_counts", "counts belong to whichever window of today's rule holds the last admission",
		func(p *probe) {
			k := p.key("window")
			p.admitted("a minute", p.take(k, fixed(10, time.Minute), 7, at(65*time.Second)), 3)
			p.admitted("an hour", p.take(k, fixed(10, time.Hour), 0, at(10*time.Minute)), 3)
			p.admitted("ten seconds", p.take(k, fixed(10, 10*time.Second), 0, at(69*time.Second)), 3)
			p.admitted("ten seconds, the next", p.take(k, fixed(10, 10*time.Second), 0, at(70*time.Second)), 10)
			p.admitted("sliding by 30 seconds, in the next", p.take(k, sliding(10, 30*time.Second), 0, at(105*time.Second)), 6) // 3.5 of 7
		}},
	{"a_bucket_is_not_a_window", "a bucket that becomes a window reads tokens as counts",
		func(p *probe) {
			k := p.key("limit")
			p.admitted("bucket", p.take(k, perSecond(1, 10), 9, at(0)), 1)
			p.admitted("window", p.take(k, fixed(10, time.Minute), 3, at(0)), 7)
			p.admitted("bucket again", p.take(k, perSecond(1, 10), 1, at(0)), 0)
			p.admitted("window again", p.take(k, sliding(10, time.Minute), 1, at(0)), 6)
		}},
	{"refused_under_another_window_leaves_no_trace", "a refusal, or a read, that writes what it saw moves counts into another window",
		func(p *probe) {
			k, minute := p.key("window"), fixed(5, time.Minute)
			p.admitted("5 of 5", p.take(k, minute, 5, at(0)), 0)
			for _, rule := range []driver.Rule{sliding(5, 10*time.Second), fixed(3, time.Hour)} {
				if r := p.take(k, rule, rule.Capacity(), at(15*time.Second)); r.Allowed {
					p.errorf("%v: %s", rule, show(r))
				}
				p.take(k, rule, 0, at(25*time.Second))
			}
			p.refused("a minute again", p.take(k, minute, 1, at(30*time.Second)), 0, 30*time.Second)
			p.admitted("10 seconds", p.take(k, fixed(5, 10*time.Second), 0, at(30*time.Second)), 5)
		}},
	{"BR048_windows_of_two_lengths_on_one_subject", "a limit by the second and one by the hour on the same client feed each other",
		func(p *probe) {
			sec, hour := p.key("sec"), p.key("hour")
			for i := range 10 {
				now := at(time.Duration(i) * 300 * time.Millisecond)
				r := p.entry(now, sec.claim(fixed(10, time.Second), 1), hour.claim(fixed(30, time.Hour), 1))
				p.admitted("hour", r[1], 29-i)
				if r[0].Remaining < 6 {
					p.errorf("second: %s", show(r[0]))
				}
			}
		}},
	{"BR013_a_clock_back_over_an_edge", "a window that is opened again by a clock that steps back is filled twice",
		func(p *probe) {
			for _, rule := range both(5, time.Minute) {
				k := p.key(rule.String())
				p.admitted("4 of 5 just after an edge", p.take(k, rule, 4, at(61*time.Second)), 1)
				p.admitted("the last, just before it", p.take(k, rule, 1, at(59*time.Second)), 0)
				for _, d := range []time.Duration{59 * time.Second, 30 * time.Second, 61 * time.Second, -time.Hour} {
					if r := p.take(k, rule, 1, at(d)); r.Allowed {
						p.errorf("%v, at %v: %s", rule, d, show(r))
					}
				}
			}
		}},
	{"own_clock_of_windows", "without a given time a store has a clock of its own, and its windows end",
		func(p *probe) {
			for _, rule := range both(1, 30*time.Millisecond) {
				k := p.key(rule.String())
				start, refusals := time.Now(), 0
				for got := 0; got < 3; {
					switch r := p.take(k, rule, 1, time.Time{}); {
					case r.Allowed:
						got++
					case r.RetryAfter > 60*time.Millisecond || r.ResetAfter > 30*time.Millisecond:
						p.errorf("%v: %s", rule, show(r))
					default:
						refusals++
					}
					if time.Since(start) > 10*time.Second {
						p.fatalf("%v: %d admitted in 10s", rule, got)
					}
				}
				if refusals == 0 {
					p.errorf("%v: 3 admitted without a refusal", rule)
				}
			}
		}},
}
