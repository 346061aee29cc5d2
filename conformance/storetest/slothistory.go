package storetest

import (
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

var slotHistoryCases = []Case{
	{"BR157_histories_of_slots_agree_with_the_model", "whatever the times, limits, leases, releases and renewals are, a store admits exactly what the model admits",
		func(p *probe) { p.histories(slotHistoryRules(), apart) }},
	{"histories_of_slots_through_several_stores_agree_with_the_model", "a process that counts its own leases only, or cannot release those of another",
		func(p *probe) { p.histories(slotHistoryRules(), byTurns) }},
}

// slotHistoryRules are slots, and as many rates beside them: a policy may change from one to the other.
func slotHistoryRules() []driver.Rule {
	return []driver.Rule{
		driver.NewSlots(1), driver.NewSlots(2), driver.NewSlots(3), driver.NewSlots(4), driver.NewSlots(5), driver.NewSlots(9),
		driver.NewSlots(20), driver.NewSlots(driver.MaxCount),
		perSecond(10, 10), perMinute(7, 3), perSecond(2, 30), fixed(5, time.Second), sliding(7, 2*time.Second), fixed(100, time.Minute),
	}
}

// slot claims one of the slots of a rule, or looks at them, or asks for what cannot be answered.
func (h *history) slot(k key, rule driver.Rule) driver.Claim {
	c := k.claim(rule, 1)
	c.Lease, c.LeaseFor = newLease(), h.leaseTime()
	switch h.rng.IntN(40) {
	case 0, 1, 2:
		c.Cost = 0
	case 3:
		c.Cost = 2
	case 4:
		c.Lease = driver.ID{}
	case 5:
		c.LeaseFor += time.Microsecond
	case 6:
		c.Cost, c.Lease, c.LeaseFor = 0, driver.ID{}, 0
	}
	return c
}

// askAgain turns a claim on a slot into one whose answer was lost and that is sent again, alone: in company it may be
// counted twice until the call is over.
func (h *history) askAgain(c *driver.Claim) {
	if ids := h.leases[key{c.Policy, c.Subject}]; c.Rule.Kind() == driver.KindSlots && len(ids) > 0 {
		c.Lease = ids[len(ids)-1-min(h.rng.IntN(len(ids)), h.rng.IntN(4))]
	}
}

func (h *history) leaseTime() time.Duration {
	times := []time.Duration{time.Millisecond, time.Second, 2 * time.Second, 10 * time.Second, time.Hour}
	return times[h.rng.IntN(len(times))]
}

// leaseChanges adds releases and renewals, each of another lease: what becomes of one that is released and renewed in one
// call is nobody's promise.
func (h *history) leaseChanges(changes []driver.Change) []driver.Change {
	used := map[driver.ID]bool{}
	for range h.rng.IntN(4) * h.rng.IntN(2) {
		i := h.rng.IntN(len(h.keys))
		k, of, rule := h.keys[i], h.keys[i], h.rules[i/2]
		if h.chance(12) {
			of = h.keys[h.rng.IntN(len(h.keys))] // a lease of another key, mostly
		}
		ids := h.leases[of]
		if rule.Kind() != driver.KindSlots || len(ids) == 0 {
			continue
		}
		id := ids[len(ids)-1-min(h.rng.IntN(len(ids)), h.rng.IntN(8))] // mostly one of the latest
		if h.chance(20) {
			id = newLease()
		}
		if used[id] {
			continue
		}
		used[id] = true
		if h.chance(3) {
			changes = append(changes, k.renewed(rule.Capacity(), id, h.leaseTime()))
		} else {
			changes = append(changes, k.released(rule.Capacity(), id))
		}
	}
	return changes
}
