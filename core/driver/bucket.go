package driver

import (
	"math"
	"math/bits"
	"time"
)

// The reference model of the token bucket: exact rational arithmetic on a clock of one microsecond. Every store admits
// exactly what this admits for the same sequence of times and costs, whatever it is written in; the numbers fit both
// 64-bit integers and the 53 bits of a double, so that a Redis script can do the same.

// fractionUnit is the resolution of a stored fraction of a token: 2^-44.
const fractionUnit = 1.0 / (1 << 44)

// Bucket is the stored state of one token bucket: Whole tokens and Part x 2^-44 of another one, as counted at Time.
// The rule is nowhere in it, so limits can change under live keys. The zero value is a key never seen: a full bucket.
type Bucket struct {
	Whole int64  // -capacity..capacity of the rule that wrote it; negative while in debt
	Part  uint64 // 0..2^44-1
	Time  int64  // microseconds; 0 for no state
}

// Level is a bucket read under a rule at a moment: Whole tokens and Num/P of another one, P being the rule's period.
type Level struct {
	Whole, Num int64
	At         int64 // the moment, in microseconds: now, or the state's own time if the clock stepped back
}

// Read returns what the bucket holds under rule at now (microseconds): tokens counted stay, cut to today's capacity,
// and the time since is credited at today's rate.
func (b Bucket) Read(rule Rule, now int64) Level {
	capacity, n, p := int64(rule.burst), rule.n, rule.p
	if b.Time == 0 {
		return Level{Whole: capacity, At: now}
	}
	at := max(now, b.Time) // elapsed time is never negative
	whole := b.Whole
	// Nearest, so that the numerator comes back exactly if P is the one it was written with (error below 0.2501 for
	// P < 2^42). The conversion around the product forbids fusing it with the addition, which would round differently
	// on some processors.
	num := uint64(float64(float64(b.Part)*fractionUnit*float64(p)) + 0.5)
	if whole < -capacity {
		whole, num = -capacity, 0 // debt is never more than one bucket of today's rule
	}
	hi, lo := bits.Mul64(uint64(at-b.Time), uint64(n))
	lo, carry := bits.Add64(lo, num, 0)
	hi += carry
	if hi >= uint64(p) { // the quotient would not fit 64 bits: far above any capacity
		return Level{Whole: capacity, At: at}
	}
	var quotient uint64
	if hi == 0 {
		quotient, num = lo/uint64(p), lo%uint64(p)
	} else {
		quotient, num = bits.Div64(hi, lo, uint64(p))
	}
	if whole >= capacity || quotient >= uint64(capacity-whole) { // whole alone: today's burst is smaller
		return Level{Whole: capacity, At: at}
	}
	return Level{Whole: whole + int64(quotient), Num: int64(num), At: at}
}

// Fits says whether cost would be admitted. The fraction never decides.
func (l Level) Fits(cost int) bool { return l.Whole >= int64(cost) }

// Take returns the state after cost was taken. A refused request, or one of cost 0, writes nothing instead.
func (l Level) Take(rule Rule, cost int) Bucket {
	return Bucket{Whole: l.Whole - int64(cost), Part: part(l.Num, rule.p), Time: l.At}
}

// Settle returns the state after amount was taken, or given back if negative, without asking whether it fits:
// between a debt of one capacity and full.
func (l Level) Settle(rule Rule, amount int) Bucket {
	capacity := int64(rule.burst)
	amount64 := min(max(int64(amount), -2*capacity), 2*capacity)
	switch whole := l.Whole - amount64; {
	case whole >= capacity:
		return Bucket{Whole: capacity, Time: l.At}
	case whole < -capacity:
		return Bucket{Whole: -capacity, Time: l.At}
	default:
		return Bucket{Whole: whole, Part: part(l.Num, rule.p), Time: l.At}
	}
}

// Wait returns the microseconds until the bucket holds target tokens; 0 if it does. It is tight: one microsecond
// earlier it does not. It saturates at the largest int64.
func (l Level) Wait(rule Rule, target int64) int64 {
	if target <= l.Whole {
		return 0
	}
	n := uint64(rule.n)
	hi, lo := bits.Mul64(uint64(target-l.Whole), uint64(rule.p))
	lo, borrow := bits.Sub64(lo, uint64(l.Num), 0)
	hi -= borrow
	lo, carry := bits.Add64(lo, n-1, 0) // rounded up
	hi += carry
	if hi >= n {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(hi, lo, n)
	return int64(min(quotient, math.MaxInt64))
}

// Result answers a claim of cost that found this level; taken says whether it was taken then.
func (l Level) Result(rule Rule, cost int, taken bool) Result {
	res := Result{Allowed: l.Fits(cost) || cost == 0}
	after := l
	if taken {
		after.Whole -= int64(cost)
	}
	if !res.Allowed {
		if cost > rule.burst {
			res.Reason = ReasonCost
		} else {
			res.Reason = ReasonLimit
			res.RetryAfter = Micros(l.Wait(rule, int64(cost)))
		}
	}
	res.Remaining = int(max(0, after.Whole))
	res.ResetAfter = Micros(after.Wait(rule, int64(rule.burst)))
	if after.Whole >= 0 { // in debt nothing is above Remaining
		res.Fraction = Fraction{Num: after.Num, Den: rule.p}
	}
	return res
}

// part stores num/p of a token, cut to 44 bits.
func part(num, p int64) uint64 { return uint64(float64(num) / float64(p) * (1 << 44)) }

// Micros turns microseconds into a duration, saturating at the longest one (292 years).
func Micros(us int64) time.Duration {
	if us > math.MaxInt64/1000 {
		return math.MaxInt64
	}
	return time.Duration(us) * time.Microsecond
}
