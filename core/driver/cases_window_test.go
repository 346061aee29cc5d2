package driver_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// window is one key's window with a clock that counts from an edge of every window up to an hour, and of days in UTC.
type window struct {
	rule  driver.Rule
	state driver.Window
}

// midnight is that of 1 October 2025, in UTC, in microseconds.
const midnight = int64(1_759_276_800_000_000)

func fixed(limit int, d time.Duration) *window {
	return &window{rule: driver.NewWindow(driver.KindFixed, limit, d)}
}

func slidingBy(limit int, d time.Duration) *window {
	return &window{rule: driver.NewWindow(driver.KindSliding, limit, d)}
}

// ask makes one request and takes what it may take, exactly as a store does.
func (w *window) ask(at time.Duration, cost int) driver.Result {
	level := w.state.Read(w.rule, midnight+at.Microseconds())
	taken := cost > 0 && level.Fits(w.rule, cost)
	res := level.Result(w.rule, cost, taken)
	if taken {
		w.state = level.Take(cost)
	}
	return res
}

// play runs a script; see answer for what its lines want.
func (w *window) play(t *testing.T, script ...ask) {
	t.Helper()
	for _, line := range script {
		if got := answer(w.ask(line.time, line.cost)); got != line.want {
			t.Errorf("%v at %v, cost %d: %s, want %s", w.rule, line.time, line.cost, got, line.want)
		}
	}
}

// count returns how many of n requests of cost 1 at a time are allowed.
func (w *window) count(at time.Duration, n int) int {
	allowed := 0
	for range n {
		if w.ask(at, 1).Allowed {
			allowed++
		}
	}
	return allowed
}

// Long idle times, also across the whole clock.
func TestBR008_LongIdlePeriodOfWindows(t *testing.T) {
	for _, idle := range []time.Duration{12 * time.Hour, 365 * day, 80 * 365 * day} {
		for _, w := range []*window{slidingBy(1e6, second), fixed(1e6, second), slidingBy(1e9, 6*time.Hour)} {
			limit := w.rule.Capacity()
			w.play(t, ask{0, limit, "A 0"})
			if res := w.ask(idle, 1); !res.Allowed || res.Remaining != limit-1 {
				t.Errorf("%v after %v: %+v", w.rule, idle, res)
			}
		}
	}
}

// What never fits has its own reason; what fits only after the change of the window waits for it.
func TestBR016_CostLargerThanTheWindow(t *testing.T) {
	for _, w := range []*window{fixed(5, 10*second), slidingBy(5, 10*second)} {
		for _, cost := range []int{6, 2e9, math.MaxInt} {
			if res := w.ask(4*second, cost); res.Allowed || res.Reason.String() != "cost_exceeds_limit" || res.RetryAfter != 0 || res.Remaining != 5 {
				t.Errorf("%v: cost %d of 5: %+v", w.rule, cost, res)
			}
		}
		w.play(t, ask{4 * second, 5, "A 0"})
		want := "D 0 6s"
		if w.rule.Kind() == driver.KindSliding {
			want = "D 0 8s" // two seconds into the next window a fifth of what was taken has slid out
		}
		w.play(t, ask{4 * second, 1, want})
	}
	// Also where a limit that was lowered left more than the limit: the largest cost must not wrap.
	w := fixed(500, 10*second)
	w.play(t, ask{0, 400, "A 100"})
	w.rule = driver.NewWindow(driver.KindFixed, 5, 10*second)
	w.play(t, ask{0, math.MaxInt, "D 0 never"}, ask{0, 1, "D 0 10s"})
}

func TestBR018_CostZeroOfAWindowIsARead(t *testing.T) {
	for _, w := range []*window{fixed(5, 10*second), slidingBy(5, 10*second)} {
		w.play(t, ask{0, 0, "A 5"}, ask{0, 0, "A 5"})
		if w.state != (driver.Window{}) {
			t.Errorf("%v: reads created %+v", w.rule, w.state)
		}
		w.play(t, ask{0, 5, "A 0"}, ask{second, 0, "A 0"})
		w.rule = driver.NewWindow(w.rule.Kind(), 2, 10*second)
		w.play(t, ask{second, 0, "A 0"}) // 3 above the limit
	}
}

// A fixed window lets two quotas pass around its edge, which is documented; a sliding one does not.
func TestBR027_BurstAtTheEdge(t *testing.T) {
	f, s := fixed(10, time.Minute), slidingBy(10, time.Minute)
	const before, after = 59900 * time.Millisecond, 60100 * time.Millisecond
	if got := f.count(before, 10) + f.count(after, 10); got != 20 {
		t.Errorf("fixed: %d around the edge, want 20", got)
	}
	if got := s.count(before, 10); got != 10 {
		t.Errorf("sliding: %d before the edge, want 10", got)
	}
	if got := s.count(after, 10); got != 0 {
		t.Errorf("sliding: %d after the edge, want 0", got)
	}
	got := 0
	for x := 1; x <= 60; x++ {
		if got += s.count(time.Duration(60+x)*second, 1); got > x/6 {
			t.Errorf("sliding: %d within %d s of the edge, want %d at most", got, x, x/6)
		}
	}
}

// Refused requests are not counted, so steady overload does not keep a window full.
func TestBR028_SteadyOverload(t *testing.T) {
	w, allowed := slidingBy(5, 10*second), ""
	for s := range 40 {
		if w.ask(time.Duration(s)*second, 1).Allowed {
			allowed += fmt.Sprint(" ", s)
		}
	}
	// The case gives the first two windows; 4 of 5 in each of the others are what the rule says.
	if want := " 0 1 2 3 4 12 14 16 18 20 23 25 28 30 33 35 38"; allowed != want {
		t.Errorf("allowed at%s, want%s", allowed, want)
	}
}

// A probe every ten seconds does not keep a window of thirty alive.
func TestBR029_SlowPoller(t *testing.T) {
	w := fixed(20, 30*second)
	if got := w.count(0, 20); got != 20 {
		t.Fatalf("%d of 20", got)
	}
	for s := 10; s <= 300; s += 10 {
		if got := w.ask(time.Duration(s)*second, 1).Allowed; got != (s >= 30) {
			t.Errorf("at %d s: allowed %t", s, got)
		}
	}
}

// A weighted window has no entries that could be removed too late, or meet: what is old stops counting by itself, and
// requests of one microsecond are counted one by one. (The case's exact log would admit at once after 2.05 s.)
func TestBR032_BR033_OldAndEqualTimes(t *testing.T) {
	w := slidingBy(5, 2*second)
	if got := w.count(0, 6); got != 5 {
		t.Errorf("%d of 5", got)
	}
	if got := w.count(2050*time.Millisecond, 6); got != 0 {
		t.Errorf("%d at 2.05 s, with 97.5 %% of the window before in sight, want 0", got)
	}
	if got := w.count(4*second, 6); got != 5 {
		t.Errorf("%d two windows later, want 5", got)
	}
	if got := slidingBy(30, time.Minute).count(second, 100); got != 30 {
		t.Errorf("%d of 100 in one microsecond, want 30", got)
	}
}

// Windows below a second, and of no whole number of them.
func TestBR037_ShortWindows(t *testing.T) {
	for _, d := range []time.Duration{time.Millisecond, 500 * time.Millisecond, 1500 * time.Millisecond, 2700 * time.Millisecond} {
		for _, w := range []*window{fixed(3, d), slidingBy(3, d)} {
			if err := w.rule.Validate(); err != nil {
				t.Fatal(err)
			}
			if got := w.count(0, 4); got != 3 {
				t.Errorf("%v: %d of 4 at once, want 3", w.rule, got)
			}
			if res := w.ask(0, 0); res.ResetAfter > d || res.ResetAfter <= 0 {
				t.Errorf("%v: reset after %v", w.rule, res.ResetAfter)
			}
			later := d
			if w.rule.Kind() == driver.KindSliding {
				later = 2 * d
			}
			if got := w.count(later, 3); got != 3 {
				t.Errorf("%v: %d of 3 after %v", w.rule, got, later)
			}
		}
	}
}

func TestBR039_RefusedRequestsDoNotCount(t *testing.T) {
	w := fixed(5, 10*second)
	w.count(0, 5)
	before := w.state
	if got := w.count(0, 1000); got != 0 || w.state != before {
		t.Errorf("%d allowed, %+v became %+v", got, before, w.state)
	}
	w.rule = driver.NewWindow(driver.KindFixed, 500, 10*second)
	w.play(t, ask{5 * second, 1, "A 494"})
}

// Limit, period and kind of a window change under its counts. The zero of the case's chain is no limit that could be set.
func TestBR042_WindowChangedUnderALiveKey(t *testing.T) {
	w := fixed(100, time.Minute)
	w.play(t, ask{0, 50, "A 50"})
	w.rule = driver.NewWindow(driver.KindFixed, 30, time.Minute)
	w.play(t, ask{0, 1, "D 0 60s"})
	w.rule = driver.NewWindow(driver.KindFixed, 80, time.Minute)
	w.play(t, ask{0, 1, "A 29"})
	w.rule = driver.NewWindow(driver.KindFixed, 0, time.Minute)
	if w.rule.Validate() == nil {
		t.Error("limit 0 is accepted")
	}
	w.rule = driver.NewWindow(driver.KindSliding, 150, time.Minute)
	w.play(t, ask{second, 0, "A 99"}, ask{90 * second, 0, "A 124"}) // half of 51 overlaps
	w.rule = driver.NewWindow(driver.KindFixed, 150, time.Hour)
	w.play(t, ask{90 * second, 0, "A 99"})
	w.rule = driver.NewWindow(driver.KindDaily, 150, 0)
	w.play(t, ask{2 * time.Hour, 0, "A 99"}, ask{day, 0, "A 150"})
}

func TestBR044_ReloadOfAWindowHandsOutNothing(t *testing.T) {
	w := fixed(5, time.Minute)
	w.count(0, 5)
	for i := range 20 {
		w.rule = driver.NewWindow(driver.KindFixed+driver.Kind(i%2), 5, time.Minute)
		if w.ask(0, 1).Allowed {
			t.Errorf("%v: allowed after reload %d", w.rule, i)
		}
	}
}

// The retry is the rest of the window, to the second that a header tells.
func TestBR152_RetryIsTheRest(t *testing.T) {
	w := fixed(10, time.Minute)
	w.count(0, 10)
	w.play(t, ask{20 * second, 1, "D 0 40s"}, ask{50 * second, 1, "D 0 10s"}, ask{59200 * time.Millisecond, 1, "D 0 1s"})
}

// A client that waits as many seconds as it was told, which is never less than needed, is admitted.
func TestBR153_WaitingAsToldIsEnough(t *testing.T) {
	d := seeded(31)
	for _, w := range []*window{
		fixed(10, second), fixed(3, second), fixed(7, time.Minute), fixed(1, time.Hour), slidingBy(10, second), slidingBy(3, second),
		slidingBy(7, time.Minute), slidingBy(1, time.Hour), {rule: daily("Europe/Berlin")}, {rule: monthly("America/New_York")},
	} {
		now := time.Duration(0)
		for range 50 {
			now += time.Duration(d.below(3e9)) * time.Microsecond
			for w.ask(now, 1).Allowed {
				continue
			}
			cost := 1 + int(d.below(int64(w.rule.Capacity())))
			res := w.ask(now, cost)
			seconds := (res.RetryAfter + second - 1).Truncate(second)
			if res.Allowed || seconds < second || seconds > res.RetryAfter+second {
				t.Fatalf("%v: cost %d of a full window: %+v", w.rule, cost, res)
			}
			if w.ask(now+res.RetryAfter-time.Microsecond, cost).Allowed {
				t.Fatalf("%v: cost %d fits before the retry of %v", w.rule, cost, res.RetryAfter)
			}
			if now += seconds; !w.ask(now, cost).Allowed {
				t.Fatalf("%v: cost %d refused after waiting %v as told (%v)", w.rule, cost, seconds, res.RetryAfter)
			}
		}
	}
}

// A client that polls is told the same instant every time, not one that moves away from it. (The report is about a log of hits,
// which says 40 s; a weighted window lets the first two fade instead: half of them is gone at 90 s.)
func TestBR038_TheWaitGrowsShorter(t *testing.T) {
	w := slidingBy(2, time.Minute)
	if w.count(0, 1)+w.count(10*time.Second, 1) != 2 {
		t.Fatal("two of two")
	}
	for at := 20 * time.Second; at < 90*time.Second; at += 5 * time.Second {
		if res := w.ask(at, 1); res.Allowed || at+res.RetryAfter != 90*time.Second {
			t.Errorf("at %v: allowed %v, to come back in %v", at, res.Allowed, res.RetryAfter)
		}
	}
	if !w.ask(90*time.Second, 1).Allowed {
		t.Error("refused after the wait")
	}
}
