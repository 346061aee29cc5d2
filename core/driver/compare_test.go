package driver_test

import (
	"fmt"
	"math"
	"math/big"

	"github.com/headgate-go/headgate/core/driver"
)

// stored is the state of one key. Loose is used by one broken twin only, which keeps its fraction as a float.
type stored struct {
	driver.Bucket
	loose float64
}

// algorithm is the token bucket as a set of functions, so that a broken twin replaces one of them.
type algorithm struct {
	read   func(s stored, rule driver.Rule, now int64) driver.Level
	take   func(l driver.Level, rule driver.Rule, cost int) stored
	settle func(l driver.Level, rule driver.Rule, amount int) stored
	wait   func(l driver.Level, rule driver.Rule, target int64) int64
	// refuse is what a refused request leaves behind: the state as it was.
	refuse func(s stored, l driver.Level, rule driver.Rule, now int64) stored
}

// theBucket is the algorithm under test.
func theBucket() algorithm {
	return algorithm{
		read: func(s stored, rule driver.Rule, now int64) driver.Level { return s.Read(rule, now) },
		take: func(l driver.Level, rule driver.Rule, cost int) stored { return stored{Bucket: l.Take(rule, cost)} },
		settle: func(l driver.Level, rule driver.Rule, amount int) stored {
			return stored{Bucket: l.Settle(rule, amount)}
		},
		wait:   driver.Level.Wait,
		refuse: func(s stored, _ driver.Level, _ driver.Rule, _ int64) stored { return s },
	}
}

// comparison runs one key through an algorithm and the exact model at the same time.
type comparison struct {
	*draws
	algorithm
	terms terms
	state stored
	model exact
	now   int64
	last  int64 // the wait that the last refusal was told
}

// newKey starts over with a key never seen, at any time and under any rule of the supported range.
func (c *comparison) newKey() {
	c.terms, c.state, c.last = termsOf(c.rule()), stored{}, 0
	c.model.live = false
	c.now = c.scaled(1, driver.MaxMicros)
	c.model.read(c.terms, c.now)
}

// keyLife is how many steps a key lives: enough for several changes of rule, few enough that a key which a jump of
// the clock left behind does not spoil the rest.
const keyLife = 64

// run compares up to steps steps and returns the number done and the first difference, nil if there was none.
func run(alg algorithm, d *draws, steps int) (int, error) {
	c := comparison{draws: d, algorithm: alg}
	for i := range steps {
		if i%keyLife == 0 || c.model.at == driver.MaxMicros && c.below(4) == 0 { // time has come to its end
			c.newKey()
		}
		if err := c.step(); err != nil {
			return i, fmt.Errorf("step %d: rule %v (%d per %d us, burst %d), now %d: %w",
				i, c.terms.rule, c.terms.n, c.terms.p, c.terms.burst, c.now, err)
		}
		if d.dry() {
			return i, nil
		}
	}
	return steps, nil
}

// step moves the clock, sometimes changes the rule, and does one thing to the key.
func (c *comparison) step() error {
	c.now = c.moveClock()
	if c.below(16) == 0 {
		c.terms = termsOf(c.change(c.terms.rule))
	}
	before := c.state
	level := c.read(c.state, c.terms.rule, c.now)
	c.model.read(c.terms, c.now)
	whole, num := c.model.split(&c.model.level)
	if want := (driver.Level{Whole: whole, Num: num, At: c.model.at}); level != want {
		return fmt.Errorf("reading %+v: level %+v, the model says %+v", before, level, want)
	}
	target := c.between(1, c.terms.burst)
	if got, want := c.wait(level, c.terms.rule, target), c.model.wait(&c.model.level, target); got != want {
		return fmt.Errorf("level %+v: wait for %d tokens %d us, the model says %d", level, target, got, want)
	}
	switch c.below(16) {
	case 0, 1, 2:
		amount := c.amount()
		c.state = c.settle(level, c.terms.rule, amount)
		c.model.write(int64(amount))
		return nil
	case 3:
		if c.below(4) == 0 { // the key expires, or is evicted
			c.state, c.model.live = stored{}, false
		}
		return nil
	default:
		return c.request(level, c.cost(whole))
	}
}

// request asks for cost at the level just read, and takes it if it fits.
func (c *comparison) request(level driver.Level, cost int) error {
	rule := c.terms.rule
	fits, wantFits := level.Fits(cost), cost <= 0 || c.model.result(int64(cost), false).Allowed
	if cost > 0 && fits != wantFits {
		return fmt.Errorf("level %+v: cost %d fits: %t, the model says %t", level, cost, fits, wantFits)
	}
	taken := cost > 0 && fits
	got, want := level.Result(rule, cost, taken), c.model.result(int64(cost), taken)
	if got != want {
		return fmt.Errorf("level %+v, cost %d, taken %t: result\n%+v, the model says\n%+v", level, cost, taken, got, want)
	}
	if got.Remaining < 0 || got.Remaining > rule.Capacity() || got.RetryAfter < 0 || got.ResetAfter < 0 {
		return fmt.Errorf("level %+v, cost %d: impossible answer %+v", level, cost, got)
	}
	c.last = c.model.wait(&c.model.level, int64(min(cost, rule.Capacity())))
	switch {
	case taken:
		c.state = c.take(level, rule, cost)
		c.model.write(int64(cost))
	case cost > 0:
		c.state = c.refuse(c.state, level, rule, c.now)
	}
	return nil
}

// moveClock returns the next time. Forward steps count from the moment of the last level and not from the clock, so
// that a key does not stay frozen for years after the clock stepped back.
func (c *comparison) moveClock() int64 {
	at, next := c.model.at, c.now
	untilFull := c.model.wait(&c.model.level, c.terms.burst)
	switch c.below(16) {
	case 0, 1, 2:
		return c.now
	case 3:
		next = at + micro
	case 4, 5: // exactly when the refused one was told to come back, and beside it
		next = at + min(c.last, driver.MaxMicros) + c.between(-1, 1)
	case 6, 7:
		target := c.between(1, c.terms.burst)
		next = at + min(c.model.wait(&c.model.level, target), driver.MaxMicros) + c.between(-1, 1)
	case 8, 9:
		next = at + c.below(min(untilFull, driver.MaxMicros)+2)
	case 10:
		next = at + c.between(0, 3)*c.terms.p + c.between(-1, 1)
	case 11, 12:
		next = at + c.scaled(1, driver.MaxMicros)
	case 13:
		next = at + c.between(1, 40)*year
	case 14:
		next = c.now - c.scaled(1, 3600e6)
	case 15:
		next = c.now - c.scaled(1, year)
	}
	return min(max(next, 1), driver.MaxMicros)
}

// cost returns what a request weighs, often at the edge of what the bucket holds.
func (c *comparison) cost(whole int64) int {
	burst := c.terms.burst
	switch c.below(16) {
	case 0:
		return 0
	case 1, 2, 3:
		return 1
	case 4, 5, 6:
		return int(max(whole, 0))
	case 7, 8:
		return int(max(whole+1, 0))
	case 9:
		return int(burst)
	case 10:
		return int(burst + 1)
	case 11:
		return []int{math.MaxInt, 2 * driver.MaxCount}[c.below(2)]
	case 12:
		return int(c.between(0, 2*burst))
	default:
		return int(c.scaled(1, burst))
	}
}

// amount returns what a settlement takes, or gives back if negative: up to three capacities, and the largest numbers.
func (c *comparison) amount() int {
	burst := c.terms.burst
	switch c.below(8) {
	case 0:
		return []int{math.MinInt, math.MaxInt, 0}[c.below(3)]
	case 1:
		return int([]int64{-1, 1, burst, -burst, 2 * burst, -2 * burst}[c.below(6)])
	case 2, 3:
		return int(c.between(-3*burst, 3*burst))
	case 4, 5:
		return int(c.scaled(1, burst))
	default:
		return -int(c.scaled(1, burst))
	}
}

// readExact returns what the exact model makes of a state written by hand as whole tokens and num/p of another one.
func readExact(whole, num, p, ts int64, rule driver.Rule, now int64) driver.Level {
	var m exact
	m.units.Add(m.units.Mul(big.NewInt(whole), big.NewInt(p)), big.NewInt(num))
	m.p, m.time, m.live = p, ts, true
	m.read(termsOf(rule), now)
	whole, num = m.split(&m.level)
	return driver.Level{Whole: whole, Num: num, At: m.at}
}
