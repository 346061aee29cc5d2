package storetest_test

import (
	"strings"
	"testing"

	"github.com/headgate-go/headgate/conformance/storetest"
	"github.com/headgate-go/headgate/core/driver"
)

// TestConformance: the twin without a fault is sound, or else the others prove nothing.
func TestConformance(t *testing.T) {
	storetest.Run(t, func(testing.TB) driver.Store { return newTwin(faults{}) })
}

func TestConformanceSpread(t *testing.T) {
	storetest.RunSpread(t, func(testing.TB) driver.Store { return newTwin(faults{}) })
}

// twins are deliberately broken stores, and for each the case that is there to catch its kind of fault.
var twins = []struct {
	name    string
	faults  faults
	witness string
}{
	{"charges refused requests", faults{chargesRefused: true}, "BR039_refused_changes_nothing"},
	{"charges the first limiter although the second refuses", faults{chargesFirst: true}, "BR149_hour_then_minute"},
	{"charges the first limiter although the second refuses", faults{chargesFirst: true}, "all_or_nothing"},
	{"entries of a batch read the same snapshot", faults{snapshot: true}, "entries_on_one_key_see_each_other"},
	{"checks, then acts", faults{checkThenAct: true}, "BR040_exactly_the_limit_passes"},
	{"lets burst + 1 pass", faults{offByOne: true}, "BR024_burst_is_what_passes_at_once"},
	{"a refused request writes the time down", faults{refusedWritesTime: true}, "refused_under_another_rule_leaves_no_trace"},
	{"two claims on one key do not see each other", faults{sameKeyTwice: true}, "two_claims_on_one_key"},
	{"charges shadow claims of refused requests", faults{shadowCharged: true}, "shadow_is_not_charged_for_refused_requests"},
	{"a shadow claim refuses", faults{shadowRefuses: true}, "shadow_never_refuses"},
	{"never charges shadow claims", faults{shadowUncharged: true}, "shadow_takes_when_admitted"},
	{"never charges shadow claims", faults{shadowUncharged: true}, "from_shadow_to_enforce"},
	{"a full shadow stops the next", faults{shadowsStopEachOther: true}, "shadows_do_not_stop_each_other"},
	{"cost 0 writes", faults{zeroWrites: true}, "BR018_cost_zero_is_a_pure_read"},
	{"cost 0 writes", faults{zeroWrites: true}, "cost_zero_under_another_rule_leaves_no_trace"},
	{"cost 0 is refused", faults{zeroRefused: true}, "cost_zero_among_others"},
	{"negative cost mints tokens", faults{negativeMints: true}, "BR019_negative_cost_mints_nothing"},
	{"a cost above capacity is told to wait", faults{costWithoutReason: true}, "BR016_cost_above_capacity"},
	{"one invalid entry fails the batch", faults{failsBatch: true}, "invalid_rule_hurts_its_own_entry_only"},
	{"every request writes the clock's time", faults{clockGoesBack: true, refusedWritesTime: true}, "BR013_a_slow_clock_among_others"},
	{"time goes back with the clock", faults{clockGoesBack: true}, "time_given_back_is_not_credited_twice"},
	{"a clock that steps back locks out", faults{clockFreezes: true}, "BR014_clock_steps_back"},
	{"remembers the rule", faults{rememberRule: true}, "BR042_a_new_limit_counts_at_the_next_request"},
	{"remembers the rule", faults{rememberRule: true}, "old_rule_does_not_delay"},
	{"drops the fraction", faults{dropsFraction: true}, "BR021_fast_polling_keeps_its_fraction"},
	{"counts whole seconds", faults{wholeSeconds: true}, "BR022_tokens_come_evenly"},
	{"counts whole seconds", faults{wholeSeconds: true}, "BR062_late_clock_keeps_every_digit"},
	{"says full where the product is wide", faults{fullWhenWide: true}, "wide_product"},
	{"wraps after a long idle time", faults{wraps: true}, "BR008_long_idle"},
	{"rounds retry after down", faults{roundsDown: true}, "BR153_waiting_as_told_is_enough"},
	{"rounds retry after up", faults{roundsUp: true}, "BR153_waiting_as_told_is_enough"},
	{"joins policy and subject with a colon", faults{joinsNames: true}, "joined_names_do_not_meet"},
	{"policies share their state", faults{sharesPolicies: true}, "BR048_two_policies_of_one_subject"},
	{"cuts long subjects", faults{cutsSubjects: true}, "hostile_subjects"},
	{"ends subjects at a zero byte", faults{cString: true}, "hostile_subjects"},
	{"evaluates nothing after a refusal", faults{stopsAtRefusal: true}, "every_claim_is_evaluated"},
	{"answers as if it had been taken", faults{answersAsTaken: true}, "every_claim_is_evaluated"},
	{"keeps the Err of the last call", faults{keepsOldErr: true}, "answers_overwrite_what_was_there"},
	{"keeps the result of the last call", faults{keepsOldResult: true}, "answers_overwrite_what_was_there"},
	{"a give-back overfills", faults{overfills: true}, "give_back_fills_at_most"},
	{"debt has no bound", faults{deepDebt: true}, "debt_is_one_capacity_at_most"},
	{"a give-back creates a key", faults{createsOnGiveBack: true}, "give_back_to_an_absent_key"},
	{"a settlement asks whether it fits", faults{asksWhenSettling: true}, "settle_takes_without_asking"},
	{"corrections are lost", faults{settleLost: true}, "settled_at_once"},
	{"works after Close", faults{worksAfterClose: true}, "close"},
	{"second Close fails", faults{secondCloseFails: true}, "close"},
	{"a canceled context is a refusal", faults{canceledRefuses: true}, "canceled_context_is_not_a_refusal"},
}

// TestTwins proves that each broken store is caught, by the case made for its fault.
func TestTwins(t *testing.T) {
	cases := map[string]storetest.Case{}
	for _, c := range storetest.Cases() {
		if _, ok := cases[c.Name]; ok {
			t.Errorf("two cases are named %s", c.Name)
		}
		if c.Why == "" {
			t.Errorf("case %s does not say why", c.Name)
		}
		cases[c.Name] = c
	}
	for _, twin := range twins {
		t.Run(strings.ReplaceAll(twin.name, " ", "_")+"/"+twin.witness, func(t *testing.T) {
			c, ok := cases[twin.witness]
			if !ok {
				t.Fatalf("no case is named %s", twin.witness)
			}
			if storetest.FailuresOf(c, func() driver.Store { return newTwin(twin.faults) }) == nil {
				t.Errorf("a store that %q passes %s", twin.name, twin.witness)
			}
		})
	}
}

// TestHistoriesCatchArithmetic: faults that no hand-written case has to know of are caught by the random histories.
func TestHistoriesCatchArithmetic(t *testing.T) {
	for _, c := range storetest.Cases() {
		if c.Name != "BR157_histories_agree_with_the_model" {
			continue
		}
		for i, f := range []faults{
			{chargesRefused: true}, {chargesFirst: true}, {snapshot: true}, {offByOne: true}, {refusedWritesTime: true}, {sameKeyTwice: true},
			{shadowCharged: true}, {shadowRefuses: true}, {shadowUncharged: true}, {shadowsStopEachOther: true}, {zeroWrites: true},
			{zeroRefused: true}, {negativeMints: true}, {costWithoutReason: true}, {failsBatch: true}, {clockGoesBack: true},
			{clockFreezes: true}, {rememberRule: true}, {dropsFraction: true}, {wholeSeconds: true}, {fullWhenWide: true}, {wraps: true},
			{roundsDown: true}, {roundsUp: true}, {sharesPolicies: true}, {stopsAtRefusal: true}, {answersAsTaken: true}, {overfills: true},
			{deepDebt: true}, {asksWhenSettling: true},
		} {
			if storetest.FailuresOf(c, func() driver.Store { return newTwin(f) }) == nil {
				t.Errorf("fault %d (%+v) agrees with the model", i, f)
			}
		}
	}
}

// TestFailures: the exported form finds nothing in a sound store, and names the case of a broken one.
func TestFailures(t *testing.T) {
	if got := storetest.Failures(func() driver.Store { return newTwin(faults{}) }); got != nil {
		t.Errorf("a sound store fails: %v", got)
	}
	got := storetest.Failures(func() driver.Store { return newTwin(faults{worksAfterClose: true, secondCloseFails: true}) })
	for _, f := range got {
		if !strings.HasPrefix(f, "close") {
			t.Errorf("unexpected failure %q", f)
		}
	}
	if len(got) == 0 {
		t.Error("a store that cannot be closed passes")
	}
}

// TestHandlesOnSharedState: a factory may hand out handles on one state, as that of a Redis store does.
func TestHandlesOnSharedState(t *testing.T) {
	one := newTwin(faults{})
	if got := storetest.Failures(func() driver.Store { return handle{one} }); got != nil {
		for _, f := range got {
			if !strings.HasPrefix(f, "close") { // these handles do not close
				t.Error(f)
			}
		}
	}
	racy := newTwin(faults{checkThenAct: true})
	if storetest.Failures(func() driver.Store { return handle{racy} }) == nil {
		t.Error("a racy shared store passes")
	}
}

// handle is one of several on a store, which a case may close.
type handle struct{ driver.Store }

func (handle) Close() error { return nil }
