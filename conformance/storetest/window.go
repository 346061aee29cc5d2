package storetest

import (
	"math"
	"slices"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// Rules of the cases about windows. Noon is an edge of every window up to an hour that divides one.

func fixed(n int, d time.Duration) driver.Rule   { return driver.NewWindow(driver.KindFixed, n, d) }
func sliding(n int, d time.Duration) driver.Rule { return driver.NewWindow(driver.KindSliding, n, d) }

// both returns the two kinds of window of one length.
func both(n int, d time.Duration) []driver.Rule { return []driver.Rule{fixed(n, d), sliding(n, d)} }

// many asks n times for cost 1 and returns how many were allowed.
func (p *probe) many(k key, rule driver.Rule, n int, now time.Time) int {
	batch := make([]driver.Entry, n)
	for i := range batch {
		batch[i].Claims = []driver.Claim{k.claim(rule, 1)}
	}
	return allowed(p.decide(now, batch...))
}

// windowCases are about the arithmetic of one window, where a known fault or an edge has a name.
var windowCases = []Case{
	{"BR027_burst_at_an_edge", "two full quotas within a moment, one before and one after the edge: documented of a fixed window, wrong in a sliding one",
		func(p *probe) {
			f, s := p.key("fixed"), p.key("sliding")
			before, after := at(59900*time.Millisecond), at(60100*time.Millisecond)
			if a, b := p.many(f, fixed(10, time.Minute), 10, before), p.many(f, fixed(10, time.Minute), 10, after); a != 10 || b != 10 {
				p.errorf("fixed: %d before and %d after the edge, want 10 and 10", a, b)
			}
			rule := sliding(10, time.Minute)
			if a, b := p.many(s, rule, 10, before), p.many(s, rule, 10, after); a != 10 || b != 0 {
				p.errorf("sliding: %d before and %d after the edge, want 10 and 0", a, b)
			}
			got := 0
			for x := 1; x <= 60; x++ {
				if got += p.many(s, rule, 1, at(time.Duration(60+x)*time.Second)); got > x/6 {
					p.errorf("sliding: %d within %d s of the edge, want %d at most", got, x, x/6)
				}
			}
			if got != 10 {
				p.errorf("sliding: %d within the next minute, want 10", got)
			}
		}},
	{"BR028_steady_overload", "refused requests that are counted keep a window full for as long as somebody asks",
		func(p *probe) {
			k, rule := p.key("sliding"), sliding(5, 10*time.Second)
			var got []int
			for s := range 40 {
				if p.take(k, rule, 1, at(time.Duration(s)*time.Second)).Allowed {
					got = append(got, s)
				}
			}
			if want := []int{0, 1, 2, 3, 4, 12, 14, 16, 18, 20, 23, 25, 28, 30, 33, 35, 38}; !slices.Equal(got, want) {
				p.errorf("allowed at %d s, want %d", got, want)
			}
		}},
	{"BR029_slow_poller", "an expiry that every request renews locks out whoever asks more often than a window is long",
		func(p *probe) {
			k, rule := p.key("fixed"), fixed(20, 30*time.Second)
			p.admitted("20 of 20", p.take(k, rule, 20, at(0)), 0)
			for s := 10; s <= 300; s += 10 {
				r := p.take(k, rule, 1, at(time.Duration(s)*time.Second))
				if s < 30 {
					p.refused("in the first window", r, 0, time.Duration(30-s)*time.Second)
				} else {
					p.admitted("later", r, 20-1-(s%30)/10)
				}
			}
		}},
	{"BR032_old_requests_do_not_count", "what is old has to go before it is counted, not after",
		func(p *probe) {
			// A log of requests would be empty after 2.05 s; a weighted window sees 97.5 % of the one before then.
			k, rule := p.key("sliding"), sliding(5, 2*time.Second)
			for _, v := range []struct {
				after time.Duration
				want  int
			}{{0, 5}, {2050 * time.Millisecond, 0}, {4 * time.Second, 5}, {9 * time.Second, 5}} {
				if got := p.many(k, rule, 6, at(v.after)); got != v.want {
					p.errorf("after %v: %d of 6, want %d", v.after, got, v.want)
				}
			}
		}},
	{"BR033_equal_times", "requests with one and the same time that are counted as one",
		func(p *probe) {
			for _, rule := range both(30, time.Minute) {
				k := p.key(rule.String())
				if got := p.many(k, rule, 40, at(time.Second)) + p.many(k, rule, 60, at(time.Second)); got != 30 {
					p.errorf("%v: %d of 100 in one microsecond, want 30", rule, got)
				}
			}
		}},
	{"BR037_short_windows", "a length cut to whole seconds is a division by zero, or another length",
		func(p *probe) {
			for _, d := range []time.Duration{time.Millisecond, 500 * time.Millisecond, 1500 * time.Millisecond, 2700 * time.Millisecond} {
				for _, rule := range both(3, d) {
					k := p.key(rule.String())
					now := time.UnixMicro(noon.UnixMicro() / d.Microseconds() * d.Microseconds()) // an edge
					if got := p.many(k, rule, 4, now); got != 3 {
						p.errorf("%v: %d of 4 at once, want 3", rule, got)
					}
					if r := p.take(k, rule, 0, now); r.ResetAfter != d {
						p.errorf("%v: reset after %v", rule, r.ResetAfter)
					}
					later := d
					if rule.Kind() == driver.KindSliding {
						later = 2 * d
					}
					if got := p.many(k, rule, 3, now.Add(later)); got != 3 {
						p.errorf("%v: %d of 3 after %v", rule, got, later)
					}
				}
			}
		}},
	{"BR039_refused_requests_do_not_count_in_a_window", "after a thousand refusals the limit is raised, and the client is refused again",
		func(p *probe) {
			for _, kind := range both(1, 10*time.Second) {
				k := p.key(kind.String())
				rule := driver.NewWindow(kind.Kind(), 5, 10*time.Second)
				if got := p.many(k, rule, 5, at(0)); got != 5 {
					p.errorf("%v: %d of 5", rule, got)
				}
				for range 10 {
					if got := p.many(k, rule, 50, at(time.Second)); got != 0 {
						p.errorf("%v: %d of 50 in a full window", rule, got)
					}
				}
				p.admitted("limit 500", p.take(k, driver.NewWindow(kind.Kind(), 500, 10*time.Second), 1, at(5*time.Second)), 494)
			}
		}},
	{"BR016_cost_above_a_window", "refused for ever, and told to come back",
		func(p *probe) {
			for _, rule := range both(5, 10*time.Second) {
				k := p.key(rule.String())
				for _, cost := range []int{6, 1_000_000_001, math.MaxInt} {
					r := p.take(k, rule, cost, at(4*time.Second))
					if r.Allowed || r.Reason != driver.ReasonCost || r.RetryAfter != 0 || r.Remaining != 5 {
						p.errorf("%v: cost %d: got %s; want refused (cost_exceeds_limit), remaining 5, no retry", rule, cost, show(r))
					}
				}
				p.admitted("cost 5", p.take(k, rule, 5, at(4*time.Second)), 0)
				wait := 6 * time.Second
				if rule.Kind() == driver.KindSliding {
					wait += 2 * time.Second // until a fifth of the five has slid out
				}
				p.refused("cost 1", p.take(k, rule, 1, at(4*time.Second)), 0, wait)
				// With more used than a lower limit allows, the difference to the largest cost wraps.
				r := p.take(k, driver.NewWindow(rule.Kind(), 2, 10*time.Second), math.MaxInt, at(4*time.Second))
				if r.Allowed || r.Reason != driver.ReasonCost {
					p.errorf("%v, lowered to 2: the largest cost: %s", rule, show(r))
				}
			}
		}},
	{"BR018_cost_zero_reads_a_window", "a read that counts, or is refused",
		func(p *probe) {
			for _, rule := range both(5, 10*time.Second) {
				k := p.key(rule.String())
				for range 3 {
					p.admitted("cost 0", p.take(k, rule, 0, at(0)), 5)
				}
				p.admitted("cost 5", p.take(k, rule, 5, at(0)), 0)
				p.admitted("cost 0 of nothing", p.take(k, rule, 0, at(time.Second)), 0)
				p.admitted("and below a lower limit", p.take(k, driver.NewWindow(rule.Kind(), 2, 10*time.Second), 0, at(time.Second)), 0)
			}
		}},
	{"BR008_long_idle_of_windows", "a window of years ago that still counts, or a difference that wraps",
		func(p *probe) {
			for _, idle := range []time.Duration{12 * time.Hour, 365 * 24 * time.Hour, 80 * 365 * 24 * time.Hour} {
				for _, rule := range append(both(1_000_000, time.Second), both(1_000_000_000, time.Hour)...) {
					k := p.key(idle.String() + rule.String())
					p.admitted("all", p.take(k, rule, rule.Capacity(), at(0)), 0)
					p.admitted("after "+idle.String(), p.take(k, rule, 1, at(idle)), rule.Capacity()-1)
				}
			}
		}},
	{"windows_are_aligned", "windows that begin with a client's first request end at a time that nobody can tell beforehand",
		func(p *probe) {
			for _, rule := range both(4, time.Minute) {
				k := p.key(rule.String())
				for i, us := range []time.Duration{45 * time.Second, 60*time.Second - time.Microsecond} {
					r := p.take(k, rule, 2, at(us))
					p.admitted("in the first minute", r, 2-2*i)
					want := driver.Receipt{Start: noon.UnixMicro(), Unit: 60_000_000}
					if r.Receipt != want || r.ResetAfter != time.Minute-us {
						p.errorf("%v: receipt %+v, reset after %v; want %+v", rule, r.Receipt, r.ResetAfter, want)
					}
				}
				r := p.take(k, rule, 1, at(time.Minute))
				if rule.Kind() == driver.KindFixed {
					p.admitted("on the edge", r, 3)
				} else {
					p.refused("on the edge", r, 0, 15*time.Second)
				}
				if r.Receipt.Start != at(time.Minute).UnixMicro() {
					p.errorf("%v: on the edge the receipt is %+v", rule, r.Receipt)
				}
			}
		}},
	{"only_the_window_before_overlaps", "a window that is two windows ago, and still counts",
		func(p *probe) {
			k, rule := p.key("sliding"), sliding(10, time.Minute)
			p.admitted("8 of 10", p.take(k, rule, 8, at(0)), 2)
			p.admitted("half of it overlaps", p.take(k, rule, 0, at(90*time.Second)), 6)
			p.admitted("one of eight sixtieths does, or a part of it", p.take(k, rule, 0, at(2*time.Minute-7*time.Second)), 9)
			p.admitted("a microsecond of it does", p.take(k, rule, 0, at(2*time.Minute-time.Microsecond)), 9)
			p.admitted("none does", p.take(k, rule, 10, at(2*time.Minute)), 0)
			p.admitted("five windows later", p.take(k, rule, 10, at(7*time.Minute)), 0)
		}},
	{"sliding_products_are_exact", "products of 72 bits in 64, or in doubles, admit what is a millionth of a request too much",
		func(p *probe) {
			const length = 2_678_399_999_999
			for _, v := range []struct {
				prev  int
				rest  int64
				m     int
				admit bool
				wait  time.Duration
			}{
				// prev x rest is m x length + 1, and - 1: from the inverse of the one modulo the other.
				{797_345_641, 8_966_825_664, 2_669_377, false, time.Microsecond},
				{797_345_641, 2_669_433_174_335, 794_676_264, true, 0},
				// prev x rest is between 2^63 and 2^64, and m x length is 0.
				{1_000_000_000, 10_000_000_000, 0, false, 10_000 * time.Second},
			} {
				edge := int64(730 * length)
				k, wide := p.key("sliding "+time.Duration(v.rest).String()), sliding(1_000_000_000, length*time.Microsecond)
				p.admitted("in the window before", p.take(k, wide, v.prev, time.UnixMicro(edge-1)), 1_000_000_000-v.prev)
				r := p.take(k, sliding(v.m+1, length*time.Microsecond), 1, time.UnixMicro(edge+length-v.rest))
				if r.Allowed != v.admit || r.RetryAfter != v.wait {
					p.errorf("%d of the window before, of which %d us overlap, and 1 of %d: %s", v.prev, v.rest, v.m+1, show(r))
				}
			}
		}},
	{"BR152_retry_is_the_rest", "a client refused a second before the edge that is told to wait for a whole window",
		func(p *probe) {
			k, rule := p.key("fixed"), fixed(10, time.Minute)
			p.admitted("10 of 10", p.take(k, rule, 10, at(0)), 0)
			for _, d := range []time.Duration{20 * time.Second, 50 * time.Second, 59200 * time.Millisecond} {
				r := p.take(k, rule, 1, at(d))
				p.refused("at "+d.String(), r, 0, time.Minute-d)
				if r.ResetAfter != time.Minute-d {
					p.errorf("at %v: reset after %v", d, r.ResetAfter)
				}
			}
		}},
	{"BR153_waiting_for_a_window_as_told_is_enough", "a wait rounded down sends an obedient client into a second refusal; one rounded up keeps it out too long",
		func(p *probe) {
			for _, rule := range []driver.Rule{
				fixed(10, time.Second), fixed(7, time.Minute), fixed(1, time.Hour), sliding(10, time.Second), sliding(3, time.Second),
				sliding(7, time.Minute), sliding(1, time.Hour), sliding(999_999_937, driver.MaxPeriod), fixed(3, 1234567*time.Microsecond),
				daily(5, "Europe/Berlin"), monthly(3, "America/New_York"),
			} {
				p.windowPromise(rule)
			}
		}},
}

// windowPromise checks that the wait of an answer is tight: to the microsecond, neither too short nor too long.
func (p *probe) windowPromise(rule driver.Rule) {
	k, now := p.key("promise "+rule.String()), at(0)
	for round := range 10 {
		now = now.Add(time.Duration(round*round) * 12_345 * time.Microsecond)
		left := p.take(k, rule, 0, now).Remaining
		if r := p.take(k, rule, left, now); !r.Allowed || r.Remaining != 0 {
			p.errorf("%v round %d: %d of %d refused: %s", rule, round, left, left, show(r))
		}
		cost := 1 + round*(rule.Capacity()-1)/9 // up to all of it
		r := p.take(k, rule, cost, now)
		if r.Allowed || r.RetryAfter <= 0 {
			p.fatalf("%v round %d: cost %d of a full window: %s", rule, round, cost, show(r))
		}
		now = now.Add(r.RetryAfter - time.Microsecond)
		if e := p.take(k, rule, cost, now); e.Allowed || e.RetryAfter != time.Microsecond {
			p.errorf("%v round %d: 1us before the promised %v for cost %d: %s", rule, round, r.RetryAfter, cost, show(e))
		}
		now = now.Add(time.Microsecond)
		if e := p.take(k, rule, cost, now); !e.Allowed {
			p.errorf("%v round %d: cost %d refused after waiting %v as told: %s", rule, round, cost, r.RetryAfter, show(e))
		}
	}
}
