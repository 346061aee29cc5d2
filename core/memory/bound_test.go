package memory_test

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/memory"
)

// pass lets d pass in a bubble, and whatever is due in it happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestSmallBoundIsExact(t *testing.T) {
	rule := driver.NewBucket(1, time.Hour)
	for _, bound := range []int{1, 2, 3, 10, 63, 64, 65, 500, 8191} {
		s := memory.New(memory.WithMaxKeys(bound))
		for i := range bound {
			take(t, s, strconv.Itoa(i), rule, noon)
		}
		if st := s.Stats(); st.Keys != bound || st.Evictions != 0 {
			t.Errorf("bound %d: %+v after that many keys", bound, st)
		}
		for i := range bound {
			if take(t, s, strconv.Itoa(i), rule, noon).Allowed {
				t.Fatalf("bound %d: key %d was lost", bound, i)
			}
		}
		take(t, s, "one more", rule, noon)
		evicted := max(1, bound/64)
		if st := s.Stats(); st.Keys != bound+1-evicted || st.Evictions != uint64(evicted) {
			t.Errorf("bound %d: %+v after one more, want %d evictions", bound, st, evicted)
		}
		s.Close()
	}
}

// Several shards together never hold more, and do not begin to evict long before.
func TestLargeBound(t *testing.T) {
	const bound = 100_000
	s := memory.New(memory.WithMaxKeys(bound))
	defer s.Close()
	rule := driver.NewBucket(1, time.Hour)
	for i := range bound + bound/2 {
		take(t, s, strconv.Itoa(i), rule, noon)
		if i == bound*9/10 {
			if st := s.Stats(); st.Evictions != 0 {
				t.Errorf("%+v at 90 %% of the bound", st)
			}
		}
		if i%10_000 == 0 {
			if st := s.Stats(); st.Keys > bound {
				t.Fatalf("%+v with a bound of %d", st, bound)
			}
		}
	}
	if st := s.Stats(); st.Keys > bound || st.Keys < bound*9/10 || st.Evictions < bound/2 {
		t.Errorf("%+v after %d keys", st, bound+bound/2)
	}
}

// A full store gives up the bucket that is nearest to full. The attacker's own, which is empty, is the last to go:
// a flood of invented keys does not buy it a new one.
func TestFloodDoesNotRefillTheAttacker(t *testing.T) {
	for _, bound := range []int{10, 1000, 50_000} {
		s := memory.New(memory.WithMaxKeys(bound))
		rule := driver.NewBucket(10, time.Minute)
		if r := cost(t, s, "attacker", rule, 10, noon); !r.Allowed {
			t.Fatal("a new key was refused")
		}
		for i := range 3 * bound {
			take(t, s, "invented"+strconv.Itoa(i), rule, noon)
			if i%97 == 0 {
				if r := take(t, s, "attacker", rule, noon); r.Allowed {
					t.Fatalf("bound %d: after %d invented keys the attacker has a new bucket", bound, i)
				}
			}
		}
		if st := s.Stats(); st.Evictions == 0 || st.Keys > bound {
			t.Errorf("bound %d: %+v", bound, st)
		}
		s.Close()
	}
}

// What equals a fresh key goes first and is no eviction, also when the sweeper has not come yet.
func TestFreshKeysGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound = 100
		s := memory.New(memory.WithMaxKeys(bound))
		for i := range 40 {
			take(t, s, "short"+strconv.Itoa(i), driver.NewBucket(10, time.Second), time.Time{})
		}
		for i := range 60 {
			take(t, s, "long"+strconv.Itoa(i), driver.NewBucket(1, time.Hour), time.Time{})
		}
		pass(500 * time.Millisecond) // the short ones are full again; the sweeper comes after a second
		if st := s.Stats(); st.Keys != bound {
			t.Fatalf("%+v: the sweeper was here", st)
		}
		for i := range 40 {
			take(t, s, "new"+strconv.Itoa(i), driver.NewBucket(1, time.Hour), time.Time{})
		}
		if st := s.Stats(); st.Keys != bound || st.Evictions != 0 {
			t.Errorf("%+v, want %d keys and no eviction", st, bound)
		}
		for i := range 60 {
			if take(t, s, "long"+strconv.Itoa(i), driver.NewBucket(1, time.Hour), time.Time{}).Allowed {
				t.Fatal("a key in use went while fresh ones stayed")
			}
		}
		take(t, s, "one more", driver.NewBucket(1, time.Hour), time.Time{})
		if st := s.Stats(); st.Keys != bound || st.Evictions != 1 {
			t.Errorf("%+v after one more, want one eviction", st)
		}
	})
}

// A request whose claims do not all find room is decided right all the same.
func TestEntryLargerThanTheBound(t *testing.T) {
	s := memory.New(memory.WithMaxKeys(2))
	defer s.Close()
	var claims []driver.Claim
	for i := range 9 {
		claims = append(claims, driver.Claim{Policy: "policy", Subject: strconv.Itoa(i), Rule: driver.NewBucket(5, time.Hour), Cost: 1})
	}
	batch := []driver.Entry{{Claims: claims}}
	if err := s.Decide(context.Background(), noon, batch); err != nil || batch[0].Err != nil {
		t.Fatal(err, batch[0].Err)
	}
	for i := range claims {
		if r := claims[i].Result; !r.Allowed || r.Remaining != 4 {
			t.Errorf("claim %d: %+v", i, r)
		}
	}
	if st := s.Stats(); st.Keys != 2 || st.Evictions != 7 {
		t.Errorf("%+v, want 2 keys and 7 evictions", st)
	}
}

// BR081, made smaller: ten times more keys than the store may hold, at full speed. The bound is the one documented: 1.5
// slots of 28 bytes per key.
func TestBR081_UniqueKeysDoNotGrowTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound, total = 50_000, 500_000
		before := int64(heap())
		s := memory.New(memory.WithMaxKeys(bound))
		rule := driver.NewBucket(5, time.Second)
		batch := []driver.Entry{{Claims: []driver.Claim{{Policy: "policy", Rule: rule, Cost: 1}}}}
		evictions := uint64(0)
		for i := range total {
			batch[0].Claims[0].Subject = strconv.Itoa(i)
			if err := s.Decide(context.Background(), time.Time{}, batch); err != nil {
				t.Fatal(err)
			}
			if i%50_000 == 49_999 {
				st := s.Stats()
				if st.Keys > bound {
					t.Fatalf("%+v with a bound of %d", st, bound)
				}
				if i > bound && st.Evictions <= evictions {
					t.Errorf("%+v: evictions do not rise", st)
				}
				evictions = st.Evictions
			}
		}
		if grown := int64(heap()) - before; grown > bound*48 {
			t.Errorf("the heap grew by %d bytes, want at most %d", grown, bound*48)
		}
		pass(2500 * time.Millisecond)
		if st := s.Stats(); st.Keys != 0 {
			t.Errorf("%+v after an idle time", st)
		}
		if left := int64(heap()) - before; left > bound*5 {
			t.Errorf("%d bytes left after an idle time", left)
		}
		runtime.KeepAlive(s)
	})
}

// BR084: stores are made for every reload, and often forgotten. There is no goroutine that could stay.
func TestBR084_NoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	rule := driver.NewBucket(1, time.Hour)
	for i := range 10_000 {
		s := memory.New()
		take(t, s, "k", rule, time.Time{})
		if i%2 == 0 {
			for range 2 {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

// BR086, made smaller: a key is complete when others see it. There is no user's code inside the store that could panic
// while a lock is held; what a claim may carry never panics (the conformance suite).
func TestBR086_NewKeyUnderManyGoroutines(t *testing.T) {
	s := memory.New()
	defer s.Close()
	rule := driver.NewBucket(1, time.Hour).WithBurst(7)
	for round := range 1000 {
		subject := strconv.Itoa(round)
		var admitted atomic.Int32
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range 64 {
			wg.Go(func() {
				batch := []driver.Entry{{Claims: []driver.Claim{{Policy: "policy", Subject: subject, Rule: rule, Cost: 1}}}}
				<-start
				if err := s.Decide(context.Background(), time.Time{}, batch); err == nil && batch[0].Claims[0].Result.Allowed {
					admitted.Add(1)
				}
			})
		}
		close(start)
		wg.Wait()
		if got := admitted.Load(); got != 7 {
			t.Fatalf("round %d: %d admitted, want 7", round, got)
		}
	}
}

// Everything at once: decisions on one and several claims, settlements, new keys in a full store, sweeps and statistics,
// then Close under all of it. For the race detector, and for locks taken in a wrong order.
func TestEverythingAtOnce(t *testing.T) {
	s := memory.New(memory.WithMaxKeys(20_000))
	day, short := driver.NewBucket(1_000_000, 24*time.Hour), driver.NewBucket(1_000_000, time.Second).WithBurst(5)
	windows := []driver.Rule{
		driver.NewWindow(driver.KindFixed, 5, time.Second), driver.NewWindow(driver.KindSliding, 50, time.Minute),
		driver.NewWindow(driver.KindDaily, 50, 0).In(berlin), driver.NewWindow(driver.KindMonthly, 50, 0),
	}
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				claim := func(n int) driver.Claim {
					return driver.Claim{Policy: "policy", Subject: strconv.Itoa((n*7919 + i*worker) % 30_000), Rule: day, Cost: 1, Shadow: n%3 == 0}
				}
				slot := func(n int) driver.Claim {
					return driver.Claim{Policy: "slots", Subject: strconv.Itoa(n % 100), Rule: driver.NewSlots(1 + n%200), Cost: 1,
						Lease: driver.ID{1, byte(worker), byte(n), byte(n >> 8), byte(n >> 16)}, LeaseFor: time.Second}
				}
				batch := []driver.Entry{
					{Claims: []driver.Claim{claim(i)}},
					{Claims: []driver.Claim{claim(i + 3), claim(i + 1), claim(i + 2), claim(i + 1)}},
					{Claims: []driver.Claim{{Policy: "short", Subject: strconv.Itoa(i % 5000), Rule: short, Cost: 1}}},
					{Claims: []driver.Claim{{Policy: "window", Subject: strconv.Itoa(i % 5000), Rule: windows[i%4], Cost: 1}}},
					{Claims: []driver.Claim{claim(i), {Policy: "window", Subject: strconv.Itoa(i * 3 % 5000), Rule: windows[i/2%4], Cost: 1}}},
					{Claims: []driver.Claim{slot(i)}},
					{Claims: []driver.Claim{slot(i + 1), claim(i + 1), slot(i + 2)}},
				}
				if err := s.Decide(context.Background(), time.Time{}, batch); err != nil {
					return
				}
				if err := s.Apply(context.Background(), time.Time{}, []driver.Change{
					{Kind: driver.Settle, Policy: "policy", Subject: strconv.Itoa(i % 30_000), Rule: day, Amount: i%5 - 2},
					{Kind: driver.Release, Policy: "slots", Subject: strconv.Itoa(i % 100), Lease: slot(i).Lease},
					{Kind: driver.Renew, Policy: "slots", Subject: strconv.Itoa(i % 99), Lease: slot(i).Lease, LeaseFor: time.Second}}); err != nil {
					return
				}
				if i%100 == 0 {
					s.Stats()
					if err := s.Reset(context.Background(), "slots", strconv.Itoa(i/100%100)); err != nil {
						return
					}
				}
				if i == 3000 && worker == 0 {
					s.Close()
				}
			}
		})
	}
	wg.Wait()
	if st := s.Stats(); st.Keys != 0 || st.Leases != 0 {
		t.Errorf("%+v after Close", st)
	}
}
