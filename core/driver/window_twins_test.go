package driver_test

import (
	"math"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// The windows with one fault each, as TestBrokenTwinsAreCaught has it for the bucket.
func TestBrokenWindowsAreCaught(t *testing.T) {
	const limit = 10_000
	for _, twin := range windowTwins {
		t.Run(twin.name, func(t *testing.T) {
			t.Parallel()
			p := theWindow()
			twin.breaks(&p)
			n, err := runWindows(p, seeded(1), limit)
			if err == nil {
				t.Fatalf("no difference in %d steps, although: %s", limit, twin.why)
			}
			t.Logf("caught after %d steps: %v", n, err)
		})
	}
}

// windowTwin is a broken variant.
type windowTwin struct {
	name, why string
	breaks    func(*panes)
}

var windowTwins = []windowTwin{
	{"sliding by division", "the quotient of two doubles is rounded, so a neighbour of the limit is admitted", func(p *panes) {
		p.fits = sliding(func(prev, rest, m, length int64) bool {
			return float64(prev)*float64(rest)/float64(length) <= float64(m)
		})
	}},
	{"sliding by products of doubles", "above 2^53 a double is a neighbour of the product", func(p *panes) {
		p.fits = sliding(func(prev, rest, m, length int64) bool {
			return float64(prev)*float64(rest) <= float64(m)*float64(length)
		})
	}},
	{"sliding by products of 64 bits", "the products reach 2^72 and wrap", func(p *panes) {
		p.fits = sliding(func(prev, rest, m, length int64) bool { return prev*rest <= m*length })
	}},
	{"sliding by whole admissions", "what overlaps is cut to a whole number and so counts less than it is", func(p *panes) {
		p.fits = sliding(func(prev, rest, m, length int64) bool { return wide(prev, rest, length, false) <= m })
	}},
	{"one above the limit", "less and less or equal", func(p *panes) {
		p.fits = func(l driver.WindowLevel, rule driver.Rule, cost int) bool {
			l.Cur--
			return l.Fits(rule, cost)
		}
	}},
	{"the largest costs wrap", "limit - used - cost below the smallest number is a large one", func(p *panes) {
		p.fits = func(l driver.WindowLevel, rule driver.Rule, cost int) bool {
			if m := int64(rule.Capacity()) - l.Cur - int64(cost); m < 0 || rule.Kind() != driver.KindSliding {
				return m >= 0
			}
			return l.Fits(rule, cost)
		}
	}},
	{"a refusal counts", "under steady overload a window never recovers (BR-028)", func(p *panes) {
		p.refuse = func(_ driver.Window, l driver.WindowLevel, cost int, _ int64) driver.Window {
			return l.Take(min(cost, 1))
		}
	}},
	{"a refusal moves the time", "a poller keeps the old counts alive (BR-029)", func(p *panes) {
		p.refuse = func(w driver.Window, l driver.WindowLevel, _ int, _ int64) driver.Window {
			if w.Time != 0 {
				w.Time = l.At
			}
			return w
		}
	}},
	{"a window begins with its first admission", "windows of one rule begin at different times, and all clients' limits do not end at once", func(p *panes) {
		p.read = func(w driver.Window, rule driver.Rule, now int64) driver.WindowLevel {
			l := w.Read(rule, now)
			if w.Time != 0 && now < w.Time+l.Length {
				l.Cur, l.Prev, l.Elapsed = w.Cur, w.Prev, max(now-w.Time, 0)
			}
			return l
		}
	}},
	{"sliding forgets the window before", "twice the limit passes around an edge (BR-027)", func(p *panes) {
		p.read = func(w driver.Window, rule driver.Rule, now int64) driver.WindowLevel {
			l := w.Read(rule, now)
			l.Prev = 0
			return l
		}
	}},
	{"the window before is remembered for ever", "a client that comes back after days is told about them", func(p *panes) {
		p.read = func(w driver.Window, rule driver.Rule, now int64) driver.WindowLevel {
			l := w.Read(rule, now)
			if w.Time != 0 && w.Time < l.Start()-l.Length {
				l.Prev = w.Cur
			}
			return l
		}
	}},
	{"an edge belongs to the window that ends", "the first microsecond of a window is counted twice", func(p *panes) {
		p.read = func(w driver.Window, rule driver.Rule, now int64) driver.WindowLevel {
			l := w.Read(rule, now)
			if l.Elapsed == 0 && w.Time != 0 && w.Time == l.At-1 {
				l.Cur, l.Prev = w.Cur, w.Prev
			}
			return l
		}
	}},
	{"a window's first microsecond is forgotten", "what was taken at an edge is in no window", func(p *panes) {
		p.read = func(w driver.Window, rule driver.Rule, now int64) driver.WindowLevel {
			l := w.Read(rule, now)
			if w.Time == l.Start() {
				l.Prev, l.Cur = w.Cur, 0
			}
			return l
		}
	}},
	{"the time moves back", "a clock that steps back over an edge opens a window again (BR-013)", func(p *panes) {
		p.read = func(w driver.Window, rule driver.Rule, now int64) driver.WindowLevel {
			w.Time = min(w.Time, now)
			return w.Read(rule, now)
		}
	}},
	{"a change of kind loses the counts", "whoever can cause a reload has no limit (BR-044)", func(p *panes) {
		p.changed = func(w driver.Window, old, next driver.Rule) driver.Window {
			if old.Kind() != next.Kind() {
				return driver.Window{}
			}
			return w
		}
	}},
	{"a day has 24 hours", "twice a year a day begins an hour early or late", func(p *panes) {
		p.read = calendarBy(driver.KindDaily, func(b [4]int64, at int64) (start, length int64) {
			const day = 86400e6
			return b[1] + (at-b[1])/day*day, day
		})
	}},
	{"a month has 30 days", "most have not", func(p *panes) {
		p.read = calendarBy(driver.KindMonthly, func(b [4]int64, _ int64) (start, length int64) { return b[1], 30 * 86400e6 })
	}},
	{"the zone is ignored", "a customer's day ends at noon", func(p *panes) {
		p.read = func(w driver.Window, rule driver.Rule, now int64) driver.WindowLevel {
			if rule.Zone() != nil {
				rule = rule.In(time.UTC)
			}
			return w.Read(rule, now)
		}
	}},
	{"settling gives credit", "more than nothing given back is a limit that was not one", func(p *panes) {
		p.settle = func(l driver.WindowLevel, rule driver.Rule, amount int) driver.Window {
			w := l.Settle(rule, amount)
			if amount < 0 && w.Cur == 0 {
				w.Cur = max(l.Cur+int64(max(amount, -1000)), -1000)
			}
			return w
		}
	}},
	{"settling without a bound", "one settlement counts more than a cell can hold", func(p *panes) {
		p.settle = func(l driver.WindowLevel, rule driver.Rule, amount int) driver.Window {
			w := l.Settle(rule, amount)
			if amount > 0 {
				w.Cur = l.Cur + int64(min(amount, 3*driver.MaxCount))
			}
			return w
		}
	}},
	{"settling gives back two limits at most", "counts of a limit that was lowered stay", func(p *panes) {
		p.settle = func(l driver.WindowLevel, rule driver.Rule, amount int) driver.Window {
			return l.Settle(rule, max(amount, -2*rule.Capacity()))
		}
	}},
	{"every window is the running one", "what was taken yesterday is given back today", func(p *panes) {
		p.runs = func(driver.WindowLevel, driver.Receipt) bool { return true }
	}},
	{"no window is the running one", "corrections are lost", func(p *panes) {
		p.runs = func(_ driver.WindowLevel, r driver.Receipt) bool { return r == driver.Receipt{} }
	}},
	{"receipts without a length", "a day and an hour begin together", func(p *panes) {
		p.runs = func(l driver.WindowLevel, r driver.Receipt) bool { return r.Unit == 0 || r.Start == l.Start() }
	}},
	{"the retry is the whole window", "a client refused a second before the edge waits a minute more (BR-152)", func(p *panes) {
		p.result = after(func(r *driver.Result, _ driver.WindowLevel, _ driver.Rule) {
			if r.RetryAfter > 0 {
				r.RetryAfter = time.Duration(r.Receipt.Unit) * time.Microsecond
			}
		})
	}},
	{"the retry is the rest of the window", "in a sliding window an obedient client is refused again, or waits for nothing", func(p *panes) {
		p.result = after(func(r *driver.Result, _ driver.WindowLevel, _ driver.Rule) {
			r.RetryAfter = min(r.RetryAfter, r.ResetAfter)
		})
	}},
	{"the retry is a microsecond short", "an obedient client is refused a second time (BR-153)", func(p *panes) {
		p.result = after(func(r *driver.Result, _ driver.WindowLevel, _ driver.Rule) {
			r.RetryAfter -= min(r.RetryAfter, time.Microsecond)
		})
	}},
	{"remaining rounds up", "a client sees one left and is refused", func(p *panes) {
		p.result = after(func(r *driver.Result, l driver.WindowLevel, rule driver.Rule) {
			rest := l.Length - l.Elapsed
			if rule.Kind() == driver.KindSliding && r.Remaining > 0 && wide(l.Prev, rest, l.Length, true) > wide(l.Prev, rest, l.Length, false) {
				r.Remaining++
			}
		})
	}},
	{"remaining below zero", "a limit that was lowered shows minus twenty (BR-157)", func(p *panes) {
		p.result = after(func(r *driver.Result, l driver.WindowLevel, rule driver.Rule) {
			if l.Cur > int64(rule.Capacity()) {
				r.Remaining = rule.Capacity() - int(min(l.Cur, math.MaxInt32))
			}
		})
	}},
}

// sliding replaces the comparison of products in Fits.
func sliding(within func(prev, rest, m, length int64) bool) func(driver.WindowLevel, driver.Rule, int) bool {
	return func(l driver.WindowLevel, rule driver.Rule, cost int) bool {
		m := int64(rule.Capacity()) - l.Cur - int64(cost)
		if cost > rule.Capacity() || m < 0 || rule.Kind() != driver.KindSliding {
			return l.Fits(rule, cost)
		}
		return within(l.Prev, l.Length-l.Elapsed, m, l.Length)
	}
}

// wide returns a x b / c, rounded down or up, by the digits of b.
func wide(a, b, c int64, up bool) int64 {
	var q, r int64
	for shift := 40; shift >= 0; shift -= 10 {
		r = r<<10 + a*(b>>shift&1023)
		q, r = q<<10+r/c, r%c
	}
	if up && r > 0 {
		q++
	}
	return q
}

// calendarBy replaces how the windows of one kind of calendar are found.
func calendarBy(kind driver.Kind, window func(b [4]int64, at int64) (start, length int64)) func(driver.Window, driver.Rule, int64) driver.WindowLevel {
	return func(w driver.Window, rule driver.Rule, now int64) driver.WindowLevel {
		l := w.Read(rule, now)
		if rule.Kind() == kind {
			start, length := window(rule.Boundaries(l.At), l.At)
			l.Elapsed, l.Length = l.At-start, length
		}
		return l
	}
}

// after replaces what Result says by a change of it.
func after(change func(r *driver.Result, l driver.WindowLevel, rule driver.Rule)) func(driver.WindowLevel, driver.Rule, int, bool) driver.Result {
	return func(l driver.WindowLevel, rule driver.Rule, cost int, taken bool) driver.Result {
		r := l.Result(rule, cost, taken)
		change(&r, l, rule)
		return r
	}
}

// The parts that twins replace are right when the fault is left out, or a twin would be caught for the wrong reason. The
// comparison is also that of the Redis script, which has doubles only: both products split at 2^21.
func TestReplacedPartsAreRight(t *testing.T) {
	p := theWindow()
	p.fits = sliding(func(prev, rest, m, length int64) bool {
		const digit = 1 << 21
		high := float64(prev)*float64(rest/digit) - float64(m)*float64(length/digit)
		low := float64(prev)*float64(rest%digit) - float64(m)*float64(length%digit)
		return high*digit+low <= 0
	})
	p.read = calendarBy(driver.KindDaily, func(b [4]int64, _ int64) (start, length int64) { return b[1], b[2] - b[1] })
	p.result = after(func(*driver.Result, driver.WindowLevel, driver.Rule) {})
	if _, err := runWindows(p, seeded(1), 20_000); err != nil {
		t.Fatal(err)
	}
}
