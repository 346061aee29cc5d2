package memory_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/conformance/storetest"
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/memory"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(testing.TB) driver.Store { return memory.New() })
}

func TestConformanceWindows(t *testing.T) {
	storetest.RunWindows(t, func(testing.TB) driver.Store { return memory.New() })
}

func TestConformanceSlots(t *testing.T) {
	storetest.RunSlots(t, func(testing.TB) driver.Store { return memory.New() })
}

func TestConformanceSpread(t *testing.T) {
	storetest.RunSpread(t, func(testing.TB) driver.Store { return memory.New() })
	storetest.RunSlotsSpread(t, func(testing.TB) driver.Store { return memory.New() })
}

// One shard has every key of an entry in one table, and a small one grows while the entry is written.
func TestConformanceOneShard(t *testing.T) {
	storetest.Run(t, func(testing.TB) driver.Store { return memory.New(memory.WithMaxKeys(2000)) })
	storetest.RunSpread(t, func(testing.TB) driver.Store { return memory.New(memory.WithMaxKeys(2000)) })
	storetest.RunWindows(t, func(testing.TB) driver.Store { return memory.New(memory.WithMaxKeys(2000)) })
	storetest.RunSlots(t, func(testing.TB) driver.Store { return memory.New(memory.WithMaxKeys(2000)) })
	storetest.RunSlotsSpread(t, func(testing.TB) driver.Store { return memory.New(memory.WithMaxKeys(2000)) })
}

var noon = time.Date(2031, 3, 1, 12, 0, 0, 0, time.UTC)

// take decides one claim of cost 1.
func take(t testing.TB, s *memory.Store, subject string, rule driver.Rule, now time.Time) driver.Result {
	t.Helper()
	return cost(t, s, subject, rule, 1, now)
}

func cost(t testing.TB, s *memory.Store, subject string, rule driver.Rule, cost int, now time.Time) driver.Result {
	t.Helper()
	batch := []driver.Entry{{Claims: []driver.Claim{{Policy: "policy", Subject: subject, Rule: rule, Cost: cost}}}}
	if err := s.Decide(context.Background(), now, batch); err != nil || batch[0].Err != nil {
		t.Fatalf("Decide: %v, Err %v", err, batch[0].Err)
	}
	return batch[0].Claims[0].Result
}

func TestCanceledContextDoesNotMatter(t *testing.T) {
	s := memory.New()
	defer s.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	rule := driver.NewBucket(1, time.Second).WithBurst(2)
	for want := 1; want >= 0; want-- {
		batch := []driver.Entry{{Claims: []driver.Claim{{Policy: "p", Subject: "s", Rule: rule, Cost: 1}}}}
		if err := s.Decide(ctx, noon, batch); err != nil {
			t.Fatal(err)
		}
		if r := batch[0].Claims[0].Result; !r.Allowed || r.Remaining != want {
			t.Errorf("got %+v, want %d remaining", r, want)
		}
	}
	change := []driver.Change{{Kind: driver.Settle, Policy: "p", Subject: "s", Rule: rule, Amount: -1}}
	if err := s.Apply(ctx, noon, change); err != nil {
		t.Error(err)
	}
}

// BR008 again, with the times that only this store takes: 290 years, and what lies outside of its clock.
func TestBR008_TimesOutsideTheClock(t *testing.T) {
	rule := driver.NewBucket(1_000_000, time.Second).WithBurst(1_000_000)
	for _, later := range []time.Time{
		noon.Add(math.MaxInt64), time.Unix(math.MaxInt64, 0), time.Unix(1<<60, 999_999_999), time.UnixMicro(math.MaxInt64),
	} {
		s := memory.New()
		cost(t, s, "k", rule, 1_000_000, noon)
		if r := take(t, s, "k", rule, later); !r.Allowed || r.Remaining != 999_999 {
			t.Errorf("at %v: %+v", later, r)
		}
	}
	for _, earlier := range []time.Time{time.Unix(-1, 0), time.Unix(0, 0), time.Unix(math.MinInt64, 0), {}} {
		if earlier.IsZero() {
			earlier = earlier.Add(1) // the first of all times that are not "now"
		}
		s := memory.New()
		for want := 999_999; want > 999_996; want-- {
			if r := take(t, s, "k", rule, earlier); !r.Allowed || r.Remaining != want {
				t.Errorf("at %v: %+v, want %d remaining", earlier, r, want)
			}
		}
	}
}

func TestErrOfAnEntry(t *testing.T) {
	s := memory.New()
	defer s.Close()
	rule := driver.NewBucket(1, time.Second)
	for want, c := range map[string]driver.Claim{
		`memory: claim 1 (policy "tenant"): cost -3 is negative`:                          {Rule: rule, Cost: -3},
		`memory: claim 1 (policy "tenant"): burst 0; the smallest is 1`:                   {Rule: rule.WithBurst(0), Cost: 1},
		`memory: claim 1 (policy "tenant"): no rule; write for example limit.PerSecond(`:  {Cost: 1},
		`memory: claim 1 (policy "tenant"): count 0 per window; 1 to 1000000000`:          {Rule: driver.NewWindow(driver.KindFixed, 0, time.Second), Cost: 1},
		`memory: claim 1 (policy "tenant"): a window has no burst`:                        {Rule: driver.NewWindow(driver.KindFixed, 5, time.Second).WithBurst(0), Cost: 1},
		`memory: claim 1 (policy "tenant"): only Daily and Monthly have a time zone`:      {Rule: rule.In(time.UTC), Cost: 1},
		`memory: claim 1 (policy "tenant"): 0 slots; 1 to 1000000000`:                     {Rule: driver.NewSlots(0), Cost: 1},
		`memory: claim 1 (policy "tenant"): slots have no burst`:                          {Rule: driver.NewSlots(5).WithBurst(7), Cost: 1},
		`memory: claim 1 (policy "tenant"): cost 2; a request takes one slot`:             {Rule: driver.NewSlots(5), Cost: 2},
		`memory: claim 1 (policy "tenant"): cost -1; a request takes one slot`:            {Rule: driver.NewSlots(5), Cost: -1},
		`memory: claim 1 (policy "tenant"): the lease has no ID`:                          {Rule: driver.NewSlots(5), Cost: 1, LeaseFor: time.Second},
		`memory: claim 1 (policy "tenant"): lease time 1.5us; whole milliseconds, 1ms to`: {Rule: driver.NewSlots(5), Cost: 1, Lease: driver.ID{1}, LeaseFor: 1500},
		`memory: claim 1 (policy "tenant"): an unlimited rule has no state; do not ask a`: {Rule: driver.Unlimited(), Cost: 1},
	} {
		c.Policy, c.Subject = "tenant", "a secret"
		batch := []driver.Entry{{Claims: []driver.Claim{{Policy: "a", Subject: "b", Rule: rule, Cost: 1}, c}}}
		if err := s.Decide(context.Background(), noon, batch); err != nil {
			t.Fatal(err)
		}
		err := batch[0].Err
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v\nwant %s", err, want)
		}
		if driver.ClassOf(err) != driver.ClassOther {
			t.Errorf("class %q of %v", driver.ClassOf(err), err)
		}
	}
	if st := s.Stats(); st.Keys != 0 {
		t.Errorf("%d keys after entries that failed", st.Keys)
	}
}

func TestApply(t *testing.T) {
	s := memory.New()
	defer s.Close()
	rule := driver.NewBucket(1, time.Second).WithBurst(5)
	changes := []driver.Change{
		{Kind: driver.Settle, Policy: "policy", Subject: "k", Rule: rule.WithBurst(0), Amount: 1},
		{Kind: 99},
		{Kind: driver.Renew, Policy: "slots", Subject: "k", Lease: driver.ID{1}, LeaseFor: time.Second},
		{Kind: driver.Release, Policy: "slots", Subject: "k", Lease: driver.ID{1}},
		{Kind: driver.Renew, Policy: "slots", Subject: "k", Lease: driver.ID{1}, LeaseFor: -1},
		{Kind: driver.Settle, Policy: "slots", Subject: "k", Rule: driver.NewSlots(5), Amount: 1},
		{Kind: driver.Settle, Policy: "policy", Subject: "k", Rule: rule, Amount: 2},
	}
	err := s.Apply(context.Background(), noon, changes)
	for _, want := range []string{
		`memory: change 0 (policy "policy"): burst 0; the smallest is 1`, "memory: change 1: unknown kind 99",
		`memory: change 4 (policy "slots"): lease time -1ns; whole milliseconds`, `memory: change 5 (policy "slots"): slots are released, not settled`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
	if !changes[2].Lost {
		t.Error("an unknown lease was renewed")
	}
	if r := cost(t, s, "k", rule, 0, noon); r.Remaining != 3 {
		t.Errorf("%d remaining, want 3: a bad change hurt a good one", r.Remaining)
	}
}

func TestClosed(t *testing.T) {
	s := memory.New()
	take(t, s, "k", driver.NewBucket(1, time.Hour), time.Time{})
	newHolder(s, 0, "k").acquire(t)
	s.Close()
	if err := s.Decide(context.Background(), noon, nil); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("Decide: %v", err)
	}
	if err := s.Apply(context.Background(), noon, nil); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("Apply: %v", err)
	}
	if err := s.Reset(context.Background(), "policy", "k"); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("Reset: %v", err)
	}
	if st := s.Stats(); st != (memory.Stats{}) {
		t.Errorf("%+v after Close", st)
	}
}

func TestKeyName(t *testing.T) {
	s := memory.New()
	if got, want := s.KeyName("tenant", "x", driver.NewBucket(1, time.Second)), "{"+driver.Digest("x")+"}:tenant:b1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, kind := range []driver.Kind{driver.KindFixed, driver.KindSliding, driver.KindDaily, driver.KindMonthly} {
		if got, want := s.KeyName("tenant", "x", driver.NewWindow(kind, 1, time.Second)), "{"+driver.Digest("x")+"}:tenant:w1"; got != want {
			t.Errorf("kind %d: got %q, want %q", kind, got, want)
		}
	}
	if got, want := s.KeyName("tenant", "x", driver.NewSlots(5)), "{"+driver.Digest("x")+"}:tenant:c1"; got != want {
		t.Errorf("slots: got %q, want %q", got, want)
	}
	if got := s.KeyName("tenant", "x", driver.Unlimited()); got != "" {
		t.Errorf("got %q for a rule without state", got)
	}
}

// BR009, the store's part: what the rules accept the store takes, up to the largest.
func TestBR009_LargestRules(t *testing.T) {
	s := memory.New()
	defer s.Close()
	for _, rule := range []driver.Rule{
		driver.NewBucket(driver.MaxCount, time.Second).WithBurst(driver.MaxCount),
		driver.NewBucket(1, driver.MaxPeriod).WithBurst(driver.MaxCount),
		driver.NewBucket(1, driver.MaxPeriod),
	} {
		name := rule.String()
		if r := cost(t, s, name, rule, rule.Capacity(), noon); !r.Allowed || r.Remaining != 0 || r.ResetAfter <= 0 {
			t.Errorf("%s: %+v", name, r)
		}
		if r := take(t, s, name, rule, noon); r.Allowed || r.RetryAfter <= 0 {
			t.Errorf("%s: %+v", name, r)
		}
		if r := cost(t, s, name, rule, math.MaxInt, noon); r.Allowed || r.Reason != driver.ReasonCost {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
