package driver_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// perMicros is n tokens per p microseconds.
func perMicros(n, p int64, burst int) driver.Rule {
	return driver.NewBucket(int(n), time.Duration(p)*time.Microsecond).WithBurst(burst)
}

// start is a moment in 2001; any will do.
const start = int64(1e15)

// Products of elapsed time and rate beyond the 53 bits of a double, chosen with elapsed = r/n mod P so that the result
// is a whole number of tokens plus 0, 1 or P-1 units: one unit of error anywhere shows. The expected numbers were
// computed with Python's integers.
func TestReadBeyondTheRangeOfADouble(t *testing.T) {
	const whole31d = longest - 1 // 2678399999999, odd and just below the longest period
	for _, v := range []struct {
		n, p       int64
		burst      int
		elapsed    int64
		whole, num int64
	}{
		{999_999_937, longest, 1e9, 2_678_400_000_000, 999_999_937, 0},
		{999_999_937, longest, 1e9, 1_462_873_015_873, 546_174_180, 1},
		{999_999_937, longest, 1e9, 1_215_526_984_127, 453_825_756, longest - 1},
		{999_999_999, whole31d, 1e9, 2_678_399_999_999, 999_999_999, 0},
		{999_999_999, whole31d, 1e9, 603_625_367_893, 225_367_894, 1},
		{999_999_999, whole31d, 1e9, 2_074_774_632_106, 774_632_104, whole31d - 1},
		// One unit short of full, which doubles call full; and one microsecond later it is.
		{999_999_937, longest, 453_825_757, 1_215_526_984_127, 453_825_756, longest - 1},
		{999_999_937, longest, 453_825_757, 1_215_526_984_128, 453_825_757, 0},
		// Both sides of the product 2^53, where the script's wide path begins.
		{1 << 29, 1<<40 - 1, 1e9, 1 << 24, 8192, 8192},
		{1 << 29, 1<<40 - 1, 1e9, 1<<24 - 1, 8191, 1<<40 - 1 - 1<<29 + 8192},
	} {
		rule := perMicros(v.n, v.p, v.burst)
		if err := rule.Validate(); err != nil {
			t.Fatal(err)
		}
		empty := driver.Level{At: start}.Take(rule, 0)
		want := driver.Level{Whole: v.whole, Num: v.num, At: start + v.elapsed}
		if got := empty.Read(rule, start+v.elapsed); got != want {
			t.Errorf("%d per %d us, burst %d, %d us after empty: %+v, want %+v", v.n, v.p, v.burst, v.elapsed, got, want)
		}
		if got := readExact(0, 0, v.p, start, rule, start+v.elapsed); got != want {
			t.Errorf("the model itself: %d per %d us, %d us after empty: %+v, want %+v", v.n, v.p, v.elapsed, got, want)
		}
	}
}

// A product whose quotient does not fit 64 bits needs a time far outside the clock's range; the bucket is full all the same.
func TestReadAtTheLargestTime(t *testing.T) {
	for _, rule := range []driver.Rule{perMicros(1000, 1, 1), perMicros(1000, 1, driver.MaxCount), perMicros(1, 7, 5)} {
		burst := int64(rule.Capacity())
		for _, whole := range []int64{-burst, 0, burst - 1} {
			want := driver.Level{Whole: burst, At: math.MaxInt64}
			if got := (driver.Level{Whole: whole, At: 1}).Take(rule, 0).Read(rule, math.MaxInt64); got != want {
				t.Errorf("%v from %d: %+v, want %+v", rule, whole, got, want)
			}
		}
	}
}

// A carry between the two words of a product is too rare for random steps to meet (one in 2^23 at best): here each
// product lies within one unit of rate or period of a multiple k of 2^64, on the side where the carry happens.
func TestCarriesBetweenWords(t *testing.T) {
	const n, p = 999_999_937, longest
	rule := perMicros(n, p, driver.MaxCount)
	word := new(big.Int).Lsh(big.NewInt(1), 64)
	for k := int64(1); k <= 100; k++ {
		edge := new(big.Int).Mul(word, big.NewInt(k))

		// elapsed x n is less than n below the edge; the fraction lifts it over.
		elapsed := new(big.Int).Quo(edge, big.NewInt(n)).Int64()
		got := driver.Level{Whole: 0, Num: p - 1, At: start}.Take(rule, 0).Read(rule, start+elapsed)
		if want := readExact(0, p-1, p, start, rule, start+elapsed); got != want {
			t.Errorf("k = %d, reading after %d us: %+v, want %+v", k, elapsed, got, want)
		}

		// target x p is less than p above the edge; the fraction takes it below, by so little that rounding up with
		// n - 1 lifts it over again.
		over := new(big.Int)
		target, _ := new(big.Int).QuoRem(edge, big.NewInt(p), over)
		target.Add(target, big.NewInt(1))
		for _, below := range []int64{1, n / 2, n - 1, n, n + 1, p / 1000} {
			num := p - over.Int64() + below
			if num >= p {
				continue
			}
			level := driver.Level{Num: num, At: start}
			want := new(big.Int).Sub(edge, big.NewInt(below))
			want.Add(want, big.NewInt(n-1)).Quo(want, big.NewInt(n))
			if got := level.Wait(rule, target.Int64()); got != want.Int64() {
				t.Errorf("k = %d, %+v: wait for %v: %d us, want %v", k, level, target, got, want)
			}
		}
	}
}

// What was written is what is read, for every numerator of the longest periods: docs/arithmetic.md leaves 0.2501 of a unit for
// all roundings together.
func TestFractionComesBackUnderItsOwnRule(t *testing.T) {
	d := seeded(7)
	for i := range int64(200_000) {
		p := longest - i%1000
		if i%4 == 0 {
			p = d.scaled(2, longest)
		}
		num := d.below(p)
		switch i % 8 {
		case 1:
			num = p - 1
		case 3:
			num = min(1, p-1)
		}
		rule := perMicros(1, p, 5)
		want := driver.Level{Whole: 3, Num: num, At: start}
		if got := want.Take(rule, 0).Read(rule, start); got != want {
			t.Fatalf("period %d us: wrote %+v, read %+v", p, want, got)
		}
	}
}

// Under another rule the fraction is kept to the nearest unit of the new period; a fraction that is nearest to one is a
// whole token and not the numerator P of a period of P.
func TestFractionUnderAnotherRule(t *testing.T) {
	for _, v := range []struct {
		what            string
		num, p, q       int64
		wantNum, wholes int64
	}{
		{"half of two is half of four", 1, 2, 4, 2, 0},
		{"a third of three, in halves, is nearest to one half", 1, 3, 2, 1, 0},
		{"a quarter, in halves, rounds up", 1, 4, 2, 1, 0},
		{"a fifth, in halves, is nearest to none", 1, 5, 2, 0, 0},
		{"just below one is a whole token of one unit", longest - 1, longest, 1, 0, 1},
		{"just below one is a whole token of two units", longest - 1, longest, 2, 0, 1},
		{"just below one is a whole token of sixteen units", longest - 1, longest, 16, 0, 1},
		{"just below one half is none of one unit", longest/2 - 1, longest, 1, 0, 0},
		{"one half is one of one unit, rounded up", longest / 2, longest, 1, 0, 1},
		{"one unit of the longest period is nothing in seconds", 1, longest, 1e6, 0, 0},
		{"a third is cut to 44 bits, 0.05 of a unit short, and is read to the nearest", 1, 3, longest, 892_800_000_000, 0},
		{"two thirds of a period that three does not divide", 2, 3, longest - 2, 1_785_599_999_999, 0},
	} {
		written := driver.Level{Whole: 1, Num: v.num, At: start}.Take(perMicros(1, v.p, 5), 0)
		want := driver.Level{Whole: 1 + v.wholes, Num: v.wantNum, At: start}
		if got := written.Read(perMicros(1, v.q, 5), start); got != want {
			t.Errorf("%s: %+v, want %+v", v.what, got, want)
		}
		if got := readExact(1, v.num, v.p, start, perMicros(1, v.q, 5), start); got != want {
			t.Errorf("the model itself: %s: %+v, want %+v", v.what, got, want)
		}
	}
	// The largest fraction that fits the state, 1 - 2^-44, is nearest to one under every supported rule.
	largest := driver.Bucket{Whole: 1, Part: 1<<44 - 1, Time: start}
	for _, p := range []int64{1, 2, 3, 16, 1e6, longest - 1, longest} {
		if got, want := largest.Read(perMicros(1, p, 5), start), (driver.Level{Whole: 2, At: start}); got != want {
			t.Errorf("1 - 2^-44 under a period of %d us: %+v, want %+v", p, got, want)
		}
	}
}

// A wait is a promise with two halves: at its end the tokens are there, one microsecond earlier they are not.
func TestWaitIsTight(t *testing.T) {
	const at = int64(1) // early, so that waits of thousands of years still end at an int64
	d := seeded(11)
	var saturated, waited int
	for range 300_000 {
		rule := d.rule()
		burst := int64(rule.Capacity())
		_, p := rule.Reduced()
		level := driver.Level{Whole: d.between(-burst, burst-1), Num: d.below(p), At: at}
		target := d.between(1, burst)
		state := level.Take(rule, 0)
		switch wait := level.Wait(rule, target); {
		case target <= level.Whole:
			if wait != 0 {
				t.Fatalf("%v, %+v holds %d, but waits %d us for it", rule, level, target, wait)
			}
		case wait == math.MaxInt64: // longer than any clock: not there at the end of time
			saturated++
			if end := state.Read(rule, math.MaxInt64); end.Whole >= target {
				t.Fatalf("%v, %+v: wait for %d saturates, but at the largest time it holds %+v", rule, level, target, end)
			}
		default:
			waited++
			if then := state.Read(rule, at+wait); then.Whole < target {
				t.Fatalf("%v, %+v: after a wait of %d us for %d it holds %+v", rule, level, wait, target, then)
			}
			if early := state.Read(rule, at+wait-1); early.Whole >= target {
				t.Fatalf("%v, %+v: one us before the end of a wait of %d us for %d it holds %+v", rule, level, wait, target, early)
			}
		}
	}
	if saturated < 100 || waited < 100_000 {
		t.Fatalf("%d waits saturated and %d did not: the test does not test what it says", saturated, waited)
	}
}

// Where waits saturate: 292 thousand years as microseconds, 292 years as a duration.
func TestWaitSaturates(t *testing.T) {
	slowest := perMicros(1, longest, driver.MaxCount)
	empty := driver.Level{At: start}
	for _, v := range []struct {
		target, want int64
	}{
		{1, longest},
		{3_443_612, 3_443_612 * longest}, // the last one below 2^63
		{3_443_613, math.MaxInt64},
		{driver.MaxCount, math.MaxInt64},
	} {
		if got := empty.Wait(slowest, v.target); got != v.want {
			t.Errorf("wait for %d tokens: %d, want %d", v.target, got, v.want)
		}
	}
	res := empty.Result(slowest, driver.MaxCount, false)
	if res.RetryAfter != math.MaxInt64 || res.ResetAfter != math.MaxInt64 {
		t.Errorf("retry after %d, reset after %d, want the longest duration for both", res.RetryAfter, res.ResetAfter)
	}
	for us, want := range map[int64]time.Duration{
		0: 0, 1: time.Microsecond,
		math.MaxInt64 / 1000:   math.MaxInt64 / 1000 * time.Microsecond,
		math.MaxInt64/1000 + 1: math.MaxInt64,
		math.MaxInt64:          math.MaxInt64,
	} {
		if got := driver.Micros(us); got != want {
			t.Errorf("Micros(%d) = %d, want %d", us, got, want)
		}
	}
}

// Expiry is garbage collection only: from the moment that the wait for a full bucket names, a key that is gone and a
// key that is still there answer alike, under the rule that wrote it.
func TestFullKeyEqualsAFreshOne(t *testing.T) {
	d := seeded(13)
	for range 50_000 {
		rule := d.rule()
		burst := int64(rule.Capacity())
		_, p := rule.Reduced()
		level := driver.Level{Whole: d.between(-burst, burst-1), Num: d.below(p), At: 1}
		wait := level.Wait(rule, burst)
		if wait >= driver.MaxMicros {
			continue // full after the clock's last day
		}
		now := d.between(1+wait, driver.MaxMicros)
		kept, gone := level.Take(rule, 0).Read(rule, now), driver.Bucket{}.Read(rule, now)
		if kept != gone {
			t.Fatalf("%v, %+v at %d: %+v, a fresh key %+v", rule, level, now, kept, gone)
		}
	}
}
