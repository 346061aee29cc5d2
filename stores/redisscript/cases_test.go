package redisscript

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
)

// Reported faults (BR: a bug report elsewhere), as far as they concern the script and the store. Where the gate turns a wait into
// seconds, the wait itself is checked here.

// admits checks a decision.
func admits(t *testing.T, what string, r driver.Result, allowed bool, remaining int) {
	t.Helper()
	if r.Allowed != allowed || r.Remaining != remaining {
		t.Errorf("%s: allowed %v, remaining %d; want %v, %d", what, r.Allowed, r.Remaining, allowed, remaining)
	}
}

// life returns how long a key lives beyond the hour of tests, in ms.
func life(t *testing.T, srv *redistest.Server, key string) int64 {
	t.Helper()
	return do(t, srv, "PTTL", key).(int64) - hour
}

// noImmortals fails if a key has no expiry.
func noImmortals(t *testing.T, srv *redistest.Server) {
	t.Helper()
	keys := do(t, srv, "KEYS", "*").([]any)
	for _, key := range keys {
		if ttl := do(t, srv, "PTTL", key.(string)).(int64); ttl < 0 {
			t.Errorf("key %v: PTTL %d", key, ttl)
		}
	}
	if len(keys) == 0 {
		t.Error("there are no keys")
	}
}

func TestBR001_ExpiryOfASmallFastBucket(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	s, key, rule := openStore(t, srv.Addr()), subject(t, ""), bucket(3, time.Second, 1)
	admits(t, "first", one(t, s, at(0), key, rule, 1), true, 0)
	if got := life(t, srv, s.KeyName("p", key, rule)); got < -5000 || got > 335 {
		t.Errorf("the key lives %d ms more", got)
	}
	r := one(t, s, at(0.05), key, rule, 1)
	admits(t, "second", r, false, 0)
	equal(t, "wait", r.RetryAfter, 283334*time.Microsecond)

	// And by the server's own clock.
	key += "now"
	admits(t, "real", one(t, s, time.Time{}, key, bucket(1, time.Minute, 1), 1), true, 0)
	if ttl := do(t, srv, "PTTL", s.KeyName("p", key, rule)).(int64); ttl <= 40_000 || ttl > 60_002 {
		t.Errorf("PTTL %d", ttl)
	}
}

func TestBR002_ExpiryIsAWholeNumber(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	s := openStore(t, srv.Addr())
	for i, c := range []struct {
		rule driver.Rule
		cost int
		ms   int64
	}{
		{bucket(7, time.Second, 3), 3, 429},
		{bucket(7, time.Second, 3), 1, 143},
		{bucket(5, 2*time.Second, 4), 4, 1600}, // 2.5 per second
		{bucket(999_983, 86_399*time.Second, 3), 1, 87},
	} {
		key := subject(t, fmt.Sprint(i))
		if r := one(t, s, at(0), key, c.rule, c.cost); !r.Allowed {
			t.Errorf("%v: refused", c.rule)
		}
		if got := life(t, srv, s.KeyName("p", key, c.rule)); got < c.ms-5000 || got > c.ms+2 {
			t.Errorf("%v: the key lives %d ms more, want %d", c.rule, got, c.ms)
		}
	}
	noImmortals(t, srv)
}

func TestBR004_NoImmortalKeys(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	s := openStore(t, srv.Addr())
	longest := bucket(1, 31*day, driver.MaxCount) // a life of 5.4e18 ms with the debt; the largest there is
	if r := one(t, s, at(0), subject(t, "a"), longest, driver.MaxCount); !r.Allowed {
		t.Error("refused")
	}
	debt := driver.Change{Kind: driver.Settle, Policy: "p", Subject: subject(t, "a"), Rule: longest, Amount: math.MaxInt}
	if err := s.Apply(t.Context(), at(0), []driver.Change{debt}); err != nil {
		t.Error(err)
	}
	equal(t, "debt", one(t, s, at(0), subject(t, "a"), longest, 1).RetryAfter, time.Duration(math.MaxInt64))
	for _, rule := range []driver.Rule{bucket(1, time.Second, 1e15), bucket(0, time.Second, 1), bucket(1, 1000*day, 1)} {
		batch := entry(claimOn(subject(t, "b"), rule, 1))
		if err := s.Decide(t.Context(), at(0), batch); err != nil || batch[0].Err == nil {
			t.Errorf("%v: %v, %v", rule, err, batch[0].Err)
		}
	}
	equal(t, "keys", do(t, srv, "DBSIZE"), int64(1))
	noImmortals(t, srv)
}

func TestBR005_OnePerDay(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	s, key, rule := openStore(t, srv.Addr()), subject(t, ""), bucket(1, day, 1)
	admits(t, "0", one(t, s, at(0), key, rule, 1), true, 0)
	if got := life(t, srv, s.KeyName("p", key, rule)); got < 86_395_000 || got > 86_400_002 {
		t.Errorf("the key lives %d ms more", got)
	}
	for _, c := range []struct{ at, wait float64 }{{43200, 43200}, {86399, 1}} {
		r := one(t, s, at(c.at), key, rule, 1)
		admits(t, fmt.Sprint(c.at), r, false, 0)
		equal(t, "wait", r.RetryAfter, time.Duration(c.wait)*time.Second)
	}
	admits(t, "86400", one(t, s, at(86400), key, rule, 1), true, 0)
}

func TestBR006_LargeRates(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	s := openStore(t, srv.Addr())
	for _, rate := range []int{2000, 1e6, 1e7, 1e9} {
		key, rule := subject(t, fmt.Sprint(rate)), bucket(rate, time.Second, 10)
		batch := make([]driver.Entry, 1000)
		for i := range batch {
			batch[i] = entry(claimOn(key, rule, 1))[0]
		}
		if err := s.Decide(t.Context(), at(0), batch); err != nil {
			t.Fatal(err)
		}
		for i := range batch {
			admits(t, fmt.Sprint(rate, " request ", i), batch[i].Claims[0].Result, i < 10, max(0, 9-i))
		}
		equal(t, "state exists", do(t, srv, "EXISTS", s.KeyName("p", key, rule)), int64(1))
		if rate == 1e6 {
			admits(t, "after 1 ms", one(t, s, at(0.001), key, rule, 10), true, 0)
			admits(t, "one more", one(t, s, at(0.001), key, rule, 1), false, 0)
		}
	}
}

func TestBR008_LongIdle(t *testing.T) {
	t.Parallel()
	s := openStore(t, redistest.Start(t, redistest.Single).Addr())
	rule := bucket(1e6, time.Second, 1e6)
	// The clock ends in 2112, so 140 years stand for the 290 of the case.
	for _, idle := range []time.Duration{12 * time.Hour, 365 * day, 140 * 365 * day} {
		key, start := subject(t, idle.String()), time.Unix(1000, 0)
		admits(t, "drain", one(t, s, start, key, rule, 1e6), true, 0)
		admits(t, idle.String(), one(t, s, start.Add(idle), key, rule, 1), true, 1e6-1)
	}
}

func TestBR013_CallersClocksDoNotMatter(t *testing.T) {
	t.Parallel()
	s, key, rule := openStore(t, redistest.Start(t, redistest.Single).Addr()), subject(t, ""), bucket(2, time.Second, 4)
	for i, seconds := range []float64{0, 0, 0, 0, -10, 0, 0, 0, 0} {
		admits(t, fmt.Sprint("request ", i), one(t, s, at(seconds), key, rule, 1), i < 4, max(0, 3-i))
	}
	// Without a given time it is the server's.
	admits(t, "server's clock", one(t, s, time.Time{}, key, rule, 4), true, 0) // years later
}

func TestBR014_ClockStepsBack(t *testing.T) {
	t.Parallel()
	s, key, rule := openStore(t, redistest.Start(t, redistest.Single).Addr()), subject(t, ""), bucket(10, time.Second, 10)
	for i, seconds := range []float64{0, -2, -3600, 0} {
		r := one(t, s, at(seconds), key, rule, 1)
		admits(t, fmt.Sprint("at ", seconds), r, true, 9-i)
		if r.ResetAfter > time.Second {
			t.Errorf("reset after %v", r.ResetAfter)
		}
	}
}

func TestBR016_CostAboveTheBucket(t *testing.T) {
	t.Parallel()
	s, key, rule := openStore(t, redistest.Start(t, redistest.Single).Addr()), subject(t, ""), bucket(1, time.Second, 5)
	r := one(t, s, at(0), key, rule, 6)
	admits(t, "6", r, false, 5)
	equal(t, "reason", r.Reason, driver.ReasonCost)
	equal(t, "wait", r.RetryAfter, time.Duration(0))
	admits(t, "5", one(t, s, at(0), key, rule, 5), true, 0)
	r = one(t, s, at(0), key, rule, 1)
	admits(t, "1", r, false, 0)
	equal(t, "wait", r.RetryAfter, time.Second)
}

func TestBR018_CostZeroIsARead(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	s, key, rule := openStore(t, srv.Addr()), subject(t, ""), bucket(1, time.Second, 5)
	name := s.KeyName("p", key, rule)
	for range 3 {
		admits(t, "new", one(t, s, at(0), key, rule, 0), true, 5)
	}
	equal(t, "no key", do(t, srv, "EXISTS", name), int64(0))
	admits(t, "1", one(t, s, at(0), key, rule, 1), true, 4)
	state, expiry := do(t, srv, "GET", name), do(t, srv, "PEXPIRETIME", name)
	admits(t, "read", one(t, s, at(0), key, rule, 0), true, 4)
	batch := append(entry(claimOn(key, rule, 0)), entry(claimOn(key, rule, 0), claimOn(key+"other", rule, 0))...)
	if err := s.Decide(t.Context(), at(0.5), batch); err != nil {
		t.Fatal(err)
	}
	admits(t, "read in a pack", batch[1].Claims[0].Result, true, 4)
	equal(t, "state", do(t, srv, "GET", name), state)
	equal(t, "expiry", do(t, srv, "PEXPIRETIME", name), expiry)
	equal(t, "keys", do(t, srv, "DBSIZE"), int64(1))
	admits(t, "drain", one(t, s, at(0), key, rule, 4), true, 0)
	admits(t, "read of nothing", one(t, s, at(0), key, rule, 0), true, 0)
}

func TestBR019_NegativeCost(t *testing.T) {
	t.Parallel()
	s, key, rule := openStore(t, redistest.Start(t, redistest.Single).Addr()), subject(t, ""), bucket(1, time.Second, 5)
	for _, cost := range []int{-3, math.MinInt64} {
		batch := entry(claimOn(key, rule, cost))
		if err := s.Decide(t.Context(), at(0), batch); err != nil || batch[0].Err == nil {
			t.Errorf("cost %d: %v, %v", cost, err, batch[0].Err)
		}
	}
	for i := range 10 {
		admits(t, fmt.Sprint("request ", i), one(t, s, at(0), key, rule, 1), i < 5, max(0, 4-i))
	}
}

func TestBR021_FastPolling(t *testing.T) {
	t.Parallel()
	s := openStore(t, redistest.Start(t, redistest.Single).Addr())
	poll := func(name string, rule driver.Rule, every time.Duration, n int) (admitted int) {
		for i := range n {
			if one(t, s, at(0).Add(time.Duration(i)*every), subject(t, name), rule, 1).Allowed {
				admitted++
				if name == "600ms" && i%2 == 1 {
					t.Errorf("request %d admitted", i)
				}
			}
		}
		return admitted
	}
	equal(t, "every 600 ms", poll("600ms", bucket(1, time.Second, 1), 600*time.Millisecond, 21), 11)
	equal(t, "every 10 ms", poll("10ms", bucket(1, time.Second, 1), 10*time.Millisecond, 1001), 11)
	equal(t, "every ms at 2/s", poll("1ms", bucket(2, time.Second, 1), time.Millisecond, 2001), 5)
}

func TestBR026_ExpiryIsNoReset(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	s, key, rule := openStore(t, srv.Addr()), subject(t, ""), bucket(1, time.Second, 10)
	name := s.KeyName("p", key, rule)
	admits(t, "drain", one(t, s, at(0), key, rule, 10), true, 0)
	if got := life(t, srv, name); got < 5_000 || got > 10_002 {
		t.Errorf("the key lives %d ms more", got)
	}
	admits(t, "9.9 s later", one(t, s, at(9.9), key, rule, 10), false, 9)
	admits(t, "after a step forward", one(t, s, at(5), key, rule, 10), false, 5)
	admits(t, "10 s later", one(t, s, at(10), key, rule, 10), true, 0)

	// By the real clock: a drained key lives as long as it matters.
	key += "now"
	admits(t, "drain", one(t, s, time.Time{}, key, rule, 10), true, 0)
	if ttl := do(t, srv, "PTTL", s.KeyName("p", key, rule)).(int64); ttl < 5_000 || ttl > 10_002 {
		t.Errorf("PTTL %d", ttl)
	}
}

func TestBR036_UnitsOfExpiry(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	s := openStore(t, srv.Addr())
	for _, period := range []time.Duration{time.Minute, time.Hour} {
		key, rule := subject(t, period.String()), bucket(60, period, 60)
		one(t, s, time.Time{}, key, rule, 60)
		ttl, ms := do(t, srv, "PTTL", s.KeyName("p", key, rule)).(int64), period.Milliseconds()
		if ttl < ms-20_000 || ttl > ms+2 {
			t.Errorf("%v: PTTL %d", period, ttl)
		}
	}
}

func TestBR040_ExactlyTheLimit(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	var stores []*Store
	for range 4 {
		stores = append(stores, openStore(t, srv.Addr()))
	}
	rule := bucket(25, day, 25)
	for run := range 10 {
		var admitted atomic.Int64
		var wg sync.WaitGroup
		barrier := make(chan struct{})
		for i := range 500 {
			wg.Go(func() {
				<-barrier
				if one(t, stores[i%4], time.Time{}, subject(t, fmt.Sprint(run)), rule, 1).Allowed {
					admitted.Add(1)
				}
			})
		}
		close(barrier)
		wg.Wait()
		equal(t, "admitted", admitted.Load(), 25)
	}
}
