package storetest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/conformance/storetest"
	"github.com/headgate-go/headgate/core/driver"
)

// TestConformanceSlots: the twin without a fault is sound, in the process and shared, or else the others prove nothing.
func TestConformanceSlots(t *testing.T) {
	for name, newStore := range map[string]func() driver.Store{
		"shared":        func() driver.Store { return newSlotTwin(slotFaults{}) },
		"in_process":    func() driver.Store { return newProcessTwin(slotFaults{}) },
		"handles":       handlesOf(newSlotTwin(slotFaults{})),
		"without_Reset": func() driver.Store { return struct{ driver.Store }{newSlotTwin(slotFaults{})} },
	} {
		t.Run(name, func(t *testing.T) {
			storetest.RunSlots(t, func(testing.TB) driver.Store { return newStore() })
			storetest.RunSlotsSpread(t, func(testing.TB) driver.Store { return newStore() })
		})
	}
}

func handlesOf(one driver.Store) func() driver.Store { return func() driver.Store { return one } }

// slotTwins are stores with deliberately broken slots, and for each the case that is there to catch its kind of fault.
var slotTwins = []struct {
	name    string
	faults  slotFaults
	witness string
}{
	{"counts before it adds", slotFaults{countsBefore: true}, "BR137_remaining_counts_down"},
	{"lets limit + 1 in", slotFaults{oneMore: true}, "BR137_remaining_counts_down"},
	{"refused requests hold", slotFaults{deniedHolds: true}, "BR039_refused_requests_take_no_slot"},
	{"checks, then acts", slotFaults{checkThenAct: true}, "BR040_exactly_the_number_of_slots_passes"},
	{"checks, then acts", slotFaults{checkThenAct: true}, "rate_and_slots_at_once"},
	{"a look takes a slot", slotFaults{zeroTakes: true}, "BR018_cost_zero_looks_at_slots"},
	{"a look is refused", slotFaults{zeroRefused: true}, "BR018_cost_zero_looks_at_slots"},
	{"a look is refused", slotFaults{zeroRefused: true}, "a_look_at_slots_among_others"},
	{"a look counts what is over", slotFaults{zeroTooLow: true}, "a_lease_that_is_over_counts_until_its_place_is_needed"},
	{"a lease asked for again counts twice", slotFaults{againTakes: true}, "a_lease_asked_for_again"},
	{"looks at 8 bytes of an ID", slotFaults{firstHalf: true}, "leases_are_told_apart_by_every_byte"},
	{"looks at the last 8 bytes of an ID", slotFaults{secondHalf: true}, "leases_are_told_apart_by_every_byte"},
	{"a late release frees somebody else", slotFaults{releasesAny: true}, "BR127_released_twice"},
	{"a late release frees somebody else", slotFaults{releasesAny: true}, "BR131_a_request_longer_than_its_lease"},
	{"a late release frees somebody else", slotFaults{releasesAny: true}, "reset_of_slots"},
	{"a release goes through all keys", slotFaults{releasesEverywhere: true}, "releases_of_unknown_leases"},
	{"a release counts down", slotFaults{releaseCounts: true}, "BR127_released_twice"},
	{"a release counts down", slotFaults{releaseCounts: true}, "BR127_released_twice_at_once"},
	{"a release counts down", slotFaults{releaseCounts: true}, "releases_of_unknown_leases"},
	{"releases are lost", slotFaults{releaseLost: true}, "released_at_once"},
	{"a renewal revives", slotFaults{renewRevives: true}, "a_renewal_does_not_revive"},
	{"every renewal succeeds", slotFaults{renewAlways: true}, "a_renewal_does_not_revive"},
	{"no renewal succeeds", slotFaults{renewNever: true}, "renewals"},
	{"a renewal does nothing", slotFaults{renewIdle: true}, "BR131_a_request_longer_than_its_lease"},
	{"a renewal finds the leases of others", slotFaults{renewElsewhere: true}, "renewals"},
	{"a renewal of nothing takes a slot", slotFaults{renewTakes: true}, "renewals"},
	{"never sweeps", slotFaults{neverSweeps: true}, "BR131_a_request_longer_than_its_lease"},
	{"never sweeps", slotFaults{neverSweeps: true}, "leases_end_to_the_microsecond"},
	{"sweeps at every request", slotFaults{sweepsAtOnce: true}, "a_lease_that_is_over_counts_until_its_place_is_needed"},
	{"throws the oldest out", slotFaults{sweepsOldest: true}, "only_leases_that_are_over_are_swept"},
	{"a look sweeps", slotFaults{lookSweeps: true}, "a_look_sweeps_nothing"},
	{"a refused request brings back what was swept", slotFaults{sweepUndone: true}, "a_refusal_by_another_limiter_may_sweep"},
	{"leases end late", slotFaults{endsLate: true}, "leases_end_to_the_microsecond"},
	{"leases end early", slotFaults{endsEarly: true}, "leases_end_to_the_microsecond"},
	{"a clock that steps back ends leases", slotFaults{clockBackEnds: true}, "a_clock_that_steps_back_ends_no_lease"},
	{"remembers the limit", slotFaults{remembersMax: true}, "BR042_a_new_number_of_slots_counts_at_once"},
	{"a lower limit throws out", slotFaults{throwsOut: true}, "BR042_a_new_number_of_slots_counts_at_once"},
	{"keeps the slot when the rate refuses", slotFaults{rateRefusedHolds: true}, "all_or_nothing_of_rate_and_slots"},
	{"keeps the slot when the rate refuses", slotFaults{rateRefusedHolds: true}, "refused_entries_of_a_batch_hold_no_slot"},
	{"keeps the slot of one limit when the other refuses", slotFaults{rateRefusedHolds: true}, "all_or_nothing_of_two_limits_of_slots"},
	{"charges the rate although the slots refuse", slotFaults{slotRefusedPays: true}, "all_or_nothing_of_rate_and_slots"},
	{"charges the rate although the slots refuse", slotFaults{slotRefusedPays: true}, "BR149_slots_between_two_rates"},
	{"a shadow claim refuses", slotFaults{shadowRefuses: true}, "shadow_slots_never_refuse"},
	{"a shadow claim of a refused request holds", slotFaults{shadowHeldByRefused: true}, "shadow_slots_are_not_held_by_refused_requests"},
	{"a shadow claim never holds", slotFaults{shadowUnheld: true}, "shadow_slots_are_held_by_admitted_requests"},
	{"a shadow claim never holds", slotFaults{shadowUnheld: true}, "slots_from_shadow_to_enforce"},
	{"two claims on one key do not see each other", slotFaults{sameKeyTwice: true}, "two_slots_in_one_request"},
	{"entries of a batch read the same count", slotFaults{snapshot: true}, "slots_of_a_batch_see_each_other"},
	{"evaluates nothing after a refusal", slotFaults{stopsAtRefusal: true}, "every_claim_beside_slots_is_evaluated"},
	{"one invalid entry fails the batch", slotFaults{failsBatch: true}, "invalid_slots_hurt_their_own_entry_only"},
	{"takes invalid leases", slotFaults{acceptsInvalid: true}, "invalid_slots_hurt_their_own_entry_only"},
	{"takes half of an invalid entry", slotFaults{invalidHolds: true}, "invalid_slots_hurt_their_own_entry_only"},
	{"keeps the result of the last call", slotFaults{keepsResult: true}, "answers_of_slots_overwrite_what_was_there"},
	{"keeps what the last call lost", slotFaults{keepsLost: true}, "answers_of_slots_overwrite_what_was_there"},
	{"makes corrections of one kind", slotFaults{oneKindOnly: true}, "corrections_of_all_kinds_in_one_call"},
	{"policies share their state", slotFaults{sharesPolicies: true}, "BR048_slots_of_two_policies_of_one_subject"},
	{"joins policy and subject with a colon", slotFaults{joinsNames: true}, "hostile_subjects_of_slots"},
	{"kinds share their state", slotFaults{sharesKinds: true}, "slots_are_no_bucket_and_no_window"},
	{"names keys by the limit", slotFaults{nameByMax: true}, "key_names_of_slots"},
	{"names slots as it names buckets", slotFaults{namesAsBucket: true}, "key_names_of_slots"},
	{"names tell the subject", slotFaults{namesSubject: true}, "key_names_of_slots"},
	{"a reset does nothing", slotFaults{resetsNothing: true}, "reset_of_slots"},
	{"a reset leaves the leases", slotFaults{resetsRatesOnly: true}, "reset_of_slots"},
	{"a reset leaves the rates", slotFaults{resetsLeasesOnly: true}, "reset_of_rates"},
	{"a reset clears the subject", slotFaults{resetsSubject: true}, "a_reset_touches_its_key_only"},
	{"a reset clears the policy", slotFaults{resetsPolicy: true}, "a_reset_touches_its_key_only"},
}

func TestSlotTwins(t *testing.T) {
	cases := map[string]storetest.Case{}
	for _, list := range [][]storetest.Case{storetest.Cases(), storetest.WindowCases(), storetest.SlotCases(), storetest.SpreadCases(), storetest.SlotSpreadCases()} {
		for _, c := range list {
			if _, ok := cases[c.Name]; ok {
				t.Errorf("two cases are named %s", c.Name)
			}
			if c.Why == "" {
				t.Errorf("case %s does not say why", c.Name)
			}
			cases[c.Name] = c
		}
	}
	for _, twin := range slotTwins {
		t.Run(strings.ReplaceAll(twin.name, " ", "_")+"/"+twin.witness, func(t *testing.T) {
			c, ok := cases[twin.witness]
			if !ok {
				t.Fatalf("no case is named %s", twin.witness)
			}
			if storetest.FailuresOf(c, func() driver.Store { return newSlotTwin(twin.faults) }) == nil {
				t.Errorf("a store that %q passes %s", twin.name, twin.witness)
			}
		})
	}
	c := cases["leases_of_the_process_end_by_release_alone"]
	if storetest.FailuresOf(c, func() driver.Store { return newProcessTwin(slotFaults{endsInProcess: true}) }) == nil {
		t.Errorf("a store in the process whose leases end passes %s", c.Name)
	}
}

// TestSlotHistoriesCatch: faults that no hand-written case has to know of are caught by the random histories.
func TestSlotHistoriesCatch(t *testing.T) {
	for _, c := range storetest.SlotCases() {
		if c.Name != "BR157_histories_of_slots_agree_with_the_model" {
			continue
		}
		for i, f := range []slotFaults{
			{countsBefore: true}, {oneMore: true}, {deniedHolds: true}, {zeroTakes: true}, {zeroRefused: true}, {zeroTooLow: true}, {againTakes: true},
			{firstHalf: true}, {releasesAny: true}, {releaseCounts: true}, {renewRevives: true}, {renewAlways: true}, {renewIdle: true},
			{renewNever: true}, {renewElsewhere: true}, {renewTakes: true}, {neverSweeps: true}, {sweepsAtOnce: true}, {sweepsOldest: true},
			{lookSweeps: true}, {sweepUndone: true}, {endsLate: true}, {endsEarly: true}, {remembersMax: true}, {throwsOut: true}, {rateRefusedHolds: true},
			{slotRefusedPays: true}, {shadowRefuses: true}, {shadowHeldByRefused: true}, {shadowUnheld: true}, {sameKeyTwice: true},
			{snapshot: true}, {stopsAtRefusal: true}, {failsBatch: true}, {acceptsInvalid: true}, {invalidHolds: true}, {oneKindOnly: true},
			{sharesPolicies: true}, {sharesKinds: true},
		} {
			if storetest.FailuresOf(c, func() driver.Store { return newSlotTwin(f) }) == nil {
				t.Errorf("fault %d (%+v) agrees with the model", i, f)
			}
		}
	}
}

// hermit shares with the other handles what they look at to see whether they share anything, and nothing else.
type hermit struct{ driver.Store }

func (h hermit) Decide(ctx context.Context, now time.Time, batch []driver.Entry) error {
	if len(batch) == 1 && batch[0].Claims[0].Policy == "handles" {
		return common.Decide(ctx, now, batch)
	}
	return h.Store.Decide(ctx, now, batch)
}

var common = newTwin(faults{})

// deaf makes no corrections.
type deaf struct{ driver.Store }

func (deaf) Apply(context.Context, time.Time, []driver.Change) error { return nil }

// TestSeveralStoresAreCaught: a process that keeps its state to itself, and one whose corrections do not arrive.
func TestSeveralStoresAreCaught(t *testing.T) {
	for _, v := range []struct {
		cases    []storetest.Case
		name     string
		newStore func() driver.Store
	}{
		{storetest.Cases(), "histories_through_several_stores_agree_with_the_model", func() driver.Store { return newTwin(faults{}) }},
		{storetest.WindowCases(), "histories_of_windows_through_several_stores_agree_with_the_model", func() driver.Store { return newWindowTwin(windowFaults{}) }},
		{storetest.SlotCases(), "histories_of_slots_through_several_stores_agree_with_the_model", func() driver.Store { return newSlotTwin(slotFaults{}) }},
	} {
		found := false
		for _, c := range v.cases {
			if c.Name != v.name {
				continue
			}
			found = true
			one, made := v.newStore(), 0
			if got := storetest.FailuresOf(c, func() driver.Store { return handle{one} }); got != nil {
				t.Errorf("sound handles: %v", got)
			}
			if storetest.FailuresOf(c, func() driver.Store { return hermit{v.newStore()} }) == nil {
				t.Errorf("stores that keep to themselves pass %s", c.Name)
			}
			one = v.newStore()
			if storetest.FailuresOf(c, func() driver.Store {
				if made++; made > 1 {
					return deaf{one}
				}
				return one
			}) == nil {
				t.Errorf("a store whose corrections do not arrive passes %s", c.Name)
			}
		}
		if !found {
			t.Errorf("no case is named %s", v.name)
		}
	}
}
