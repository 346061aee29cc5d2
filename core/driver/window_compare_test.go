package driver_test

import (
	"fmt"
	"math"
	"math/big"
	"sync"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// panes is the window as a set of functions, so that a broken twin replaces one of them.
type panes struct {
	read   func(w driver.Window, rule driver.Rule, now int64) driver.WindowLevel
	fits   func(l driver.WindowLevel, rule driver.Rule, cost int) bool
	take   func(l driver.WindowLevel, cost int) driver.Window
	settle func(l driver.WindowLevel, rule driver.Rule, amount int) driver.Window
	runs   func(l driver.WindowLevel, r driver.Receipt) bool
	result func(l driver.WindowLevel, rule driver.Rule, cost int, taken bool) driver.Result
	// refuse is what a refused request leaves behind: the state as it was.
	refuse func(w driver.Window, l driver.WindowLevel, cost int, now int64) driver.Window
	// changed is what a change of rule makes of the state: nothing.
	changed func(w driver.Window, old, next driver.Rule) driver.Window
}

// theWindow is the algorithm under test.
func theWindow() panes {
	return panes{
		read:    driver.Window.Read,
		fits:    driver.WindowLevel.Fits,
		take:    driver.WindowLevel.Take,
		settle:  driver.WindowLevel.Settle,
		runs:    driver.WindowLevel.Runs,
		result:  driver.WindowLevel.Result,
		refuse:  func(w driver.Window, _ driver.WindowLevel, _ int, _ int64) driver.Window { return w },
		changed: func(w driver.Window, _, _ driver.Rule) driver.Window { return w },
	}
}

// paneComparison runs one key through the windows and the exact model at the same time.
type paneComparison struct {
	*draws
	panes
	rule     driver.Rule
	state    driver.Window
	model    exactWindow
	now      int64
	wait     int64            // that the last refusal was told
	receipts []driver.Receipt // of what was taken
}

// runWindows compares up to steps steps and returns the number done and the first difference, nil if there was none.
func runWindows(p panes, d *draws, steps int) (int, error) {
	c := paneComparison{draws: d, panes: p}
	for i := range steps {
		if i%keyLife == 0 || c.model.at == driver.MaxMicros && c.below(4) == 0 {
			c.newKey()
		}
		do := c.step
		if i%keyLife == keyLife/2 {
			do = c.edge
		}
		if err := do(); err != nil {
			return i, fmt.Errorf("step %d: rule %v, now %d: %w", i, c.rule, c.now, err)
		}
		if d.dry() {
			return i, nil
		}
	}
	return steps, nil
}

// newKey starts over with a key never seen, at any time and under any rule.
func (c *paneComparison) newKey() {
	c.rule, c.state, c.wait, c.receipts = c.windowRule(), driver.Window{}, 0, c.receipts[:0]
	c.model.live = false
	c.now = c.scaled(1, driver.MaxMicros)
	if c.below(8) == 0 {
		odd := oddDays[c.below(int64(len(oddDays)))]
		c.rule = driver.NewWindow(driver.KindDaily, c.rule.Capacity(), 0).In(zone(odd.zone))
		c.now = odd.at.UnixMicro() + c.between(-86400e6, 86400e6)
	}
	c.model.read(c.rule, c.now)
}

// edge asks for cost 1 where only exact arithmetic tells whether it fits: prev x rest is m x length, one more or one less.
// Products that are that near come from the inverse of prev modulo the length; by chance they never do.
func (c *paneComparison) edge() error {
	length := c.between(longest/2, longest)
	prev := c.between(driver.MaxCount/2, driver.MaxCount)
	inverse := new(big.Int).ModInverse(big.NewInt(prev), big.NewInt(length))
	if inverse == nil { // not coprime
		return nil
	}
	product := inverse.Mul(inverse, big.NewInt(1-2*c.below(2)))
	rest := product.Mod(product, big.NewInt(length)).Int64()
	product.Mul(product, big.NewInt(prev)).Add(product, big.NewInt(1))
	limit := product.Quo(product, big.NewInt(length)).Int64() + 1 // m, and the cost
	if limit > driver.MaxCount {
		return nil
	}
	start := length * c.between(1, 300)
	c.rule = driver.NewWindow(driver.KindSliding, int(limit), time.Duration(length)*time.Microsecond)
	c.now = start + length - rest
	c.state = driver.Window{Prev: prev, Time: start}
	c.model.live, c.model.time = true, start
	c.model.prev.SetInt64(prev)
	c.model.cur.SetInt64(0)
	c.model.read(c.rule, c.now)
	return c.ask(c.read(c.state, c.rule, c.now), 1)
}

// step moves the clock, sometimes changes the rule, and does one thing to the key.
func (c *paneComparison) step() error {
	if c.below(8) != 0 { // or else a request in the same microsecond, at an edge among others
		c.now = c.tick()
	}
	if c.below(12) == 0 {
		next := c.changeWindow(c.rule)
		c.state, c.rule = c.changed(c.state, c.rule, next), next
	}
	level := c.read(c.state, c.rule, c.now)
	c.model.read(c.rule, c.now)
	want := driver.WindowLevel{
		Prev: c.model.seenPrev.Int64(), Cur: c.model.seen.Int64(), Length: c.model.length, Elapsed: c.model.elapsed, At: c.model.at,
	}
	if level != want {
		return fmt.Errorf("reading %+v: level %+v, the model says %+v", c.state, level, want)
	}
	do := c.below(16)
	if level.Cur > 2*int64(c.rule.Capacity()) && do < 8 { // as a limit that was lowered leaves it; else it is hardly ever settled
		do = 0
	}
	switch do {
	case 0, 1, 2:
		return c.settlement(level)
	case 3:
		if c.below(4) == 0 { // the key expires, or is evicted
			c.state, c.model.live = driver.Window{}, false
		}
		return nil
	default:
		return c.ask(level, c.windowCost(level))
	}
}

func (c *paneComparison) settlement(level driver.WindowLevel) error {
	receipt := driver.Receipt{}
	if n := int64(len(c.receipts)); n > 0 && c.below(4) > 0 {
		receipt = c.receipts[max(n-1-c.below(4), 0)]
	} else if c.below(2) == 0 {
		receipt = driver.Receipt{Start: level.Start() + c.between(-1, 1), Unit: level.Length + c.between(-1, 1)}
	}
	runs := c.runs(level, receipt)
	if want := c.model.runs(receipt); runs != want {
		return fmt.Errorf("level %+v: receipt %+v runs: %t, the model says %t", level, receipt, runs, want)
	}
	if runs {
		amount := c.settled()
		c.state = c.settle(level, c.rule, amount)
		c.model.write(int64(min(max(amount, -1<<40), 1<<40)))
	}
	return nil
}

// ask asks for cost at the level just read, and takes it if it fits.
func (c *paneComparison) ask(level driver.WindowLevel, cost int) error {
	fits, wantFits := c.fits(level, c.rule, cost), c.model.fits(int64(cost))
	if cost > 0 && fits != wantFits {
		return fmt.Errorf("level %+v: cost %d fits: %t, the model says %t", level, cost, fits, wantFits)
	}
	taken := cost > 0 && fits
	got, want := c.result(level, c.rule, cost, taken), c.model.result(int64(cost), taken)
	if got != want {
		return fmt.Errorf("level %+v, cost %d, taken %t: result\n%+v, the model says\n%+v", level, cost, taken, got, want)
	}
	if got.Remaining < 0 || got.Remaining > c.rule.Capacity() || !got.Allowed && (got.RetryAfter > 0) == (cost > c.rule.Capacity()) {
		return fmt.Errorf("level %+v, cost %d: impossible answer %+v", level, cost, got)
	}
	c.wait = got.RetryAfter.Microseconds()
	switch {
	case taken:
		c.state = c.take(level, cost)
		c.model.write(int64(cost))
		c.receipts = append(c.receipts, got.Receipt)
	case cost > 0:
		c.state = c.refuse(c.state, level, cost, c.now)
	}
	return nil
}

// tick returns the next time, often at an edge of a window. Forward steps count from the moment of the last level.
func (c *paneComparison) tick() int64 {
	at, rest, length := c.model.at, c.model.length-c.model.elapsed, c.model.length
	next := c.now
	switch c.below(16) {
	case 0:
		next = at + micro
	case 1, 2: // exactly when the refused one was told to come back, and beside it
		next = at + c.wait + c.between(-1, 1)
	case 3, 4:
		next = at + rest + c.between(-1, 1)
	case 5:
		next = at + rest + length + c.between(-1, 1)
	case 6, 7, 8:
		next = at + c.below(rest)
	case 9, 10:
		next = at + rest + c.below(length)
	case 11:
		next = at + c.below(3*length)
	case 12:
		next = at + c.scaled(1, driver.MaxMicros)
	case 13:
		next = c.now - c.below(2*length)
	case 14:
		next = c.now - c.scaled(1, 3600e6)
	case 15:
		next = c.now - c.scaled(1, year)
	}
	return min(max(next, 1), driver.MaxMicros)
}

// windowCost returns what a request weighs, often at the edge of what is free.
func (c *paneComparison) windowCost(l driver.WindowLevel) int {
	limit := int64(c.rule.Capacity())
	free := c.model.result(0, false).Remaining
	switch c.below(16) {
	case 0:
		return 0
	case 1, 2, 3:
		return 1
	case 4, 5, 6:
		return free
	case 7, 8:
		return free + 1
	case 9:
		return int(limit)
	case 10:
		return int(limit + 1)
	case 11:
		return []int{math.MaxInt, 2 * driver.MaxCount, math.MaxInt - int(l.Cur)}[c.below(3)]
	case 12:
		return int(max(limit-l.Cur, 0))
	default:
		return int(c.scaled(1, limit))
	}
}

// settled returns what a settlement takes, or gives back if negative.
func (c *paneComparison) settled() int {
	limit := int64(c.rule.Capacity())
	do := c.below(8)
	if c.model.seen.Int64() > 2*limit && do < 4 {
		do = 3
	}
	switch do {
	case 0:
		return []int{math.MinInt, math.MaxInt, 0}[c.below(3)]
	case 1:
		return int([]int64{-1, 1, limit, -limit, 2 * limit, -2 * limit}[c.below(6)])
	case 2:
		return int(c.between(-3*limit, 3*limit))
	case 3:
		return int(c.between(-1, 1) - c.model.seen.Int64())
	case 4:
		return int(c.scaled(1, limit))
	default:
		return -int(c.scaled(1, limit))
	}
}

// zones are those whose days differ in how they are odd; all begin minutes on minutes of UTC since 1970.
var zones = loadZones("UTC", "Europe/Berlin", "America/New_York", "Pacific/Kiritimati", "Pacific/Pago_Pago", "Asia/Kathmandu",
	"Australia/Lord_Howe", "America/St_Johns", "America/Sao_Paulo", "America/Havana", "Pacific/Apia", "Africa/Cairo", "Asia/Beirut")

func loadZones(names ...string) []*time.Location {
	list := make([]*time.Location, len(names))
	for i, name := range names {
		list[i] = zone(name)
	}
	return list
}

// zone returns the same location for the same name.
func zone(name string) *time.Location {
	if loc, ok := zoneByName.Load(name); ok {
		return loc.(*time.Location)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	known, _ := zoneByName.LoadOrStore(name, loc)
	return known.(*time.Location)
}

var zoneByName sync.Map

// oddDays are days of less or more than 24 hours, days without a midnight and with two of them, and one that never was.
var oddDays = []struct {
	zone string
	at   time.Time
}{
	{"Europe/Berlin", time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)},
	{"Europe/Berlin", time.Date(2026, 10, 25, 12, 0, 0, 0, time.UTC)},
	{"America/New_York", time.Date(2040, 3, 11, 12, 0, 0, 0, time.UTC)},
	{"Australia/Lord_Howe", time.Date(2026, 4, 4, 12, 0, 0, 0, time.UTC)},
	{"America/Sao_Paulo", time.Date(2018, 11, 4, 12, 0, 0, 0, time.UTC)},
	{"America/Sao_Paulo", time.Date(2018, 2, 18, 3, 0, 0, 0, time.UTC)},
	{"America/Havana", time.Date(2026, 11, 1, 5, 0, 0, 0, time.UTC)},
	{"America/Havana", time.Date(2026, 3, 8, 5, 0, 0, 0, time.UTC)},
	{"America/St_Johns", time.Date(2010, 11, 7, 3, 0, 0, 0, time.UTC)},
	{"Pacific/Apia", time.Date(2011, 12, 30, 10, 0, 0, 0, time.UTC)},
	{"Europe/Berlin", time.Date(2040, 12, 31, 12, 0, 0, 0, time.UTC)}, // a leap year's last day under rules without an end
}

// windowRule returns a window rule from the whole supported range, edges more often than their share.
func (d *draws) windowRule() driver.Rule {
	limit := int(d.scaled(1, driver.MaxCount))
	switch d.below(4) {
	case 0:
		limit = int(d.between(1, 10))
	case 1:
		limit = driver.MaxCount - int(d.below(4))
	}
	kind := driver.KindFixed + driver.Kind(d.below(2))
	if d.below(4) == 0 {
		kind = driver.KindDaily + driver.Kind(d.below(2))
		return driver.NewWindow(kind, limit, 0).In(zones[d.below(int64(len(zones)))])
	}
	return driver.NewWindow(kind, limit, d.windowPeriod())
}

func (d *draws) windowPeriod() time.Duration {
	us := d.scaled(1000, longest)
	switch d.below(8) {
	case 0:
		us = 1000 + d.below(3)
	case 1:
		us = longest - d.below(1000)
	case 2, 3:
		us = []int64{1e6, 60e6, 3600e6, 86400e6}[d.below(4)]
	}
	return time.Duration(us) * time.Microsecond
}

// changeWindow returns what an operator might make of a rule: one part of it changed, or all.
func (d *draws) changeWindow(old driver.Rule) driver.Rule {
	count, period := old.Rate()
	kind, calendar := old.Kind(), old.Zone() != nil
	switch d.below(4) {
	case 0:
		if count = int(d.scaled(1, int64(count))); d.below(2) == 0 {
			count = d.windowRule().Capacity()
		}
		if calendar {
			return driver.NewWindow(kind, count, 0).In(old.Zone())
		}
		return driver.NewWindow(kind, count, period)
	case 1:
		if calendar {
			return driver.NewWindow(driver.KindDaily+driver.KindMonthly-kind, count, 0).In(old.Zone())
		}
		return driver.NewWindow(driver.KindFixed+driver.KindSliding-kind, count, period)
	case 2:
		return driver.NewWindow(driver.KindFixed+driver.Kind(d.below(2)), count, d.windowPeriod())
	}
	return d.windowRule()
}
