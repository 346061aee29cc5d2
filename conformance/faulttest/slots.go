package faulttest

import (
	"context"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// RunSlots runs every case of what a lease's life is made of as a subtest: what a client sends for it, which is more than
// scripts. It is for each protocol that a client speaks.
func RunSlots(t *testing.T, newStore NewStore) {
	runAll(t, SlotCases(), alone(newStore), together)
}

// SlotCases returns the cases of [RunSlots] in their order.
func SlotCases() []Case {
	return []Case{
		{Name: "BR077_rate_and_slots_in_one_call", Why: "a call for each limiter makes the store the bottleneck, and a request that is refused by one holds a slot of the other",
			run: oneCallForAll},
		{Name: "changes_of_leases", Why: "a renewal that was lost, or a release that was not made, is a slot that is taken twice or for ever",
			run: changesOfLeases},
		{Name: "slots_of_a_silent_server", Why: "a slot that is taken for a caller who is gone is nobody's, and stays taken until its lease ends",
			run: slotsOfASilentServer},
	}
}

// The rule of the entries of these cases, and their slots.
var (
	hourly = driver.NewBucket(5, time.Hour).WithBurst(5)
	two    = driver.NewSlots(2)
)

// slotStore is what stores on a server are.
type slotStore interface {
	driver.Store
	driver.Inspector
	driver.KeyNamer
}

// slotStore returns a store on the scene's server.
func (s *scene) slotStore() slotStore {
	store, ok := s.newStore(s.tb, []string{s.direct()}).(slotStore)
	if !ok {
		s.fatalf("the store is no driver.Inspector, or no driver.KeyNamer")
	}
	s.tb.Cleanup(func() { _ = store.Close() })
	return store
}

// leaseID is the ID of a number, with bytes that text would not survive.
func leaseID(n byte) driver.ID { return driver.ID{0: 0xff, 1: '\r', 2: '\n', 15: n} }

// rateAndSlots is an entry with a rate, slots, and shadow copies of both.
func rateAndSlots(n byte) []driver.Entry {
	claim := func(policy string, rule driver.Rule, id byte) driver.Claim {
		return driver.Claim{Policy: policy, Subject: "s", Rule: rule, Cost: 1, Shadow: policy == "shadow", Lease: leaseID(id), LeaseFor: time.Minute}
	}
	return []driver.Entry{{Claims: []driver.Claim{claim("p", hourly, n), claim("p", two, n), claim("shadow", hourly, n), claim("shadow", two, n+100)}}}
}

func leaseChange(kind driver.ChangeKind, n byte) driver.Change {
	return driver.Change{Kind: kind, Policy: "p", Subject: "s", Rule: two, Lease: leaseID(n), LeaseFor: time.Minute}
}

// asks decides about an entry, which a case can do without.
func (s *scene) asks(store driver.Store, batch []driver.Entry) {
	ctx, cancel := context.WithTimeout(context.Background(), steady)
	defer cancel()
	if err := store.Decide(ctx, time.Time{}, batch); err != nil || batch[0].Err != nil {
		s.fatalf("a decision failed: %v, %v", err, batch[0].Err)
	}
}

func oneCallForAll(s *scene) {
	store := s.slotStore()
	s.asks(store, rateAndSlots(0))
	for n, admitted := range []bool{true, false} {
		before, texts := s.scriptCalls()
		batch := rateAndSlots(byte(1 + n))
		s.asks(store, batch)
		if got := batch[0].Claims[1].Result; got.Allowed != admitted || got.Remaining != 0 {
			s.failf("request %d: %+v", n, got)
		}
		if all, again := s.scriptCalls(); all-before != 1 || again != texts {
			s.failf("a request for rate and slots, with shadow copies, was %d calls of the script, %d of them with its text; want 1 and 0", all-before, again-texts)
		}
	}
}

func changesOfLeases(s *scene) {
	store := s.slotStore()
	s.asks(store, rateAndSlots(0))
	s.asks(store, rateAndSlots(1))
	s.do("SCRIPT", "FLUSH")
	ctx, cancel := context.WithTimeout(context.Background(), steady)
	defer cancel()
	changes := []driver.Change{leaseChange(driver.Renew, 0), leaseChange(driver.Renew, 7), leaseChange(driver.Release, 1)}
	if err := store.Apply(ctx, time.Time{}, changes); err != nil || changes[0].Lost || !changes[1].Lost {
		s.failf("renewed a lease and one that never was: lost %t, %t (error %v)", changes[0].Lost, changes[1].Lost, err)
	}
	if got := s.do("ZCARD", store.KeyName("p", "s", two)); got != int64(1) {
		s.failf("%v leases after a release of one of two", got)
	}
	if err := store.Reset(ctx, "p", "s"); err != nil {
		s.failf("a reset: %v", err)
	}
	if got := s.do("EXISTS", store.KeyName("p", "s", two), store.KeyName("p", "s", hourly)); got != int64(0) {
		s.failf("%v keys after a reset", got)
	}
	if got := s.do("EXISTS", store.KeyName("shadow", "s", two), store.KeyName("shadow", "s", hourly)); got != int64(2) {
		s.failf("%v keys of the other policy after a reset", got)
	}
	s.do("SET", store.KeyName("p", "s", two), "x")
	err := store.Apply(ctx, time.Time{}, []driver.Change{leaseChange(driver.Release, 1)})
	if driver.ClassOf(err) != driver.ClassOther {
		s.failf("a release from what is no set: %v", err)
	}
}

// slotsOfASilentServer checks that releases and resets keep their deadlines with a client that does not know them; and that a
// slot that is taken when its caller is gone is given back.
func slotsOfASilentServer(s *scene) {
	store := s.slotStore()
	s.asks(store, rateAndSlots(0))
	s.server.Pause()
	for name, f := range map[string]func(ctx context.Context) error{
		"release": func(ctx context.Context) error {
			return store.Apply(ctx, time.Time{}, []driver.Change{leaseChange(driver.Release, 9)})
		},
		"reset":  func(ctx context.Context) error { return store.Reset(ctx, "q", "s") },
		"decide": func(ctx context.Context) error { return store.Decide(ctx, time.Time{}, rateAndSlots(1)) },
	} {
		allowance := s.pulse.allowance()
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		start := time.Now()
		if err := f(ctx); driver.ClassOf(err) != driver.ClassTimeout {
			s.failf("%s: %v", name, err)
		}
		if took := time.Since(start); took > answered+allowance() {
			s.failf("%s: an answer after %v", name, took)
		}
		cancel()
	}
	s.server.Resume()
	if err := store.Close(); err != nil { // waits for the calls under way, and for what follows from them
		s.fatalf("close: %v", err)
	}
	stats, err := s.server.CommandStats()
	if err != nil {
		s.fatalf("INFO commandstats: %v", err)
	}
	if got := stats["zadd"].Calls; got != 4 {
		s.failf("%d slots taken, want 4: two of each request", got)
	}
	if got := s.do("ZCARD", store.KeyName("p", "s", two)); got != int64(1) {
		s.failf("%v slots held, want only that of the first request", got)
	}
}
