package storetest_test

import (
	"strings"
	"testing"

	"github.com/headgate-go/headgate/conformance/storetest"
	"github.com/headgate-go/headgate/core/driver"
)

// TestConformanceWindows: the twin without a fault is sound, or else the others prove nothing.
func TestConformanceWindows(t *testing.T) {
	storetest.RunWindows(t, func(testing.TB) driver.Store { return newWindowTwin(windowFaults{}) })
}

// windowTwins are stores with deliberately broken windows, and for each the case that is there to catch its kind of fault.
var windowTwins = []struct {
	name    string
	faults  windowFaults
	witness string
}{
	{"counts refused requests", windowFaults{deniedCounts: true}, "BR028_steady_overload"},
	{"counts refused requests", windowFaults{deniedCounts: true}, "BR039_refused_requests_do_not_count_in_a_window"},
	{"every request renews the expiry", windowFaults{endsAfterLast: true}, "BR029_slow_poller"},
	{"a refused request writes the time down", windowFaults{deniedMovesTime: true}, "refused_under_another_window_leaves_no_trace"},
	{"lets limit + 1 pass", windowFaults{oneMore: true}, "BR033_equal_times"},
	{"counts equal times once", windowFaults{equalTimesOnce: true}, "BR033_equal_times"},
	{"counts, decides, then cleans", windowFaults{countsBeforeCleaning: true}, "BR032_old_requests_do_not_count"},
	{"checks, then acts", windowFaults{checkThenAct: true}, "BR040_exactly_the_limit_of_a_window_passes"},
	{"checks, then acts", windowFaults{checkThenAct: true}, "bucket_and_window_at_once"},
	{"the largest cost wraps", windowFaults{maxCostWraps: true}, "BR016_cost_above_a_window"},
	{"cost 0 is refused", windowFaults{zeroRefused: true}, "BR018_cost_zero_reads_a_window"},
	{"cost 0 writes the time down", windowFaults{zeroMovesTime: true}, "refused_under_another_window_leaves_no_trace"},
	{"begins a window with the first request", windowFaults{fromFirstHit: true}, "windows_are_aligned"},
	{"an edge belongs to the window that ends", windowFaults{edgeLate: true}, "windows_are_aligned"},
	{"an edge belongs to the window that ends", windowFaults{edgeLate: true}, "months"},
	{"sliding forgets the window before", windowFaults{forgetsPrev: true}, "BR027_burst_at_an_edge"},
	{"sliding forgets the window before", windowFaults{forgetsPrev: true}, "only_the_window_before_overlaps"},
	{"the window before counts for ever", windowFaults{prevForEver: true}, "only_the_window_before_overlaps"},
	{"the window before counts for ever", windowFaults{prevForEver: true}, "BR008_long_idle_of_windows"},
	{"cuts lengths to whole seconds", windowFaults{wholeSeconds: true}, "BR037_short_windows"},
	{"time goes back with the clock", windowFaults{clockBack: true}, "BR013_a_clock_back_over_an_edge"},
	{"slides by division", windowFaults{floatDivision: true}, "sliding_products_are_exact"},
	{"slides by products of doubles", windowFaults{floatProducts: true}, "sliding_products_are_exact"},
	{"slides by products of 64 bits", windowFaults{plainProducts: true}, "sliding_products_are_exact"},
	{"days of 24 hours", windowFaults{days24: true}, "days_of_23_and_25_hours"},
	{"months of 30 days", windowFaults{months30: true}, "months"},
	{"days of the server's zone", windowFaults{utcOnly: true}, "days_west_and_east"},
	{"takes what time.Date says for midnight", windowFaults{dateIsFirst: true}, "days_without_a_midnight"},
	{"a change of kind loses the counts", windowFaults{kindLosesCounts: true}, "a_change_of_kind_keeps_the_counts"},
	{"a change of length loses the counts", windowFaults{lengthLosesCounts: true}, "a_change_of_length_keeps_the_counts"},
	{"remembers the limit", windowFaults{remembersLimit: true}, "BR042_a_new_limit_of_a_window_counts_at_once"},
	{"remembers the limit", windowFaults{remembersLimit: true}, "BR044_a_reload_keeps_the_counts"},
	{"bucket and window share their state", windowFaults{bucketShares: true}, "a_bucket_is_not_a_window"},
	{"policies share their state", windowFaults{sharesPolicies: true}, "BR048_windows_of_two_lengths_on_one_subject"},
	{"policies share their state", windowFaults{sharesPolicies: true}, "settled_windows_touch_their_key_only"},
	{"charges the first limiter although the second refuses", windowFaults{chargesFirst: true}, "all_or_nothing_of_bucket_and_window"},
	{"charges the first limiter although the second refuses", windowFaults{chargesFirst: true}, "BR149_day_then_minute"},
	{"entries of a batch read the same snapshot", windowFaults{snapshot: true}, "windows_of_a_batch_see_each_other"},
	{"two claims on one key do not see each other", windowFaults{sameKeyTwice: true}, "two_claims_on_one_window"},
	{"charges shadow claims of refused requests", windowFaults{shadowCharged: true}, "shadow_windows"},
	{"a shadow claim refuses", windowFaults{shadowRefuses: true}, "shadow_windows"},
	{"one invalid entry fails the batch", windowFaults{failsBatch: true}, "invalid_windows_hurt_their_own_entry_only"},
	{"takes invalid windows", windowFaults{acceptsInvalid: true}, "invalid_windows_hurt_their_own_entry_only"},
	{"says the whole window", windowFaults{retryWhole: true}, "BR152_retry_is_the_rest"},
	{"rounds retry after down", windowFaults{retryShort: true}, "BR153_waiting_for_a_window_as_told_is_enough"},
	{"says the rest of a sliding window", windowFaults{retryRest: true}, "BR153_waiting_for_a_window_as_told_is_enough"},
	{"keeps the receipt of the last call", windowFaults{keepsReceipt: true}, "answers_of_windows_overwrite_what_was_there"},
	{"names keys by kind", windowFaults{nameByKind: true}, "key_names_of_windows"},
	{"does not look at receipts", windowFaults{ignoresReceipts: true}, "a_window_that_is_over_is_left_alone"},
	{"does not look at receipts", windowFaults{ignoresReceipts: true}, "calendar_windows_that_are_over"},
	{"looks at the start in a receipt only", windowFaults{receiptByStart: true}, "a_receipt_of_another_length"},
	{"drops what has a receipt", windowFaults{dropsReceipts: true}, "give_back_to_a_window"},
	{"a give-back is credit", windowFaults{givesCredit: true}, "give_back_to_a_window"},
	{"a give-back is credit", windowFaults{givesCredit: true}, "give_back_to_an_absent_window"},
	{"counts without a bound", windowFaults{noBound: true}, "settle_counts_without_asking"},
	{"gives back two limits at most", windowFaults{givesTwoLimits: true}, "give_back_after_a_limit_was_lowered"},
	{"a settlement asks whether it fits", windowFaults{asksWhenSettling: true}, "settle_counts_without_asking"},
	{"corrections are lost", windowFaults{settleLost: true}, "windows_settled_at_once"},
}

func TestWindowTwins(t *testing.T) {
	cases := map[string]storetest.Case{}
	for _, c := range append(storetest.Cases(), storetest.WindowCases()...) {
		if _, ok := cases[c.Name]; ok {
			t.Errorf("two cases are named %s", c.Name)
		}
		if c.Why == "" {
			t.Errorf("case %s does not say why", c.Name)
		}
		cases[c.Name] = c
	}
	for _, twin := range windowTwins {
		t.Run(strings.ReplaceAll(twin.name, " ", "_")+"/"+twin.witness, func(t *testing.T) {
			c, ok := cases[twin.witness]
			if !ok {
				t.Fatalf("no case is named %s", twin.witness)
			}
			if storetest.FailuresOf(c, func() driver.Store { return newWindowTwin(twin.faults) }) == nil {
				t.Errorf("a store that %q passes %s", twin.name, twin.witness)
			}
		})
	}
}

// TestWindowHistoriesCatchArithmetic: faults that no hand-written case has to know of are caught by the random histories.
func TestWindowHistoriesCatchArithmetic(t *testing.T) {
	for _, c := range storetest.WindowCases() {
		if c.Name != "BR157_histories_of_windows_agree_with_the_model" {
			continue
		}
		for i, f := range []windowFaults{
			{deniedCounts: true}, {deniedMovesTime: true}, {oneMore: true}, {equalTimesOnce: true}, {countsBeforeCleaning: true},
			{maxCostWraps: true}, {zeroRefused: true}, {zeroMovesTime: true}, {fromFirstHit: true}, {edgeLate: true}, {forgetsPrev: true},
			{prevForEver: true}, {wholeSeconds: true}, {clockBack: true}, {plainProducts: true}, {months30: true}, {utcOnly: true},
			{kindLosesCounts: true}, {lengthLosesCounts: true}, {remembersLimit: true}, {bucketShares: true}, {sharesPolicies: true},
			{chargesFirst: true}, {snapshot: true}, {sameKeyTwice: true}, {shadowCharged: true}, {shadowRefuses: true}, {failsBatch: true},
			{retryWhole: true}, {retryShort: true}, {retryRest: true}, {ignoresReceipts: true}, {dropsReceipts: true},
			{givesCredit: true}, {noBound: true}, {asksWhenSettling: true}, {endsAfterLast: true},
		} {
			if storetest.FailuresOf(c, func() driver.Store { return newWindowTwin(f) }) == nil {
				t.Errorf("fault %d (%+v) agrees with the model", i, f)
			}
		}
	}
}
