package driver_test

import (
	"math"
	"math/big"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// terms are a rule's numbers as the exact model reads them. They are derived from the rule as it was written and not
// from Rule.Reduced, so that a wrong reduction shows as a difference.
type terms struct {
	rule        driver.Rule
	n, p, burst int64
}

func termsOf(rule driver.Rule) terms {
	count, period := rule.Rate()
	perMicro := big.NewRat(int64(count), int64(period)) // tokens per nanosecond, in lowest terms
	perMicro.Mul(perMicro, big.NewRat(1000, 1))
	return terms{rule: rule, n: perMicro.Num().Int64(), p: perMicro.Denom().Int64(), burst: int64(rule.Capacity())}
}

// exact is the token bucket that driver.Bucket is compared with: tokens are one exact rational number, units/p, with
// no bounds and no split into whole and part. It shares nothing with the implementation but the two sentences of
// docs/arithmetic.md that say how a fraction is read under another rule (see carry).
//
// A big.Rat would say the same, but reduces after each step; over p, the period of the rule that wrote the state,
// every number of this model is an integer.
type exact struct {
	live  bool // false: no state, a full bucket
	units big.Int
	p     int64
	time  int64

	// What read found: the level, not yet written.
	level big.Int // units of 1/terms.p
	at    int64
	terms terms

	a, b, c, d big.Int // scratch: a million steps should not be a million garbage collections
}

// read sets level to what the bucket holds at now under today's rule.
func (e *exact) read(t terms, now int64) {
	e.terms, e.at = t, now
	capacity := e.a.Mul(e.a.SetInt64(t.burst), e.b.SetInt64(t.p))
	if !e.live {
		e.level.Set(capacity)
		return
	}
	e.level.Set(&e.units)
	if t.p != e.p { // the only place where exactness ends: docs/arithmetic.md says how
		whole, rest := e.c.DivMod(&e.units, e.b.SetInt64(e.p), &e.d)
		num := carry(rest.Int64(), e.p, t.p)
		e.level.Mul(whole, e.b.SetInt64(t.p))
		e.level.Add(&e.level, e.b.SetInt64(num))
	}
	if e.c.Neg(capacity); e.level.Cmp(&e.c) < 0 {
		e.level.Set(&e.c) // debt is at most one bucket of today's rule
	}
	if e.time > now {
		e.at = e.time // the clock stepped back: no time passed
	}
	e.level.Add(&e.level, e.b.Mul(e.b.SetInt64(e.at-e.time), e.c.SetInt64(t.n)))
	if e.level.Cmp(capacity) > 0 {
		e.level.Set(capacity)
	}
}

// carry reads the fraction num/p, written under a rule with period p, under one with period q: x = floor(num/p * 2^44)
// / 2^44, then floor(x*q + 0.5), each operation rounded to the 53 bits of a double as the document demands.
func carry(num, p, q int64) int64 {
	double := func() *big.Float { return new(big.Float).SetPrec(53).SetMode(big.ToNearestEven) }
	x := double().Quo(double().SetInt64(num), double().SetInt64(p))
	cut, _ := x.SetMantExp(x, 44).Int(nil)
	x = double().SetInt(cut)
	x.SetMantExp(x, -44)
	y := double().Mul(x, double().SetInt64(q))
	y = double().Add(y, big.NewFloat(0.5))
	nearest, _ := y.Int64()
	return nearest
}

// split returns level as whole tokens and the numerator of the rest.
func (e *exact) split(level *big.Int) (whole, num int64) {
	e.c.DivMod(level, e.b.SetInt64(e.terms.p), &e.d) // floors, also below zero
	return e.c.Int64(), e.d.Int64()
}

// wait returns the microseconds until level holds target tokens, at most the largest int64.
func (e *exact) wait(level *big.Int, target int64) int64 {
	missing := e.c.Mul(e.c.SetInt64(target), e.b.SetInt64(e.terms.p))
	if missing.Sub(missing, level); missing.Sign() <= 0 {
		return 0
	}
	missing.Add(missing, e.b.SetInt64(e.terms.n-1)) // rounded up
	missing.Quo(missing, e.b.SetInt64(e.terms.n))
	if !missing.IsInt64() {
		return math.MaxInt64
	}
	return missing.Int64()
}

// write makes level the state, less amount tokens and inside a debt of one capacity and full.
func (e *exact) write(amount int64) {
	e.a.Mul(e.a.SetInt64(amount), e.b.SetInt64(e.terms.p))
	e.units.Sub(&e.level, &e.a)
	e.a.Mul(e.a.SetInt64(e.terms.burst), e.b.SetInt64(e.terms.p))
	if e.units.Cmp(&e.a) > 0 {
		e.units.Set(&e.a)
	}
	if e.a.Neg(&e.a); e.units.Cmp(&e.a) < 0 {
		e.units.Set(&e.a)
	}
	e.p, e.time, e.live = e.terms.p, e.at, true
}

// result answers a request of cost at the level just read, as the doc comments of driver.Result promise.
func (e *exact) result(cost int64, taken bool) driver.Result {
	whole, _ := e.split(&e.level)
	res := driver.Result{Allowed: cost == 0 || whole >= cost}
	switch {
	case res.Allowed:
	case cost > e.terms.burst:
		res.Reason = driver.ReasonCost
	default:
		res.Reason, res.RetryAfter = driver.ReasonLimit, duration(e.wait(&e.level, cost))
	}
	after := &e.level
	if taken {
		e.a.Mul(e.a.SetInt64(cost), e.b.SetInt64(e.terms.p))
		after = e.a.Sub(&e.level, &e.a)
	}
	if whole, num := e.split(after); whole >= 0 { // in debt nothing is above Remaining
		res.Remaining, res.Fraction = int(whole), driver.Fraction{Num: num, Den: e.terms.p}
	}
	res.ResetAfter = duration(e.wait(after, e.terms.burst))
	return res
}

func duration(us int64) time.Duration {
	if us > int64(math.MaxInt64/time.Microsecond) {
		return math.MaxInt64
	}
	return time.Duration(us) * time.Microsecond
}
