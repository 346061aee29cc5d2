package memory_test

import (
	"context"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/memory"
)

// decide fails the test if the store does.
func decide(t testing.TB, s *memory.Store, now time.Time, batch []driver.Entry) {
	if err := s.Decide(context.Background(), now, batch); err != nil {
		t.Fatal(err)
	}
}

var berlin = func() *time.Location {
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	return loc
}()

// A decision allocates nothing: not admitted, not refused, with one claim or with eight, nor when it evicts.
func TestNoAllocations(t *testing.T) {
	always := driver.NewBucket(1, time.Second).WithBurst(1_000_000_000)
	once := driver.NewBucket(1, 24*time.Hour)
	keys := subjects(50_000)
	claims := func(n int, rule driver.Rule) []driver.Entry {
		list := make([]driver.Claim, n)
		for i := range list {
			list[i] = driver.Claim{Policy: "policy", Subject: keys[i], Rule: rule, Cost: 1, Shadow: i%3 == 2}
		}
		return []driver.Entry{{Claims: list}}
	}
	next := 0
	for _, tc := range []struct {
		name  string
		now   time.Time
		batch []driver.Entry
		new   bool // another key every time
		full  bool // in a store that is full
	}{
		{"admitted, own clock", time.Time{}, claims(1, always), false, false},
		{"admitted, given clock", noon, claims(1, always), false, false},
		{"refused", noon, claims(1, once), false, false},
		{"two claims", time.Time{}, claims(2, always), false, false},
		{"eight claims", time.Time{}, claims(8, always), false, false},
		{"eight claims, refused", time.Time{}, claims(8, once), false, false},
		{"fixed window", time.Time{}, claims(1, driver.NewWindow(driver.KindFixed, 1_000_000_000, time.Hour)), false, false},
		{"fixed window, refused", noon, claims(1, driver.NewWindow(driver.KindFixed, 1, time.Hour)), false, false},
		{"sliding window", time.Time{}, claims(1, driver.NewWindow(driver.KindSliding, 1_000_000_000, time.Hour)), false, false},
		{"sliding window, refused", noon, claims(1, driver.NewWindow(driver.KindSliding, 1, time.Hour)), false, false},
		{"day of a zone", time.Time{}, claims(1, driver.NewWindow(driver.KindDaily, 1_000_000_000, 0).In(berlin)), false, false},
		{"bucket and windows", time.Time{}, []driver.Entry{{Claims: append(claims(2, always)[0].Claims,
			driver.Claim{Policy: "day", Subject: "s", Rule: driver.NewWindow(driver.KindDaily, 1_000_000_000, 0).In(berlin), Cost: 1},
			driver.Claim{Policy: "month", Subject: "s", Rule: driver.NewWindow(driver.KindMonthly, 1_000_000_000, 0), Cost: 1},
			driver.Claim{Policy: "minute", Subject: "s", Rule: driver.NewWindow(driver.KindSliding, 1_000_000_000, time.Minute), Cost: 1})}}, false, false},
		{"batch", time.Time{}, append(claims(1, always), claims(2, always)...), false, false},
		{"evicting", time.Time{}, claims(1, once), true, true},
	} {
		s := memory.New(memory.WithMaxKeys(1000))
		if tc.full {
			for _, k := range keys[:1000] {
				take(t, s, k, once, tc.now)
			}
		}
		decide(t, s, tc.now, tc.batch) // the first insertion makes the table
		got := testing.AllocsPerRun(1000, func() {
			if tc.new {
				next++
				tc.batch[0].Claims[0].Subject = keys[1000+next%(len(keys)-1000)]
			}
			decide(t, s, tc.now, tc.batch)
		})
		if got != 0 {
			t.Errorf("%s: %v allocations, want 0", tc.name, got)
		}
		s.Close()
	}

	s := memory.New()
	defer s.Close()
	changes := []driver.Change{{Kind: driver.Settle, Policy: "policy", Subject: "s", Rule: always, Amount: 1},
		{Kind: driver.Settle, Policy: "policy", Subject: "s", Rule: driver.NewWindow(driver.KindSliding, 1_000_000_000, time.Hour), Amount: 1}}
	got := testing.AllocsPerRun(1000, func() {
		if err := s.Apply(context.Background(), noon, changes); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Errorf("settle: %v allocations, want 0", got)
	}

	for name, before := range map[string][]driver.Claim{
		"slot":          nil,
		"rate and slot": {{Policy: "policy", Subject: "s", Rule: always, Cost: 1}},
	} {
		h := newHolder(s, 0, "s", before...)
		got := testing.AllocsPerRun(1000, func() {
			h.acquire(t)
			h.release(t)
		})
		if got != 0 {
			t.Errorf("%s: %v allocations, want 0", name, got)
		}
	}
}

// Inserting allocates only where the table grows: bytes per key stay below what growing by a quarter can cost.
func TestAllocationsOfInsertions(t *testing.T) {
	keys := subjects(100_000)
	s := memory.New()
	defer s.Close()
	batch := []driver.Entry{{Claims: []driver.Claim{{Policy: "policy", Rule: driver.NewBucket(1, time.Hour), Cost: 1}}}}
	next := 0
	got := testing.AllocsPerRun(1, func() {
		for ; next%50_000 != 49_999; next++ {
			batch[0].Claims[0].Subject = keys[next]
			decide(t, s, time.Time{}, batch)
		}
		next++
	})
	if perKey := got / 50_000; perKey > 0.05 {
		t.Errorf("%.3f allocations per inserted key", perKey)
	}
}
