package limit_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/limit"
)

// Default bursts, and their edges.
func TestDefaultBurst(t *testing.T) {
	for _, v := range []struct {
		rule limit.Rule
		want int
	}{
		{limit.PerSecond(100), 500},
		{limit.PerMinute(60), 60},
		{limit.PerHour(1000), 1000},
		{limit.PerDay(1), 1},
		{limit.PerSecond(1), 5},
		{limit.PerSecond(200_000_000), 1e9},
		{limit.PerSecond(200_000_001), 1e9}, // five seconds would be more than a bucket may hold
		{limit.PerSecond(1e9), 1e9},
		{limit.Per(1, 2*time.Second), 2},   // 2.5: whole tokens
		{limit.Per(1, 5*time.Second), 1},   // both are 1
		{limit.Per(3, 5*time.Second+1), 3}, // 2.99
		{limit.Per(100, 1500*time.Millisecond), 333},
		// A billion exactly, which binary floating point takes for 999999999.99.
		{limit.Per(967_329_453, 4836647265), 1e9},
		{limit.Unlimited(), 0},
	} {
		if got := v.rule.Capacity(); got != v.want {
			t.Errorf("%v: burst %d, want %d", v.rule, got, v.want)
		}
	}
}

// The default burst in exact arithmetic: the larger of n and floor(5 s x n / period), at most 1e9.
func TestDefaultBurstIsExact(t *testing.T) {
	for range 20_000 {
		rule := randomRule()
		inRange(t, rule)
		n, period := rule.Rate()
		five := big.NewInt(5e9)
		five.Quo(five.Mul(five, big.NewInt(int64(n))), big.NewInt(int64(period)))
		want := int64(1e9)
		if five.IsInt64() {
			want = min(want, max(int64(n), five.Int64()))
		}
		if got := limit.Per(n, period).Capacity(); int64(got) != want {
			t.Fatalf("%d per %v: burst %d, want %d", n, period, got, want)
		}
	}
}

func TestConstructorsAgree(t *testing.T) {
	for _, v := range []struct{ a, b limit.Rule }{
		{limit.PerSecond(7), limit.Per(7, time.Second)},
		{limit.PerMinute(7), limit.Per(7, time.Minute)},
		{limit.PerHour(7), limit.Per(7, time.Hour)},
		{limit.PerDay(7), limit.Per(7, 24*time.Hour)},
		{limit.PerSecond(100), limit.PerSecond(100).WithBurst(500)}, // the default said aloud
		{limit.PerSecond(100).WithBurst(1).WithBurst(7), limit.PerSecond(100).WithBurst(7)},
		{limit.Daily(7), limit.Daily(7).In(time.UTC)},
		{limit.Daily(7).In(berlin).In(time.UTC), limit.Daily(7)},
	} {
		if v.a != v.b {
			t.Errorf("%#v is not %#v", v.a, v.b)
		}
	}
	if limit.PerMinute(60) == limit.PerSecond(1).WithBurst(60) {
		t.Error("rules that print differently are equal")
	}
	rules := []limit.Rule{limit.PerDay(7).WithBurst(7), limit.Window(7, 24*time.Hour), limit.Sliding(7, 24*time.Hour), limit.Daily(7),
		limit.Daily(7).In(berlin), limit.Monthly(7)}
	for i, a := range rules {
		for _, b := range rules[:i] {
			if a == b {
				t.Errorf("%v is %v", a, b)
			}
		}
		if n, _ := a.Rate(); n != 7 || a.Capacity() != 7 || a.IsWindow() != (i > 0) || (a.Zone() != nil) != (i > 2) {
			t.Errorf("%v: count %d, capacity %d, window %t, zone %v", a, n, a.Capacity(), a.IsWindow(), a.Zone())
		}
	}
}

// Rates are kept in lowest terms of tokens per microseconds, as the stores count them.
func TestReducedRates(t *testing.T) {
	for _, v := range []struct {
		rule limit.Rule
		n, p int64
	}{
		{limit.PerSecond(100), 1, 10_000},
		{limit.PerSecond(7), 7, 1_000_000},
		{limit.PerSecond(1e9), 1000, 1},
		{limit.PerDay(1), 1, 86_400_000_000},
		{limit.Per(20, 2*time.Hour), 1, 360_000_000},
		{limit.Per(1, 1500), 2, 3}, // 1.5us
		{limit.Per(3, 3), 1000, 1}, // three per three nanoseconds
		{limit.Per(999_999_937, 31*24*time.Hour), 999_999_937, 2_678_400_000_000},
	} {
		if n, p := v.rule.Reduced(); n != v.n || p != v.p {
			t.Errorf("%v is %d per %d us, want %d per %d", v.rule, n, p, v.n, v.p)
		}
		if err := v.rule.Validate(); err != nil {
			t.Errorf("%v: %v", v.rule, err)
		}
	}
}

func TestString(t *testing.T) {
	for want, rule := range map[string]limit.Rule{
		"100/s":            limit.PerSecond(100),
		"100/s burst 20":   limit.PerSecond(100).WithBurst(20),
		"60/m":             limit.PerMinute(60),
		"1000/h":           limit.PerHour(1000),
		"5000/d":           limit.PerDay(5000),
		"10/1m30s burst 3": limit.Per(10, 90*time.Second).WithBurst(3),
		"10/250ms":         limit.Per(10, 250*time.Millisecond), // its burst is 200, the default
		"unlimited":        limit.Unlimited(),
		"none":             {},

		"10/m sliding":                  limit.Sliding(10, time.Minute),
		"5000/d window":                 limit.Window(5000, 24*time.Hour),
		"20/168h0m0s window":            limit.Window(20, 7*24*time.Hour),
		"5000/day":                      limit.Daily(5000).In(time.UTC),
		"5000/day Europe/Berlin":        limit.Daily(5000).In(berlin),
		"100000/month America/New_York": limit.Monthly(100_000).In(zone("America/New_York")),
		"7/month Local":                 limit.Monthly(7).In(time.Local),
	} {
		if got := rule.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Every message names what was written and the nearest value that would have been accepted.
func TestValidate(t *testing.T) {
	const days31 = 31 * 24 * time.Hour
	for _, v := range []struct {
		rule limit.Rule
		want string
	}{
		{limit.PerSecond(100).WithBurst(0), "burst 0; the smallest is 1"},
		{limit.PerSecond(100).WithBurst(-5), "burst -5; the smallest is 1"},
		{limit.PerSecond(100).WithBurst(1e9 + 1), "burst 1000000001; the largest is 1000000000"},
		{limit.PerSecond(0), "rate 0 per 1s; the smallest count is 1 (Off is a mode, not a number)"},
		{limit.PerHour(-3), "rate -3 per 1h0m0s; the smallest count is 1 (Off is a mode, not a number)"},
		{limit.Per(1, 0), "period 0s; the shortest is 1us"},
		{limit.Per(1, -time.Second), "period -1s; the shortest is 1us"},
		{limit.Per(1, days31+time.Microsecond), "period 744h0m0.000001s; the longest is 744h0m0s"},
		{limit.Per(1, math.MaxInt64), "period 2562047h47m16.854775807s; the longest is 744h0m0s"},
		{limit.Per(1, days31-1), "period 743h59m59.999999999s: the period must be a whole number of microseconds"},
		{limit.Per(2_000_003, 3_000_001), "period 3.000001ms: the period must be a whole number of microseconds"},
		{limit.PerSecond(1e9 + 1), "rate 1000000001 per 1s; the largest is 1000000000 per second"},
		{limit.Per(1001, time.Microsecond), "rate 1001 per 1µs; the largest is 1000000000 per second"},
		{limit.Per(2, 1), "rate 2 per 1ns; the largest is 1000000000 per second"},
		{limit.Per(1e9+7, time.Hour), "rate 1000000007 per 1h0m0s; the largest count is 1000000000"}, // slow enough, but too large a number
		{limit.PerSecond(0).WithBurst(0), "rate 0 per 1s; the smallest count is 1 (Off is a mode, not a number)\nburst 0; the smallest is 1"},
		{limit.Unlimited().WithBurst(5), "an unlimited rule has no burst"},
		{limit.Rule{}, "no rule; write for example limit.PerSecond(100)"},
		{limit.Rule{}.WithBurst(5), "no rule; write for example limit.PerSecond(100)"},
		{limit.Rule{}.In(berlin), "no rule; write for example limit.PerSecond(100)"},

		{limit.Window(10, 3600), "window 3.6us is shorter than 1ms; did you mean 3600*time.Second?"},
		{limit.Sliding(10, 60), "window 60ns is shorter than 1ms; did you mean 60*time.Second?"},
		{limit.Window(10, 0), "window 0s; the shortest is 1ms"},
		{limit.Window(10, -time.Second), "window -1s; the shortest is 1ms"},
		{limit.Sliding(10, days31+time.Microsecond), "window 744h0m0.000001s; the longest is 744h0m0s"},
		{limit.Sliding(10, 1_000_500), "window 1.0005ms: it must be a whole number of microseconds"},
		{limit.Window(0, time.Minute), "count 0 per window; 1 to 1000000000 (Off is a mode, not a number)"},
		{limit.Daily(-1), "count -1 per window; 1 to 1000000000 (Off is a mode, not a number)"},
		{limit.Monthly(1e9 + 1), "count 1000000001 per window; 1 to 1000000000 (Off is a mode, not a number)"},
		{limit.Sliding(10, time.Minute).WithBurst(5), "a window has no burst"},
		{limit.Daily(10).WithBurst(0), "a window has no burst"},
		{limit.PerSecond(10).In(berlin), "only Daily and Monthly have a time zone"},
		{limit.PerSecond(10).In(nil), "only Daily and Monthly have a time zone"},
		{limit.Window(10, time.Hour).In(time.UTC), "only Daily and Monthly have a time zone"},
		{limit.Unlimited().In(berlin), "only Daily and Monthly have a time zone"},
		{limit.Unlimited().WithBurst(0), "an unlimited rule has no burst"},
		{limit.Daily(10).In(nil), "the time zone is nil; leave In out for UTC"},
		{limit.Daily(10).In(new(time.Location)), `time zone "": its name must be one word, or the rule could not be written down`},
		{limit.Daily(10).In(time.FixedZone("my zone", 3600)), `time zone "my zone": its name must be one word, or the rule could not be written down`},
		{limit.Window(0, 60).WithBurst(5).In(nil), "count 0 per window; 1 to 1000000000 (Off is a mode, not a number)\n" +
			"window 60ns is shorter than 1ms; did you mean 60*time.Second?\na window has no burst\nonly Daily and Monthly have a time zone"},
	} {
		if err := v.rule.Validate(); err == nil || err.Error() != v.want {
			t.Errorf("%v:\n     %v\nwant %s", v.rule, err, v.want)
		}
	}
}

// The corners of the supported range are inside it.
func TestValidateAcceptsTheWholeRange(t *testing.T) {
	const days31 = 31 * 24 * time.Hour
	for _, rule := range []limit.Rule{
		limit.Unlimited(),
		limit.Per(1, time.Microsecond),
		limit.Per(1000, time.Microsecond),
		limit.Per(1, days31),
		limit.Per(1e9, days31),
		limit.Per(999_999_937, days31),
		limit.Per(1e9, time.Second),
		limit.Per(2e9, 2*time.Second), // reduced before it is measured
		limit.Per(2, 2*days31),
		limit.Per(1, 1),    // 1000 per microsecond
		limit.Per(3, 1500), // 2 per microsecond
		limit.Per(1e9, 1e9+1e3),
		limit.Window(1, time.Millisecond),
		limit.Sliding(1e9, time.Millisecond),
		limit.Window(1e9, days31),
		limit.Sliding(1, days31-time.Microsecond),
		limit.Daily(1),
		limit.Monthly(1e9).In(berlin),
		limit.Daily(1).In(time.FixedZone("UTC+25", 25*3600)),
	} {
		for _, burst := range []int{0, 1, 1e9} {
			if burst > 0 && rule.Kind() == driver.KindBucket {
				rule = rule.WithBurst(burst)
			}
			if err := rule.Validate(); err != nil {
				t.Errorf("%v: %v", rule, err)
			}
		}
	}
}

func TestZeroRule(t *testing.T) {
	var none limit.Rule
	if !none.IsZero() || none.Kind() != driver.KindNone {
		t.Errorf("the zero rule is %v, of kind %d", none, none.Kind())
	}
	for _, rule := range []limit.Rule{limit.Unlimited(), limit.PerSecond(1), limit.PerSecond(0)} {
		if rule.IsZero() {
			t.Errorf("%v is taken for no rule", rule)
		}
	}
}
