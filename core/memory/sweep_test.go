package memory

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// take decides one claim of cost 1 and says whether it was admitted.
func take(t testing.TB, s *Store, subject string, rule driver.Rule, now time.Time) bool {
	t.Helper()
	batch := []driver.Entry{{Claims: []driver.Claim{{Policy: "policy", Subject: subject, Rule: rule, Cost: 1}}}}
	if err := s.Decide(context.Background(), now, batch); err != nil || batch[0].Err != nil {
		t.Fatalf("Decide: %v, Err %v", err, batch[0].Err)
	}
	return batch[0].Claims[0].Result.Allowed
}

func keys(t testing.TB, s *Store, want int) {
	t.Helper()
	if got := s.Stats().Keys; got != want {
		t.Errorf("%d keys, want %d", got, want)
	}
}

// planned is whether a sweep is to come, in which case a timer runs.
func planned(s *Store) bool { return s.wake.Load() != never }

// pass lets d pass in a bubble, and whatever is due in it happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestSweepDropsIdleKeysAndEndsWithTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		if planned(s) {
			t.Error("a timer runs in a store without keys")
		}
		second := driver.NewBucket(5, time.Second)
		for i := range 1000 {
			take(t, s, strconv.Itoa(i), second, time.Time{})
		}
		keys(t, s, 1000)
		pass(199 * time.Millisecond) // one token of 5/s takes 200
		keys(t, s, 1000)
		pass(1800 * time.Millisecond)
		keys(t, s, 0)
		if planned(s) {
			t.Error("a timer runs although all keys are gone")
		}
		for i := range s.shards {
			if s.shards[i].slots != nil {
				t.Error("a table is kept for no key")
			}
		}
		// And again: the timer can be armed a second time.
		take(t, s, "again", second, time.Time{})
		pass(2 * time.Second)
		keys(t, s, 0)
	})
}

// State must not go before it equals a fresh key, and what is still in use must survive every sweep around it.
func TestSweepKeepsWhatIsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		minute, second := driver.NewBucket(1, time.Minute), driver.NewBucket(100, time.Second)
		for i := range 3000 {
			take(t, s, "minute"+strconv.Itoa(i), minute, time.Time{})
			take(t, s, "second"+strconv.Itoa(i), second, time.Time{})
		}
		for range 58 {
			pass(time.Second)
			take(t, s, "busy", second, time.Time{})
		}
		synctest.Wait()
		if got := s.Stats().Keys; got < 3000 || got > 3001 {
			t.Errorf("%d keys, want 3000 and perhaps the busy one", got)
		}
		for i := range 3000 {
			if take(t, s, "minute"+strconv.Itoa(i), minute, time.Time{}) {
				t.Fatalf("key %d was dropped before its minute was over", i)
			}
		}
		pass(4 * time.Second)
		keys(t, s, 0)
	})
}

// The sweep that waits for a long life is planned anew when a short one comes.
func TestSweepIsPlannedForTheEarliest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		take(t, s, "day", driver.NewBucket(1, 24*time.Hour), time.Time{})
		pass(time.Hour)
		take(t, s, "second", driver.NewBucket(1, time.Second), time.Time{})
		keys(t, s, 2)
		pass(3 * time.Second)
		keys(t, s, 1)
		pass(23 * time.Hour)
		keys(t, s, 0)
		if planned(s) {
			t.Error("a timer runs although all keys are gone")
		}
	})
}

// A key that lives shorter than it was written to (its rule changed) is swept by its new life.
func TestSweepFollowsTheRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		take(t, s, "k", driver.NewBucket(2, 24*time.Hour), time.Time{})
		pass(time.Minute)
		take(t, s, "k", driver.NewBucket(2, 2*time.Second), time.Time{})
		pass(4 * time.Second)
		keys(t, s, 0)
	})
}

// With the time given, one hour is added: the script's clock stands still while the real one runs.
func TestGivenTimeLivesAnHourLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		rule, noon := driver.NewBucket(1, time.Second).WithBurst(1), time.Date(2031, 3, 1, 12, 0, 0, 0, time.UTC)
		take(t, s, "k", rule, noon)
		pass(time.Hour)
		if take(t, s, "k", rule, noon) {
			t.Error("the state of a given time was dropped by the real clock")
		}
		pass(3 * time.Second)
		keys(t, s, 0)
		// Set back, the state waits for the clock that wrote it.
		take(t, s, "k", rule, noon)
		take(t, s, "k", driver.NewBucket(2, time.Second), noon.Add(-2*time.Hour))
		pass(time.Hour)
		keys(t, s, 1)
	})
}

// A settlement can fill a bucket; its key goes like any other, and so does the table it leaves behind.
func TestSweepAfterSettlements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(WithMaxKeys(8000))
		day := driver.NewBucket(5, 24*time.Hour)
		for i := range 8000 {
			take(t, s, strconv.Itoa(i), day, time.Time{})
		}
		size := len(s.shards[0].slots)
		for i := range 7900 {
			if err := s.Apply(context.Background(), time.Time{}, []driver.Change{
				{Kind: driver.Settle, Policy: "policy", Subject: strconv.Itoa(i), Rule: day, Amount: -1}}); err != nil {
				t.Fatal(err)
			}
		}
		pass(3 * time.Second)
		keys(t, s, 100)
		if got := len(s.shards[0].slots); got > size/10 {
			t.Errorf("%d slots for 100 keys", got)
		}
		for i := 7900; i < 8000; i++ {
			batch := []driver.Entry{{Claims: []driver.Claim{{Policy: "policy", Subject: strconv.Itoa(i), Rule: day}}}}
			if err := s.Decide(context.Background(), time.Time{}, batch); err != nil || batch[0].Claims[0].Result.Remaining != 4 {
				t.Fatalf("key %d: %v, %+v", i, err, batch[0].Claims[0].Result)
			}
		}
	})
}

// TestMillionKeysAreSwept: a million keys come and go, and 90 % of the memory with them.
func TestMillionKeysAreSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 1_000_000
		before := heapInUse()
		s := New(WithMaxKeys(2 * n))
		rule := driver.NewBucket(5, time.Second)
		batch := []driver.Entry{{Claims: []driver.Claim{{Policy: "policy", Rule: rule, Cost: 1}}}}
		for i := range n {
			batch[0].Claims[0].Subject = strconv.Itoa(i)
			if err := s.Decide(context.Background(), time.Time{}, batch); err != nil {
				t.Fatal(err)
			}
		}
		keys(t, s, n)
		full := heapInUse() - before
		if perKey := float64(full) / float64(n); perKey > 48 {
			t.Errorf("%.1f bytes per key, want at most 48", perKey)
		}
		pass(2 * time.Second)
		keys(t, s, 0)
		if left := heapInUse() - before; left > full/10 {
			t.Errorf("%d of %d bytes left", left, full)
		}
		if planned(s) {
			t.Error("a timer runs although all keys are gone")
		}
		runtime.KeepAlive(s)
	})
}

// heapInUse is what is really in use, as a signed number for differences.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestCloseStopsTheTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		take(t, s, "k", driver.NewBucket(1, time.Hour), time.Time{})
		if !planned(s) {
			t.Error("no timer runs for a key")
		}
		s.Close()
		if planned(s) || s.timer.Stop() {
			t.Error("a timer runs after Close")
		}
		// A decision that was under way writes nothing and arms nothing any more.
		clk := s.read(time.Time{})
		s.decideOne(&driver.Entry{}, &driver.Claim{Policy: "p", Rule: driver.NewBucket(1, time.Second), Cost: 1}, clk)
		s.decideMany(&driver.Entry{Claims: []driver.Claim{{Rule: driver.NewBucket(1, time.Second), Cost: 1}}}, clk)
		s.decideOne(&driver.Entry{}, &driver.Claim{Policy: "p", Rule: driver.NewWindow(driver.KindFixed, 1, time.Second), Cost: 1}, clk)
		s.decideOne(&driver.Entry{}, &driver.Claim{Policy: "p", Rule: driver.NewSlots(1), Cost: 1, Lease: driver.ID{1}, LeaseFor: time.Second}, clk)
		keys(t, s, 0)
		if st := s.Stats(); st.Leases != 0 {
			t.Errorf("%d leases after Close", st.Leases)
		}
		if planned(s) {
			t.Error("a decision armed a timer after Close")
		}
	})
}

// A store that is dropped with keys in it is collected, though its timer has a day to go.
func TestDroppedStoreIsCollected(t *testing.T) {
	gone := make(chan struct{})
	func() {
		s := New()
		take(t, s, "k", driver.NewBucket(1, 24*time.Hour), time.Time{})
		runtime.AddCleanup(s, func(c chan struct{}) { close(c) }, gone)
	}()
	for range 1000 {
		runtime.GC()
		select {
		case <-gone:
			return
		default:
			runtime.Gosched()
		}
	}
	t.Error("a dropped store is still there")
}

// The clock of the store: microseconds that neither stand still nor go back, near the wall's.
func TestOwnClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		start := time.Now()
		for range 5 {
			if got, want := s.read(time.Time{}).now, time.Now().UnixMicro(); got != want {
				t.Errorf("%v after the start the clock says %d, want %d", time.Since(start), got, want)
			}
			pass(1234567 * time.Microsecond)
		}
		s.base = driver.MaxMicros - 1
		if got := s.read(time.Time{}).now; got != driver.MaxMicros {
			t.Errorf("past its end the clock says %d", got)
		}
	})
}
