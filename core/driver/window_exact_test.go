package driver_test

import (
	"math/big"
	"sort"
	"sync"
	"time"
	_ "time/tzdata" // the zones of the tests, whatever the machine has

	"github.com/headgate-go/headgate/core/driver"
)

// exactWindow is what driver.Window is compared with: numbers without bounds, waits found by looking for the first moment
// at which the model admits, and calendars found by asking the zone's clock quarter of an hour by quarter of an hour. It
// shares nothing with the implementation.
type exactWindow struct {
	live      bool
	prev, cur big.Int
	time      int64

	// What read found, not yet written.
	rule            driver.Rule
	limit           int64
	seenPrev, seen  big.Int // admissions of the window before, and of the running one
	at              int64
	length, elapsed int64

	a, b, c big.Int // scratch
}

// read sets what the window shows at now.
func (e *exactWindow) read(rule driver.Rule, now int64) {
	count, _ := rule.Rate()
	e.rule, e.limit, e.at = rule, int64(count), now
	if e.live && e.time > now {
		e.at = e.time // the clock stepped back: no time passed
	}
	start, end := windowOf(rule, e.at)
	e.length, e.elapsed = end-start, e.at-start
	e.seenPrev.SetInt64(0)
	e.seen.SetInt64(0)
	switch {
	case !e.live:
	case e.time >= start:
		e.seenPrev.Set(&e.prev)
		e.seen.Set(&e.cur)
	case e.time >= start-e.length:
		e.seenPrev.Set(&e.cur)
	}
}

// free returns limit - used in units of 1/length: used is cur, in a sliding window with the part of prev that overlaps.
func (e *exactWindow) free(limit int64) *big.Int {
	e.a.Sub(e.a.SetInt64(limit), &e.seen)
	e.a.Mul(&e.a, e.b.SetInt64(e.length))
	if e.rule.Kind() == driver.KindSliding {
		e.a.Sub(&e.a, e.c.Mul(&e.seenPrev, e.b.SetInt64(e.length-e.elapsed)))
	}
	return &e.a
}

// fits says whether cost is at most what is free.
func (e *exactWindow) fits(cost int64) bool {
	free := e.free(e.limit)
	return free.Cmp(e.c.Mul(e.c.SetInt64(cost), e.b.SetInt64(e.length))) >= 0
}

// result answers a request of cost at the level just read, as the doc comments of driver.Result promise.
func (e *exactWindow) result(cost int64, taken bool) driver.Result {
	res := driver.Result{
		Allowed:    cost == 0 || e.fits(cost),
		ResetAfter: time.Duration(e.length-e.elapsed) * time.Microsecond,
		Receipt:    driver.Receipt{Start: e.at - e.elapsed, Unit: e.length},
	}
	limit := e.limit
	if taken {
		limit -= cost
	}
	// Whole admissions that are free: rounded down, which Div does for a divisor above zero.
	if left := e.free(limit).Div(&e.a, e.b.SetInt64(e.length)); left.Sign() > 0 {
		res.Remaining = int(left.Int64())
	}
	switch {
	case res.Allowed:
	case cost > e.limit:
		res.Reason = driver.ReasonCost
	default:
		res.Reason, res.RetryAfter = driver.ReasonLimit, time.Duration(e.wait(cost))*time.Microsecond
	}
	return res
}

// wait returns the microseconds until cost fits if nothing else happens, by trying: what is free never shrinks then.
func (e *exactWindow) wait(cost int64) int64 {
	later := exactWindow{live: e.live, time: e.time}
	later.prev.Set(&e.prev)
	later.cur.Set(&e.cur)
	return int64(sort.Search(int(3*e.length), func(us int) bool {
		later.read(e.rule, e.at+int64(us))
		return later.fits(cost)
	}))
}

// write adds amount to what was seen and makes it the state: never below zero, at most twice the limit.
func (e *exactWindow) write(amount int64) {
	e.prev.Set(&e.seenPrev)
	e.cur.Add(&e.seen, e.a.SetInt64(amount))
	if e.cur.Sign() < 0 {
		e.cur.SetInt64(0)
	}
	if most := e.a.SetInt64(2 * e.limit); e.cur.Cmp(most) > 0 {
		e.cur.Set(most)
	}
	e.time, e.live = e.at, true
}

// runs says whether a receipt is of the window just read.
func (e *exactWindow) runs(r driver.Receipt) bool {
	return r == driver.Receipt{} || r == driver.Receipt{Start: e.at - e.elapsed, Unit: e.length}
}

// windowOf returns the window of a rule that holds a moment.
func windowOf(rule driver.Rule, at int64) (start, end int64) {
	switch rule.Kind() {
	case driver.KindDaily, driver.KindMonthly:
		return calendarOf(rule, at)
	}
	_, period := rule.Rate()
	d := big.NewInt(period.Microseconds())
	n := new(big.Int).Div(big.NewInt(at), d)
	start = n.Mul(n, d).Int64()
	return start, start + d.Int64()
}

// calendarOf is windowOf for days and months: the last change of date at or before the moment, and the first after it.
func calendarOf(rule driver.Rule, at int64) (start, end int64) {
	t := time.UnixMicro(at).In(rule.Zone())
	year, month, day := t.Date()
	for i := -2; ; i++ {
		var edge int64
		if rule.Kind() == driver.KindDaily {
			edge = shown(rule.Zone(), year, month, day+i)
		} else {
			edge = shown(rule.Zone(), year, month+time.Month(i), 1)
		}
		if edge > at {
			return start, edge
		}
		start = edge
	}
}

type date struct {
	zone *time.Location
	noon int64
}

var shownDates sync.Map // date -> the moment; asking the clock takes its time

// shown returns the first moment, in microseconds, at which a zone's clock shows a date or a later one.
func shown(zone *time.Location, year int, month time.Month, day int) int64 {
	noon := time.Date(year, month, day, 12, 0, 0, 0, time.UTC)
	key := date{zone, noon.Unix()}
	if known, ok := shownDates.Load(key); ok {
		return known.(int64)
	}
	year, month, day = noon.Date()
	reached := func(t time.Time) bool {
		y, m, d := t.In(zone).Date()
		return y > year || y == year && (m > month || m == month && d >= day)
	}
	t := noon.Add(-42 * time.Hour) // no zone is 30 hours ahead
	for ; !reached(t); t = t.Add(15 * time.Minute) {
		continue
	}
	for t = t.Add(-14 * time.Minute); !reached(t); t = t.Add(time.Minute) {
		continue
	}
	shownDates.Store(key, t.UnixMicro())
	return t.UnixMicro()
}
