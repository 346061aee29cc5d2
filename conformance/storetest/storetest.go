// Package storetest proves that a [driver.Store] does what the contract says: that it admits exactly what the reference
// model admits, decides all or nothing, and survives what clients send.
//
// A store's own test calls it, by convention from a function named TestConformance:
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t testing.TB) driver.Store { return memory.New() })
//	}
//
// [Run] is about buckets and what all limits share, [RunWindows] about windows, [RunSlots] about leases, [RunSpread] and
// [RunSlotsSpread] about requests that a cluster cannot decide in one step.
//
// Cases use subjects of their own and never clear a store, so a shared server may serve several runs at once. They give
// the time wherever the clock matters and never sleep. Cases named after a number (BR018) are witnesses of faults that
// people reported in other software of this kind.
package storetest

import (
	"fmt"
	"testing"

	"github.com/headgate-go/headgate/core/driver"
)

// Case is one thing a store has to do. Why is printed when it does not.
type Case struct {
	Name, Why string
	run       func(*probe)
}

// Run runs every case as a subtest. newStore is called for each case, more than once where a case wants several handles;
// it returns a store that is ready for use, either empty or on a shared server. Cases close what they were given; the
// second Close of a factory that cleans up after itself is a no-op by contract.
//
// If two stores of the factory share their state, the cases about concurrency go through several of them at once.
func Run(t *testing.T, newStore func(testing.TB) driver.Store) {
	runAll(t, Cases(), newStore)
}

// RunSpread runs the cases about entries whose claims have different subjects. They hold for stores that decide such an
// entry in one step: in one process, on one node. In a cluster the promise is weaker.
func RunSpread(t *testing.T, newStore func(testing.TB) driver.Store) {
	runAll(t, SpreadCases(), newStore)
}

// RunWindows runs the cases about fixed, sliding and calendar windows, alone and beside buckets. They hold for every store
// that takes rules of these kinds.
func RunWindows(t *testing.T, newStore func(testing.TB) driver.Store) {
	runAll(t, WindowCases(), newStore)
}

// RunSlots runs the cases about slots, alone and beside buckets and windows, and about what a store may offer besides
// ([driver.Inspector]). They hold for every store that takes rules of these kinds, in the process or shared: where leases
// end is asked by type assertion on [driver.InProcess].
func RunSlots(t *testing.T, newStore func(testing.TB) driver.Store) {
	runAll(t, SlotCases(), newStore)
}

// RunSlotsSpread is [RunSpread] for entries that claim slots.
func RunSlotsSpread(t *testing.T, newStore func(testing.TB) driver.Store) {
	runAll(t, SlotSpreadCases(), newStore)
}

func runAll(t *testing.T, cases []Case, newStore func(testing.TB) driver.Store) {
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			failures := runCase(c, func() driver.Store { return newStore(t) })
			for _, f := range failures {
				t.Error(f)
			}
			if len(failures) > 0 {
				t.Logf("why: %s", c.Why)
			}
		})
	}
}

// Failures runs the cases of [Run] without a test and returns what failed, as "case: what"; nil if the store is sound.
// It is for proving that a deliberately broken store is caught. newStore is used as in [Run].
func Failures(newStore func() driver.Store) []string {
	var all []string
	for _, c := range Cases() {
		all = append(all, FailuresOf(c, newStore)...)
	}
	return all
}

// FailuresOf is [Failures] for one case.
func FailuresOf(c Case, newStore func() driver.Store) []string {
	failures := runCase(c, newStore)
	for i, f := range failures {
		failures[i] = fmt.Sprintf("%s: %s", c.Name, f)
	}
	return failures
}

// Cases returns the cases of [Run] in their order.
func Cases() []Case {
	var all []Case
	for _, part := range [][]Case{bucketCases, changeCases, clockCases, costCases, entryCases, batchCases, keyCases,
		settleCases, historyCases, concurrencyCases, lifecycleCases} {
		all = append(all, part...)
	}
	return all
}

// WindowCases returns the cases of [RunWindows] in their order.
func WindowCases() []Case {
	var all []Case
	for _, part := range [][]Case{windowCases, calendarCases, windowChangeCases, windowEntryCases, windowSettleCases, windowHistoryCases,
		windowConcurrencyCases} {
		all = append(all, part...)
	}
	return all
}

// SlotCases returns the cases of [RunSlots] in their order.
func SlotCases() []Case {
	var all []Case
	for _, part := range [][]Case{slotCases, slotEntryCases, slotLeaseCases, slotKeyCases, slotHistoryCases, slotConcurrencyCases} {
		all = append(all, part...)
	}
	return all
}

// SlotSpreadCases returns the cases of [RunSlotsSpread] in their order.
func SlotSpreadCases() []Case { return slotSpreadCases }

// SpreadCases returns the cases of [RunSpread] in their order.
func SpreadCases() []Case { return spreadCases }
