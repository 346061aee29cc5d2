package faulttest_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/conformance/faulttest"
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/stores/redisscript"
)

// slotTwins are stores that do one thing about slots wrong, and for each the case that catches it.
var slotTwins = []struct {
	name    string
	faults  faults // of the client
	apart   bool   // each claim is decided by itself
	drops   driver.ChangeKind
	keeps   bool // a reset does nothing
	patient bool // a decision has no deadline
	witness string
}{
	{name: "decides claim by claim", apart: true, witness: "BR077_rate_and_slots_in_one_call"},
	{name: "renews nothing", drops: driver.Renew, witness: "changes_of_leases"},
	{name: "releases nothing", drops: driver.Release, witness: "changes_of_leases"},
	{name: "resets nothing", keeps: true, witness: "changes_of_leases"},
	{name: "has no deadline", patient: true, witness: "slots_of_a_silent_server"},
	{name: "gives nothing back", faults: faults{losesCommands: true}, witness: "slots_of_a_silent_server"},
}

// slotTwin is a sound store with one of these faults.
type slotTwin struct {
	*redisscript.Store
	apart, keeps, patient bool
	drops                 driver.ChangeKind
}

func (s slotTwin) Decide(ctx context.Context, now time.Time, batch []driver.Entry) error {
	if s.patient {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
	}
	if !s.apart {
		return s.Store.Decide(ctx, now, batch)
	}
	for i := range batch[0].Claims {
		if err := s.Store.Decide(ctx, now, []driver.Entry{{Claims: batch[0].Claims[i : i+1]}}); err != nil {
			return err
		}
	}
	return nil
}

func (s slotTwin) Apply(ctx context.Context, now time.Time, changes []driver.Change) error {
	if s.drops != 0 {
		changes = slices.DeleteFunc(slices.Clone(changes), func(c driver.Change) bool { return c.Kind == s.drops })
	}
	return s.Store.Apply(ctx, now, changes)
}

func (s slotTwin) Reset(ctx context.Context, policy, subject string) error {
	if s.keeps {
		return nil
	}
	return s.Store.Reset(ctx, policy, subject)
}

// TestSlots: a store without a fault passes, and each with one is caught.
func TestSlots(t *testing.T) {
	faulttest.RunSlots(t, newReference)
	cases := map[string]faulttest.Case{}
	for _, c := range faulttest.SlotCases() {
		cases[c.Name] = c
	}
	for _, twin := range slotTwins {
		t.Run(strings.ReplaceAll(twin.name, " ", "_")+"/"+twin.witness, func(t *testing.T) {
			found := faulttest.Failures(t, cases[twin.witness], func(tb testing.TB, addr string) driver.Store {
				return slotTwin{Store: open(tb, addr, twin.faults), apart: twin.apart, keeps: twin.keeps, patient: twin.patient, drops: twin.drops}
			})
			if found == nil {
				t.Errorf("a store that %q passes %s", twin.name, twin.witness)
			}
			t.Log(strings.Join(found, "\n"))
		})
	}
}
