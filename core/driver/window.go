package driver

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// The reference model of windows: fixed, sliding and calendar ones, in integers on a clock of one microsecond.

// Window is the stored state of one window: admissions in the window before, and in the one that holds Time, which is
// when the last of them was. The rule is nowhere in it, nor the window's start: counts belong to whichever window of
// today's rule holds Time, so limits can change under live keys. The zero value is a key never seen.
type Window struct {
	Prev, Cur int64
	Time      int64 // microseconds; 0 for no state
}

// WindowLevel is a window read under a rule at a moment.
type WindowLevel struct {
	Prev, Cur int64
	Length    int64 // of the running window, in microseconds
	Elapsed   int64 // of it, 0 <= Elapsed < Length
	At        int64 // the moment: now, or the state's own time if the clock stepped back
}

// Read returns what the window holds under rule at now (microseconds).
func (w Window) Read(rule Rule, now int64) WindowLevel {
	at := max(now, w.Time)
	length, elapsed := rule.span(at)
	l := WindowLevel{Prev: w.Prev, Cur: w.Cur, Length: length, Elapsed: elapsed, At: at}
	switch start := at - elapsed; {
	case w.Time == 0 || w.Time < start-length:
		l.Prev, l.Cur = 0, 0
	case w.Time < start:
		l.Prev, l.Cur = l.Cur, 0
	}
	return l
}

// span returns the length of the window of the rule that holds a moment, and how much of it is gone by then.
func (r Rule) span(at int64) (length, elapsed int64) {
	if r.kind == KindDaily || r.kind == KindMonthly {
		b := r.Boundaries(at)
		return b[2] - b[1], at - b[1]
	}
	length = int64(r.per / time.Microsecond)
	return length, at % length
}

// Fits says whether cost would be admitted.
func (l WindowLevel) Fits(rule Rule, cost int) bool {
	m := int64(rule.count) - l.Cur - int64(cost)
	if cost > rule.count || m < 0 { // the difference of the largest costs wraps
		return false
	}
	if rule.kind != KindSliding {
		return true
	}
	// What is left of the window before, by its overlap, must fit into what is left of the limit.
	lhi, llo := bits.Mul64(uint64(l.Prev), uint64(l.Length-l.Elapsed))
	rhi, rlo := bits.Mul64(uint64(m), uint64(l.Length))
	return lhi < rhi || lhi == rhi && llo <= rlo
}

// Take returns the state after cost was taken. A refused request, or one of cost 0, writes nothing instead.
func (l WindowLevel) Take(cost int) Window {
	return Window{Prev: l.Prev, Cur: l.Cur + int64(cost), Time: l.At}
}

// Settle returns the state after amount was taken, or given back if negative, without asking whether it fits: not below
// zero, and at most twice the limit. See [WindowLevel.Runs] for whether to settle at all.
func (l WindowLevel) Settle(rule Rule, amount int) Window {
	// Cur may be far above today's limit, so it is not that which bounds the amount.
	cur := l.Cur + min(max(int64(amount), -2*MaxCount), 2*MaxCount)
	return Window{Prev: l.Prev, Cur: min(max(cur, 0), 2*int64(rule.count)), Time: l.At}
}

// Start returns when the running window began, in microseconds.
func (l WindowLevel) Start() int64 { return l.At - l.Elapsed }

// Runs says whether the running window is the one that a receipt names; a settlement of another one is ignored, since
// what was taken then does not count any more. The zero receipt names none and always runs.
func (l WindowLevel) Runs(r Receipt) bool {
	return r.Unit == 0 || r.Start == l.Start() && r.Unit == l.Length
}

// Fresh returns the microseconds until the state, if something is taken now, equals that of a key never seen.
func (l WindowLevel) Fresh(rule Rule) int64 {
	rest := l.Length - l.Elapsed
	if rule.kind == KindSliding {
		rest += l.Length
	}
	return rest
}

// Result answers a claim of cost that found this level; taken says whether it was taken then.
func (l WindowLevel) Result(rule Rule, cost int, taken bool) Result {
	limit, rest := int64(rule.count), l.Length-l.Elapsed
	res := Result{
		Allowed:    cost == 0 || l.Fits(rule, cost),
		ResetAfter: Micros(rest),
		Receipt:    Receipt{Start: l.Start(), Unit: l.Length},
	}
	after := l.Cur
	if taken {
		after += int64(cost)
	}
	left := limit - after
	if rule.kind == KindSliding {
		left -= mulDivUp(l.Prev, rest, l.Length)
	}
	res.Remaining = int(max(0, left))
	switch {
	case res.Allowed:
	case cost > rule.count:
		res.Reason = ReasonCost
	default:
		res.Reason = ReasonLimit
		res.RetryAfter = Micros(l.retry(rule, int64(cost)))
	}
	return res
}

// retry returns the microseconds until a refused cost fits, with no other traffic. It is tight.
func (l WindowLevel) retry(rule Rule, cost int64) int64 {
	limit, rest := int64(rule.count), l.Length-l.Elapsed
	if rule.kind != KindSliding {
		return rest
	}
	if m := limit - l.Cur - cost; m >= 0 { // once enough of the window before has slid out
		return l.Length - mulDiv(m, l.Length, l.Prev) - l.Elapsed
	}
	// When this window is the one before, and enough of it has slid out.
	return rest + l.Length - mulDiv(limit-cost, l.Length, l.Cur)
}

// mulDiv returns a*b/c rounded down, mulDivUp rounded up, for values whose quotient fits.
func mulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(q)
}

func mulDivUp(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, r := bits.Div64(hi, lo, uint64(c))
	if r > 0 {
		q++
	}
	return int64(q)
}

// Boundaries returns four edges of a calendar rule's windows in microseconds, ascending, the moment at lying between the
// second and the third: the windows before, around and after it. A shared store is sent them, and decides by its own
// clock.
//
// A day or a month begins when the zone's clock first shows it: mostly at midnight, but some zones skip midnight when
// their clocks go forward, and a zone that crosses the date line skips a day.
func (r Rule) Boundaries(at int64) [4]int64 {
	var known []calendar
	if list := calendars.Load(); list != nil {
		known = *list
	}
	for i := range known {
		if c := &known[i]; c.loc == r.loc && c.kind == r.kind && c.edges[1] <= at && at < c.edges[2] {
			return c.edges
		}
	}
	next := append(make([]calendar, 0, len(known)+1), calendar{r.kind, r.loc, r.boundaries(at)})
	for _, c := range known {
		if (c.loc != r.loc || c.kind != r.kind) && len(next) < maxCalendars {
			next = append(next, c)
		}
	}
	calendars.Store(&next) // what another goroutine stored meanwhile is computed again
	return next[0].edges
}

// calendars remembers the latest edges of the calendars in use, because computing them costs some microseconds. A list is
// never changed, so that reading it takes no lock and allocates nothing; it is short, so that a program that loads its
// zones anew for every request does not fill the memory with them.
var calendars atomic.Pointer[[]calendar]

const maxCalendars = 64

type calendar struct {
	kind  Kind
	loc   *time.Location
	edges [4]int64
}

func (r Rule) boundaries(at int64) (b [4]int64) {
	// From 0, so that the edge before it is not after the moment even where a zone defeats edge. The clock of some zones went
	// back from just after midnight: the rest of the day then belongs to the next one.
	t, next := time.UnixMicro(at).In(r.loc), 0
	for b[2] = r.edge(t, next); b[2] <= at; b[2] = r.edge(t, next) {
		next++
	}
	b[1] = r.edge(t, next-1)
	// A day that was skipped begins and ends at once, and is no window.
	before, after := next-2, next+1
	for b[0] = r.edge(t, before); b[0] >= b[1]; b[0] = r.edge(t, before) {
		before--
	}
	for b[3] = r.edge(t, after); b[3] <= b[2]; b[3] = r.edge(t, after) {
		after++
	}
	return b
}

// edge returns the first moment at which the clock of the rule's zone shows the i-th day (or month) after that of t, or a
// later one. [time.Date] does not: where midnight does not exist it may answer with an hour of the day before. Nor does
// [time.Time.ZoneBounds] tell when an offset ends: on the last day of a leap year it names a moment that is over.
func (r Rule) edge(t time.Time, i int) int64 {
	year, month, day := t.Date()
	if r.kind == KindMonthly {
		month, day = month+time.Month(i), 1
	} else {
		day += i
	}
	offset := func(at int64) int64 {
		_, seconds := time.Unix(at, 0).In(r.loc).Zone()
		return int64(seconds)
	}
	const around = 36 * 3600                                             // more than any clock differs from UTC
	midnight := time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() // on the zone's clock
	low, high := midnight-around, midnight+around
	first, second := offset(low), offset(high)
	if first != second {
		for low+1 < high { // the clock is changed at high
			if middle := (low + high) / 2; offset(middle) == first {
				low = middle
			} else {
				high = middle
			}
		}
		if midnight-first >= high {
			return max(high, midnight-second) * 1_000_000
		}
	}
	return (midnight - first) * 1_000_000
}
