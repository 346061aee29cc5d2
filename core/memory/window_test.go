package memory

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // the zones of the tests, whatever the machine has

	"github.com/headgate-go/headgate/core/driver"
)

func fixed(n int, d time.Duration) driver.Rule   { return driver.NewWindow(driver.KindFixed, n, d) }
func sliding(n int, d time.Duration) driver.Rule { return driver.NewWindow(driver.KindSliding, n, d) }

// ask decides one claim.
func ask(t testing.TB, s *Store, subject string, rule driver.Rule, cost int, now time.Time) driver.Result {
	t.Helper()
	batch := []driver.Entry{{Claims: []driver.Claim{{Policy: "policy", Subject: subject, Rule: rule, Cost: cost}}}}
	if err := s.Decide(context.Background(), now, batch); err != nil || batch[0].Err != nil {
		t.Fatalf("Decide: %v, Err %v", err, batch[0].Err)
	}
	return batch[0].Claims[0].Result
}

// The clock of a bubble begins at midnight of 1 January 2000: an edge of every window used here. A window's key is there as
// long as its counts matter, a sliding one's through the next window, and three seconds later at most it is gone.
func TestSweepOfWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		for i := range 100 {
			take(t, s, "fixed"+strconv.Itoa(i), fixed(1+i%7, time.Minute), time.Time{})
			take(t, s, "sliding"+strconv.Itoa(i), sliding(1+i%7, time.Minute), time.Time{})
			take(t, s, "day"+strconv.Itoa(i), driver.NewWindow(driver.KindDaily, 1, 0), time.Time{})
		}
		pass(time.Minute - time.Millisecond)
		keys(t, s, 300)
		if take(t, s, "fixed0", fixed(1, time.Minute), time.Time{}) {
			t.Error("a window ended early")
		}
		pass(3 * time.Second)
		keys(t, s, 200)
		if take(t, s, "sliding0", sliding(1, time.Minute), time.Time{}) {
			t.Error("a sliding window forgot the one before")
		}
		pass(time.Minute)
		keys(t, s, 100)
		pass(24 * time.Hour)
		keys(t, s, 0)
		if planned(s) {
			t.Error("a timer runs although all keys are gone")
		}
	})
}

// A rule that changes from fixed to sliding makes a key live longer, and one from a day to a minute shorter, with the next
// admission.
func TestSweepFollowsTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		take(t, s, "longer", fixed(5, time.Minute), time.Time{})
		take(t, s, "longer", sliding(5, time.Minute), time.Time{})
		take(t, s, "shorter", driver.NewWindow(driver.KindDaily, 5, 0), time.Time{})
		take(t, s, "shorter", fixed(5, 10*time.Second), time.Time{})
		pass(13 * time.Second)
		keys(t, s, 1)
		pass(60 * time.Second)
		keys(t, s, 1)
		pass(60 * time.Second)
		keys(t, s, 0)
	})
}

// BR029 on the store's own clock: polling a full window does not keep it.
func TestBR029_PollingDoesNotKeepAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rule := New(), fixed(20, 30*time.Second)
		ask(t, s, "k", rule, 20, time.Time{})
		for seconds := 10; seconds <= 300; seconds += 10 {
			pass(10 * time.Second)
			if got := take(t, s, "k", rule, time.Time{}); got != (seconds >= 30) {
				t.Errorf("at %d s: allowed %t", seconds, got)
			}
		}
	})
}

// All windows of a rule end together, so of a full store's keys nothing but their counts says whose to give up: a flood of
// invented keys must not hand the attacker a new window.
func TestFloodDoesNotRenewTheAttackersWindow(t *testing.T) {
	for _, rule := range []driver.Rule{
		fixed(10, time.Minute), sliding(10, time.Minute), driver.NewWindow(driver.KindDaily, 10, 0), fixed(10, 10*time.Millisecond),
	} {
		const bound = 1000
		s, now := New(WithMaxKeys(bound)), time.Date(2031, 3, 1, 12, 0, 0, 0, time.UTC)
		if r := ask(t, s, "attacker", rule, 10, now); !r.Allowed {
			t.Fatal("a new key was refused")
		}
		for i := range 3 * bound {
			ask(t, s, "invented"+strconv.Itoa(i), rule, 1, now)
			if i%97 == 0 && ask(t, s, "attacker", rule, 1, now).Allowed {
				t.Fatalf("%v: after %d invented keys the attacker has a new window", rule, i)
			}
		}
		if st := s.Stats(); st.Evictions == 0 || st.Keys > bound {
			t.Errorf("%v: %+v", rule, st)
		}
	}
}

// A settlement goes by the window that holds the state's own time when the clock stepped back over an edge.
func TestReceiptsWhileTheClockIsBehind(t *testing.T) {
	s, rule := New(), fixed(10, time.Minute)
	noon := time.Date(2031, 3, 1, 12, 0, 0, 0, time.UTC)
	old := ask(t, s, "k", rule, 3, noon.Add(59*time.Second)).Receipt
	running := ask(t, s, "k", rule, 5, noon.Add(61*time.Second)).Receipt
	back := noon.Add(59 * time.Second)
	for _, v := range []struct {
		receipt driver.Receipt
		left    int
	}{{old, 5}, {running, 6}, {driver.Receipt{}, 7}, {driver.Receipt{Start: running.Start, Unit: 1}, 7}} {
		change := []driver.Change{{Kind: driver.Settle, Policy: "policy", Subject: "k", Rule: rule, Amount: -1, Receipt: v.receipt}}
		if err := s.Apply(context.Background(), back, change); err != nil {
			t.Fatal(err)
		}
		if r := ask(t, s, "k", rule, 0, back); r.Remaining != v.left || r.Receipt != running {
			t.Errorf("%+v: %+v, want %d left of the window of %+v", v.receipt, r, v.left, running)
		}
	}
}

// BR009 and the clock's ends: the largest counts in windows that begin at the first and end after the last microsecond.
func TestBR009_LargestWindows(t *testing.T) {
	for _, rule := range []driver.Rule{
		fixed(driver.MaxCount, driver.MaxPeriod), sliding(driver.MaxCount, driver.MaxPeriod), sliding(driver.MaxCount, time.Millisecond),
		driver.NewWindow(driver.KindMonthly, driver.MaxCount, 0),
	} {
		for _, now := range []time.Time{time.Unix(0, 1), time.UnixMicro(driver.MaxMicros), time.Unix(1<<40, 0), time.Unix(-1, 0)} {
			s := New()
			if r := ask(t, s, "k", rule, driver.MaxCount, now); !r.Allowed || r.Remaining != 0 {
				t.Errorf("%v at %v: %+v", rule, now, r)
			}
			change := []driver.Change{{Kind: driver.Settle, Policy: "policy", Subject: "k", Rule: rule, Amount: driver.MaxCount}}
			if err := s.Apply(context.Background(), now, change); err != nil {
				t.Fatal(err)
			}
			if r := ask(t, s, "k", rule, 1, now); r.Allowed || r.RetryAfter <= 0 {
				t.Errorf("%v at %v, full: %+v", rule, now, r)
			}
			keys(t, s, 1)
		}
	}
}
