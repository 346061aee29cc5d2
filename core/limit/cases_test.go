package limit_test

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/limit"
)

// Huge numbers must not overflow on the way to the burst that is derived from them: either the rule is refused and
// the message names the largest value, or it works. +Inf cannot be written in integers.
func TestBR009_HugeRateOrBurst(t *testing.T) {
	huge := []int{1e9 + 1, math.MaxInt32, math.MaxInt/5 + 1, math.MaxInt / 2, math.MaxInt - 1, math.MaxInt}
	for shift := 31; shift < 63; shift++ { // 2^31, 2^53, 2^62 of the case among them
		if n := int(int64(1) << shift); n > 1e9 {
			huge = append(huge, n)
		}
	}
	for _, n := range huge {
		for _, period := range []time.Duration{1, time.Microsecond, time.Second, 24 * time.Hour, math.MaxInt64} {
			rule := limit.Per(n, period)
			if burst := rule.Capacity(); burst < 1 || burst > 1e9 {
				t.Errorf("%d per %v: the derived burst is %d", n, period, burst)
			}
			if rule.Validate() == nil { // 2^31 per day, for example, reduces to numbers in range
				inRange(t, rule)
			} else {
				refused(t, rule, "the largest", "the longest", "whole number of microseconds")
			}
		}
		refused(t, limit.PerSecond(n), "the largest is 1000000000 per second")
		refused(t, limit.PerSecond(100).WithBurst(n), "burst", "the largest is 1000000000")
		for _, rule := range []limit.Rule{limit.Window(n, time.Minute), limit.Sliding(n, math.MaxInt64), limit.Daily(n), limit.Monthly(n)} {
			refused(t, rule, "1 to 1000000000")
		}
	}
	for _, text := range []string{"+Inf/s", "Inf/s", "1e300/s", "9223372036854775808/s", "1/s burst 9223372036854775808"} {
		if rule, err := limit.Parse(text); err == nil {
			t.Errorf("Parse(%q) = %v, want an error", text, rule)
		}
	}
	// The largest that is accepted works: ten requests pass and one of cost 2^53 is refused, with nothing negative.
	rule := limit.PerSecond(1e9)
	admitted(t, rule, 10, 10)
	cost := math.MaxInt
	if res := (driver.Bucket{}).Read(rule, 1).Result(rule, cost, false); res.Allowed || res.Remaining != 1e9 || res.RetryAfter != 0 {
		t.Errorf("cost %d of %v: %+v", cost, rule, res)
	}
}

// Time to the next token that does not fit a duration must not come out as zero, negative or 1 ms. Rates that slow
// cannot be written in a rule (the longest period is 31 days), and the slowest one has a wait that is right.
func TestBR011_NearZeroRate(t *testing.T) {
	refused(t, limit.Per(1, math.MaxInt64), "the longest is 744h0m0s")
	refused(t, limit.Per(1, 290*365*24*time.Hour), "the longest is 744h0m0s")
	for _, rule := range []limit.Rule{limit.Window(1, 1e9*time.Second), limit.Sliding(1, 1e9*time.Second), limit.Window(1, math.MaxInt64)} {
		refused(t, rule, "the longest is 744h0m0s")
	}
	for _, text := range []string{"1/1000000000s", "1/1000000000000s", "1/2628000h", "1/99999999999999999999h"} {
		if rule, err := limit.Parse(text); err == nil || !strings.Contains(err.Error(), "the longest is 744h0m0s") {
			t.Errorf("Parse(%q) = %v, %v; want the longest period", text, rule, err)
		}
	}
	if rule, err := limit.Parse("0.000000000001/s"); err == nil {
		t.Errorf("%v was accepted", rule)
	}
	slowest := limit.Per(1, 31*24*time.Hour)
	state := driver.Bucket{}.Read(slowest, 1).Take(slowest, 1)
	if res := state.Read(slowest, 1).Result(slowest, 1, false); res.Allowed || res.RetryAfter != 31*24*time.Hour {
		t.Errorf("the second request of %v: %+v, want refused for 744h", slowest, res)
	}
}

// The burst is the number admitted at one instant, not one more and not one less; 0 is refused, because a limiter that
// admits nothing, or one after all, is not what anybody means by it.
func TestBR024_BurstIsWhatPassesAtOnce(t *testing.T) {
	for _, burst := range []int{1, 15} {
		rule := limit.PerSecond(10).WithBurst(burst)
		if got := rule.Capacity(); got != burst {
			t.Errorf("%v: limit %d, want %d", rule, got, burst)
		}
		admitted(t, rule, 20, burst)
	}
	refused(t, limit.PerSecond(10).WithBurst(0), "burst 0; the smallest is 1")
	if _, err := limit.Parse("10/s burst 0"); err == nil || !strings.HasSuffix(err.Error(), "burst 0; the smallest is 1") {
		t.Errorf("Parse: %v", err)
	}
}

// What is missing or misspelt is an error that names it; no rule comes back, so nobody can serve without a limit by
// mistake. Limiter and field are named by the gate, which knows them.
func TestBR046_MissingOrMisspeltField(t *testing.T) {
	for text, names := range map[string]string{
		"100":             "no period",
		"100/":            "no period",
		"100/s burts 500": `"burts"`,
		"100/60":          `"60" (at 5) has no unit`,
		"100/s burst 0":   "burst 0; the smallest is 1",
		"100/s burst":     "no number",
		"":                "nothing to read",
	} {
		rule, err := limit.Parse(text)
		if err == nil || !strings.Contains(err.Error(), names) || !rule.IsZero() {
			t.Errorf("Parse(%q) = %v, %v; want no rule and an error that says %s", text, rule, err, names)
		}
	}
	refused(t, limit.Rule{}, "no rule") // a field left out in Go
}

// A period of zero or below is an error when the rule is built, not a division by zero at the first request. The case
// lists other intervals as well, where 0 means the default; a rule has no default period.
func TestBR047_PeriodZeroOrBelow(t *testing.T) {
	for _, period := range []time.Duration{0, -1, -time.Second, math.MinInt64} {
		for _, n := range []int{1, 100, math.MaxInt} {
			refused(t, limit.Per(n, period), "the shortest is 1us")
			refused(t, limit.Window(n, period), "the shortest is 1ms")
			refused(t, limit.Sliding(n, period), "the shortest is 1ms")
		}
	}
	for _, text := range []string{"100/0s", "100/-1s", "100/-1ns", "100/0", "100/0s window", "100/-1s sliding"} {
		if rule, err := limit.Parse(text); err == nil {
			t.Errorf("Parse(%q) = %v, want an error", text, rule)
		}
	}
	refused(t, limit.Per(0, 0).WithBurst(0), "the smallest count is 1")
	refused(t, limit.Per(math.MinInt, math.MinInt64).WithBurst(math.MinInt), "the smallest is 1")
}

// inRange checks that a rule that was accepted has a rate of numbers in range, and that it is the rate written.
func inRange(t *testing.T, rule limit.Rule) {
	t.Helper()
	count, period := rule.Rate()
	n, p := rule.Reduced()
	if n < 1 || n > 1e9 || p < 1 || p > int64(driver.MaxPeriod/time.Microsecond) || n > 1000*p {
		t.Errorf("%v was accepted as %d per %d us", rule, n, p)
	}
	written := big.NewRat(int64(count), int64(period))
	if kept := new(big.Rat).Mul(big.NewRat(n, p), big.NewRat(1, 1000)); written.Cmp(kept) != 0 {
		t.Errorf("%v is kept as %d per %d us", rule, n, p)
	}
}

// refused checks that the rule is invalid, that the error says one of words, and that printing it is harmless.
func refused(t *testing.T, rule limit.Rule, words ...string) {
	t.Helper()
	err := rule.Validate()
	if err == nil {
		t.Errorf("%v was accepted", rule)
		return
	}
	for _, word := range words {
		if strings.Contains(err.Error(), word) {
			return
		}
	}
	t.Errorf("%v: %v; want it to say %q", rule, err, words)
}

// admitted checks how many of a number of requests at one instant pass on a new key.
func admitted(t *testing.T, rule limit.Rule, requests, want int) {
	t.Helper()
	const now = int64(1e15)
	var state driver.Bucket
	got := 0
	for range requests {
		level := state.Read(rule, now)
		if level.Fits(1) {
			state = level.Take(rule, 1)
			got++
		}
	}
	if got != want {
		t.Errorf("%v: %d of %d requests admitted at once, want %d", rule, got, requests, want)
	}
}

// A window below a second keeps its length; one below a millisecond is refused, mostly because somebody forgot the unit.
func TestBR037_WindowsBelowASecond(t *testing.T) {
	for _, d := range []time.Duration{time.Millisecond, 500 * time.Millisecond, 1500 * time.Millisecond, 2700 * time.Millisecond} {
		for _, rule := range []limit.Rule{limit.Window(3, d), limit.Sliding(3, d)} {
			if _, got := rule.Rate(); rule.Validate() != nil || got != d {
				t.Errorf("%v: %v, length %v, want %v", rule, rule.Validate(), got, d)
			}
			level := driver.Window{}.Read(rule, 1e15)
			if level.Length != d.Microseconds() || !level.Fits(rule, 3) || level.Fits(rule, 4) {
				t.Errorf("%v: %+v", rule, level)
			}
		}
	}
	for _, d := range []time.Duration{1, 1000, time.Millisecond - 1, time.Microsecond} {
		refused(t, limit.Window(3, d), "is shorter than 1ms; did you mean")
		refused(t, limit.Sliding(3, d), "is shorter than 1ms; did you mean")
	}
}
