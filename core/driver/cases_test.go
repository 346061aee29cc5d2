package driver_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// key is one key's bucket with a clock that counts from the start of the test.
type key struct {
	rule  driver.Rule
	state driver.Bucket
}

// ask makes one request and takes what it may take, exactly as a store does.
func (k *key) ask(at time.Duration, cost int) driver.Result {
	level := k.state.Read(k.rule, start+at.Microseconds())
	taken := cost > 0 && level.Fits(cost)
	res := level.Result(k.rule, cost, taken)
	if taken {
		k.state = level.Take(k.rule, cost)
	}
	return res
}

// answer writes a result as the cases do: "A 4" is allowed with 4 remaining, "D 0 2s" refused with a Retry-After of 2,
// rounded up once to seconds as a gate does; "D 5 never" cannot succeed.
func answer(res driver.Result) string {
	switch {
	case res.Allowed:
		return fmt.Sprintf("A %d", res.Remaining)
	case res.Reason == driver.ReasonCost:
		return fmt.Sprintf("D %d never", res.Remaining)
	}
	return fmt.Sprintf("D %d %ds", res.Remaining, (res.RetryAfter+time.Second-1)/time.Second)
}

// ask is one line of a script of times.
type ask struct {
	time time.Duration
	cost int
	want string
}

// play runs a script on the key.
func (k *key) play(t *testing.T, script ...ask) {
	t.Helper()
	for _, line := range script {
		if got := answer(k.ask(line.time, line.cost)); got != line.want {
			t.Errorf("%v at %v, cost %d: %s, want %s", k.rule, line.time, line.cost, got, line.want)
		}
	}
}

// count returns how many of the requests of cost 1 at from, from+every, ... up to and including to are allowed.
func (k *key) count(from, every, to time.Duration) int {
	allowed := 0
	for at := from; at <= to; at += every {
		if k.ask(at, 1).Allowed {
			allowed++
		}
	}
	return allowed
}

const (
	second = time.Second
	day    = 24 * time.Hour
)

// A rate below one per second is a rate: kept as integers per second it turns into none, or into one.
func TestBR005_VerySmallRates(t *testing.T) {
	for _, rule := range []driver.Rule{driver.NewBucket(1, day), driver.NewBucket(1, 86400*second).WithBurst(1)} {
		k := key{rule: rule}
		if got := rule.Capacity(); got != 1 {
			t.Errorf("%v: limit %d, want 1", rule, got)
		}
		if got := k.ask(0, 1); answer(got) != "A 0" || got.ResetAfter != day {
			t.Errorf("%v: %+v, want allowed and a reset after a day, which is the life of a store's key", rule, got)
		}
		k.play(t,
			ask{43200 * second, 1, "D 0 43200s"},
			ask{86399 * second, 1, "D 0 1s"},
			ask{86400 * second, 1, "A 0"},
		)
	}
}

// A rate above one per clock tick still limits: an interval that rounds to zero reports a full bucket for ever.
func TestBR006_VeryLargeRates(t *testing.T) {
	for _, perSecond := range []int{2_000, 1_000_000, 10_000_000, 1_000_000_000} {
		k := key{rule: driver.NewBucket(perSecond, second).WithBurst(10)}
		for i := range 1000 {
			want := "D 0 1s"
			if i < 10 {
				want = fmt.Sprintf("A %d", 9-i)
			}
			k.play(t, ask{0, 1, want})
		}
		if k.state.Time == 0 {
			t.Errorf("%v: no state was written", k.rule)
		}
		// One millisecond later: what the rate gives, and no more than the burst.
		want := min(10, perSecond/1000)
		if got := k.count(time.Millisecond, 1, time.Millisecond+999); got != want {
			t.Errorf("%v after 1ms: %d allowed, want %d", k.rule, got, want)
		}
	}
}

// Elapsed time x rate must not wrap. 290 years are outside the clock that stores accept (it ends in 2112); the model
// answers right all the same.
func TestBR008_LongIdlePeriod(t *testing.T) {
	for _, idle := range []time.Duration{12 * time.Hour, 365 * day, 290 * 365 * day} {
		k := key{rule: driver.NewBucket(1e6, second).WithBurst(1e6)}
		k.play(t, ask{0, 1e6, "A 0"}, ask{idle, 1, "A 999999"})
	}
}

// A clock that steps back neither refills nor takes away: no negative Remaining, no lock-out, and the stored time does
// not go back, so the way forward again gives nothing twice.
func TestBR014_ClockStepBackward(t *testing.T) {
	k := key{rule: driver.NewBucket(10, second).WithBurst(10)}
	for _, line := range []ask{
		{2 * time.Hour, 1, "A 9"},
		{2*time.Hour - 2*second, 1, "A 8"},
		{time.Hour, 1, "A 7"},
		{2 * time.Hour, 1, "A 6"},
	} {
		res := k.ask(line.time, line.cost)
		if got := answer(res); got != line.want {
			t.Errorf("at %v: %s, want %s", line.time, got, line.want)
		}
		if res.ResetAfter > second {
			t.Errorf("at %v: reset after %v, more than the second it takes to fill", line.time, res.ResetAfter)
		}
	}
}

// A cost that never fits has its own reason and no Retry-After, or a correct client retries for ever.
func TestBR016_CostLargerThanTheBucket(t *testing.T) {
	k := key{rule: driver.NewBucket(1, second).WithBurst(5)}
	res := k.ask(0, 6)
	if res.Reason.String() != "cost_exceeds_limit" || res.RetryAfter != 0 {
		t.Errorf("cost 6 of 5: reason %q, retry after %v", res.Reason, res.RetryAfter)
	}
	k.play(t, ask{0, 6, "D 5 never"}, ask{0, 5, "A 0"}, ask{0, 1, "D 0 1s"})
}

// Cost 0 is a pure read: it creates nothing, writes nothing and is never refused.
func TestBR018_CostZeroIsARead(t *testing.T) {
	k := key{rule: driver.NewBucket(1, second).WithBurst(5)}
	k.play(t, ask{0, 0, "A 5"}, ask{0, 0, "A 5"}, ask{0, 0, "A 5"})
	if k.state != (driver.Bucket{}) {
		t.Errorf("three reads created %+v", k.state)
	}
	k.play(t, ask{0, 1, "A 4"})
	before := k.state
	k.play(t, ask{0, 0, "A 4"}, ask{second / 2, 0, "A 4"})
	if k.state != before {
		t.Errorf("a read changed %+v to %+v", before, k.state)
	}
	k.play(t, ask{second / 2, 4, "A 0"}, ask{second / 2, 0, "A 0"})
	if res := (driver.Level{Whole: -3, At: start}).Result(k.rule, 0, false); answer(res) != "A 0" {
		t.Errorf("a read of a bucket in debt: %s, want A 0", answer(res))
	}
}

// A refusal keeps the fraction earned so far: a client that retries faster than one token still gets its tokens.
func TestBR021_FastPolling(t *testing.T) {
	k := key{rule: driver.NewBucket(1, second).WithBurst(1)}
	for at, i := time.Duration(0), 0; at <= 12*second; at, i = at+600*time.Millisecond, i+1 {
		if got, want := k.ask(at, 1).Allowed, i%2 == 0; got != want {
			t.Errorf("every 600ms, at %v: allowed %t, want %t", at, got, want)
		}
	}
	k = key{rule: driver.NewBucket(1, second).WithBurst(1)}
	if got := k.count(0, 10*time.Millisecond, 10*second); got != 11 {
		t.Errorf("every 10ms for 10s at 1/s: %d allowed, want 11", got)
	}
	// The case allows one more or less; the arithmetic is exact, so the test does not.
	k = key{rule: driver.NewBucket(2, second).WithBurst(1)}
	if got := k.count(0, time.Millisecond, 30*second); got != 1+2*30 {
		t.Errorf("every 1ms for 30s at 2/s: %d allowed, want %d", got, 1+2*30)
	}
}

// Refusals consume nothing and leave the state as it was. The slots of the case come with them.
func TestBR039_RefusedRequestsChangeNothing(t *testing.T) {
	k := key{rule: driver.NewBucket(1, second).WithBurst(5)}
	if got := k.count(0, 1, 4); got != 5 {
		t.Fatalf("%d of 5 allowed", got)
	}
	before := k.state
	if got := k.count(0, 1, 999); got != 0 {
		t.Errorf("%d allowed of an empty bucket", got)
	}
	if k.state != before {
		t.Errorf("refusals changed %+v to %+v", before, k.state)
	}
	k.play(t, ask{second, 1, "A 0"})
}

// The rule is not in the state: a smaller burst cuts at once, a larger one fills at the rate and not at once. The zero
// of the case's chain 30 -> 0 -> 150 is an error when the rule is built, so it cannot be in force.
func TestBR042_LimitChangedUnderALiveKey(t *testing.T) {
	rule := driver.NewBucket(10, second)
	k := key{rule: rule.WithBurst(100)}
	k.play(t, ask{0, 20, "A 80"})
	k.rule = rule.WithBurst(10)
	k.play(t, ask{0, 1, "A 9"})
	k.rule = rule.WithBurst(100)
	k.play(t, ask{0, 1, "A 8"}, ask{second, 1, "A 17"})
	if k.rule = rule.WithBurst(0); k.rule.Validate() == nil {
		t.Error("burst 0 is accepted")
	}
	k.rule = rule.WithBurst(150)
	k.play(t, ask{second, 1, "A 16"})
}

// A read alone, or a refusal, must not write a cut down: only what is taken is taken under today's rule.
func TestBR042_RefusalUnderASmallerBurstCutsNothing(t *testing.T) {
	rule := driver.NewBucket(10, second)
	k := key{rule: rule.WithBurst(100)}
	k.play(t, ask{0, 20, "A 80"})
	k.rule = rule.WithBurst(10)
	k.play(t, ask{0, 0, "A 10"}, ask{0, 11, "D 10 never"})
	k.rule = rule.WithBurst(100)
	k.play(t, ask{0, 1, "A 79"})
}

// A reload with the same numbers changes nothing. One that raises the burst gives no tokens: refused until a refill,
// where the case expects an admission at once.
func TestBR044_ReloadHandsOutNothing(t *testing.T) {
	k := key{rule: driver.NewBucket(1, time.Minute).WithBurst(5)}
	if got := k.count(0, 1, 4); got != 5 {
		t.Fatalf("%d of 5 allowed", got)
	}
	for range 20 {
		k.rule = driver.NewBucket(1, time.Minute).WithBurst(5)
		k.play(t, ask{0, 1, "D 0 60s"})
	}
	k.rule = driver.NewBucket(1, time.Minute).WithBurst(50)
	k.play(t,
		ask{0, 1, "D 0 60s"},
		ask{59 * second, 1, "D 0 1s"},
		ask{60 * second, 1, "A 0"},
	)
}
