package driver

import (
	"errors"
	"fmt"
	"time"
)

// Bounds of [Claim.LeaseFor]: whole milliseconds within.
const (
	MinLease = time.Millisecond
	MaxLease = MaxPeriod
)

// NewSlots is the rule of concurrency limiters: at most n leases of a key are held at one time.
func NewSlots(n int) Rule { return Rule{kind: KindSlots, burst: n, count: n} }

// InProcess is implemented by stores whose state ends with the process that uses them. Their calls wait for nothing, and
// their leases end by release alone: nobody can die and leave one behind. A gate does not renew leases in them, and
// corrects them on the caller's own goroutine.
type InProcess interface{ InProcess() }

// Slots is the reference model of one key's leases: the instant at which each ends unless it is renewed, in microseconds of
// the store's clock. A lease that is over still counts until somebody needs its place: then Remaining may be low for a
// while, and is never high. A store that is [InProcess] knows no such instant.
type Slots map[ID]int64

// Held returns how many leases count against n at now. If there is no place left it first sweeps what is over.
func (s Slots) Held(n int, now int64) int {
	if len(s) >= n {
		for id, until := range s {
			if until <= now {
				delete(s, id)
			}
		}
	}
	return len(s)
}

// Live returns how many leases are not over at now. It is what a pure read sees, and unlike Held it sweeps nothing: a lease
// that is over and not swept can still be renewed.
func (s Slots) Live(now int64) int {
	live := 0
	for _, until := range s {
		if until > now {
			live++
		}
	}
	return live
}

// Take adds a lease. It is called where Held was below n.
func (s Slots) Take(id ID, until int64) { s[id] = until }

// Renew extends a lease, also one that is over and still counts. False: it was swept or released, and stays gone.
func (s Slots) Renew(id ID, until int64) bool {
	if _, ok := s[id]; !ok {
		return false
	}
	s[id] = until
	return true
}

// Release ends a lease. Releasing one that is not there is no fault.
func (s Slots) Release(id ID) { delete(s, id) }

// SlotResult is what a store says of a claim on slots, where held is what Held returned, or with a cost of 0 what Live did:
// a pure read asks for no place, so it takes no slot, writes nothing, and its Remaining is exact.
// RetryAfter and ResetAfter are 0: when a slot becomes free, nobody knows.
func SlotResult(rule Rule, cost, held int, taken bool) Result {
	n := rule.Capacity()
	res := Result{Allowed: cost == 0 || held < n, Remaining: max(0, n-held)}
	if taken {
		res.Remaining--
	}
	if !res.Allowed {
		res.Reason = ReasonLimit
	}
	return res
}

// CheckLease says what is wrong with a claim on slots: its cost is 0 or 1, and with 1 it names a lease and how long it lives.
func (c *Claim) CheckLease() error {
	switch {
	case c.Rule.kind != KindSlots:
		return nil
	case c.Cost < 0 || c.Cost > 1:
		return fmt.Errorf("cost %d; a request takes one slot, or with cost 0 looks at them", c.Cost)
	case c.Cost == 0:
		return nil
	case c.Lease == ID{}:
		return errors.New("the lease has no ID")
	}
	return CheckLeaseTime(c.LeaseFor)
}

// CheckLeaseTime says what is wrong with a lease time.
func CheckLeaseTime(d time.Duration) error {
	if d < MinLease || d > MaxLease || d%time.Millisecond != 0 {
		return fmt.Errorf("lease time %s; whole milliseconds, %v to %v", ascii(d), MinLease, MaxLease)
	}
	return nil
}

func (r Rule) validateSlots() error {
	if r.burst < 1 || r.burst > MaxCount {
		return fmt.Errorf("%d slots; 1 to %d (Off is a mode, not a number)", r.burst, MaxCount)
	}
	switch {
	case r.p == burstGiven:
		return errors.New("slots have no burst")
	case r.per != 0:
		return errors.New("slots have no period; NewSlots makes them")
	}
	return nil
}
