package memory_test

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/memory"
)

// No bound gives up what a request in flight holds, and no flood of keys does.
func TestLeasesAreNotEvicted(t *testing.T) {
	const bound, held = 100, 5000
	s := memory.New(memory.WithMaxKeys(bound))
	defer s.Close()
	h := newHolder(s, 0, "")
	h.slot.Rule = driver.NewSlots(1)
	for i := range held {
		h.slot.Subject = strconv.Itoa(i)
		if h.acquire(t); !h.slot.Result.Allowed {
			t.Fatalf("key %d: %+v", i, h.slot.Result)
		}
	}
	for i := range 10 * bound {
		take(t, s, strconv.Itoa(i), driver.NewBucket(1, time.Hour), noon)
	}
	if st := s.Stats(); st.Leases != held || st.Keys > bound || st.Evictions == 0 {
		t.Errorf("%+v, want %d leases beside at most %d keys", st, held, bound)
	}
	for i := range held {
		h.slot.Subject = strconv.Itoa(i)
		if h.acquire(t); h.slot.Result.Allowed {
			t.Fatalf("key %d gave its slot twice", i)
		}
	}
}

// A day after the last request the leases of those that still run are there, and no timer ran for them.
func TestLeasesAreNotSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		h := newHolder(s, 0, "key")
		h.acquire(t)
		take(t, s, "k", driver.NewBucket(1, time.Second), time.Time{})
		pass(24 * time.Hour)
		if st := s.Stats(); st.Leases != 1 || st.Keys != 0 {
			t.Errorf("%+v after a day, want the lease", st)
		}
		h.release(t)
		if st := s.Stats(); st != (memory.Stats{}) {
			t.Errorf("%+v after the release", st)
		}
	})
}

// What a wave of requests needed is given back with its last release, but for small tables.
func TestLeasesGiveTheirMemoryBack(t *testing.T) {
	const n = 100_000
	keys := subjects(n)
	for name, subject := range map[string]func(int) string{
		"a key each": func(i int) string { return keys[i] },
		"one key":    func(int) string { return "key" },
	} {
		ids := make([]driver.ID, n)
		before := int64(heap())
		s := memory.New()
		h := newHolder(s, 0, "")
		for i := range ids {
			h.slot.Subject = subject(i)
			h.acquire(t)
			ids[i] = h.slot.Lease
		}
		full := int64(heap()) - before
		// Two entries of 32 bytes for a key, and one for every further lease, in tables that are at least three eighths full.
		if most := int64(n * 2 * 32 * 8 / 3); full > most {
			t.Errorf("%s: %d bytes for %d leases, want at most %d", name, full, n, most)
		}
		for i, id := range ids {
			h.slot.Subject, h.slot.Lease = subject(i), id
			h.release(t)
		}
		if st := s.Stats(); st != (memory.Stats{}) {
			t.Errorf("%s: %+v after all releases", name, st)
		}
		if left := int64(heap()) - before; left > full/10 {
			t.Errorf("%s: %d of %d bytes left", name, left, full)
		}
		runtime.KeepAlive(ids)
		runtime.KeepAlive(h)
	}
}

// Waves of requests allocate where a table grows or shrinks, which is rarely.
func TestAllocationsOfWaves(t *testing.T) {
	s := memory.New()
	defer s.Close()
	h := newHolder(s, 0, "key")
	const n = 10_000
	got := testing.AllocsPerRun(10, func() {
		first := h.next
		for range n {
			h.acquire(t)
		}
		for h.next = first; h.next < first+n; {
			h.again()
			h.release(t)
		}
	})
	if got > 30 {
		t.Errorf("%v allocations for %d leases taken and released", got, n)
	}
	if st := s.Stats(); st.Leases != 0 {
		t.Errorf("%+v: the test released something else", st)
	}
}

// A reset of a full shard, while others go on.
func TestResetAtOnce(t *testing.T) {
	s := memory.New(memory.WithMaxKeys(1000))
	defer s.Close()
	var wg sync.WaitGroup
	for worker := range uint64(4) {
		wg.Go(func() {
			h := newHolder(s, worker, "key"+strconv.FormatUint(worker, 10))
			for i := range 2000 {
				if h.acquire(t); !h.slot.Result.Allowed {
					t.Errorf("worker %d: %+v", worker, h.slot.Result)
					return
				}
				if i%2 == 0 {
					h.release(t)
				}
				if i%200 == 199 {
					if err := s.Reset(context.Background(), "slots", h.slot.Subject); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if st := s.Stats(); st.Leases != 0 {
		t.Errorf("%+v after the last reset of each key", st)
	}
}

// A reset takes a key off the books at once, and the sweeper does not stumble over what is gone.
func TestResetDropsTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		for _, rule := range []driver.Rule{driver.NewBucket(1, time.Second), driver.NewWindow(driver.KindFixed, 1, time.Second)} {
			take(t, s, "k", rule, time.Time{})
		}
		newHolder(s, 0, "k").acquire(t)
		for _, policy := range []string{"policy", "slots", "another"} {
			if err := s.Reset(context.Background(), policy, "k"); err != nil {
				t.Fatal(err)
			}
		}
		if st := s.Stats(); st != (memory.Stats{}) {
			t.Errorf("%+v after the resets", st)
		}
		pass(time.Minute)
	})
}
