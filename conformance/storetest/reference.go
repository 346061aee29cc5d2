package storetest

import (
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// reference is a store in as few lines as possible, slow and obvious: what every other one is compared with. It has no
// clock, no bound and no expiry.
type reference struct {
	states map[stateKey]state
	slots  map[key]driver.Slots
	// forever says that leases end by release alone, as in a store of the process.
	forever bool
}

// newReference returns a reference for what store promises.
func newReference(store driver.Store) *reference {
	_, forever := store.(driver.InProcess)
	return &reference{states: map[stateKey]state{}, slots: map[key]driver.Slots{}, forever: forever}
}

// stateKey tells a bucket from a window, but not one kind of window from another: it may change under a live key.
type stateKey struct {
	policy, subject string
	window          bool
}

// state is a bucket or a window.
type state struct {
	bucket driver.Bucket
	window driver.Window
}

// seen is a state as a rule finds it at a moment.
type seen struct {
	bucket driver.Level
	window driver.WindowLevel
}

func (s state) read(rule driver.Rule, now int64) seen {
	if rule.IsWindow() {
		return seen{window: s.window.Read(rule, now)}
	}
	return seen{bucket: s.bucket.Read(rule, now)}
}

func (s seen) fits(rule driver.Rule, cost int) bool {
	switch {
	case cost == 0:
		return true
	case rule.IsWindow():
		return s.window.Fits(rule, cost)
	}
	return s.bucket.Fits(cost)
}

func (s seen) take(rule driver.Rule, cost int) state {
	if rule.IsWindow() {
		return state{window: s.window.Take(cost)}
	}
	return state{bucket: s.bucket.Take(rule, cost)}
}

func (s seen) result(rule driver.Rule, cost int, taken bool) driver.Result {
	if rule.IsWindow() {
		return s.window.Result(rule, cost, taken)
	}
	return s.bucket.Result(rule, cost, taken)
}

func keyOf(policy, subject string, rule driver.Rule) stateKey {
	return stateKey{policy, subject, rule.IsWindow()}
}

// decide answers an entry at now (microseconds).
func (ref *reference) decide(now int64, e *driver.Entry) {
	for i := range e.Claims {
		c := &e.Claims[i]
		if c.Cost < 0 || c.Rule.Kind() == driver.KindUnlimited || c.Rule.Validate() != nil || c.CheckLease() != nil {
			e.Err = fmt.Errorf("claim %d is not answerable", i)
			return
		}
	}
	// running and taking are what the entry would leave; they become real only if every enforcing claim fits.
	running, taking := map[stateKey]state{}, map[key]driver.Slots{}
	levels, held := make([]seen, len(e.Claims)), make([]int, len(e.Claims))
	taken := make([]bool, len(e.Claims))
	stands := true
	for i := range e.Claims {
		c := &e.Claims[i]
		fits, isSlot := false, c.Rule.Kind() == driver.KindSlots
		k, sk := keyOf(c.Policy, c.Subject, c.Rule), key{c.Policy, c.Subject}
		if isSlot {
			held[i] = ref.held(sk, taking[sk], c, now)
			fits = c.Cost == 0 || held[i] < c.Rule.Capacity()
		} else {
			s, ok := running[k]
			if !ok {
				s = ref.states[k]
			}
			levels[i] = s.read(c.Rule, now)
			fits = levels[i].fits(c.Rule, c.Cost)
		}
		if !fits && !c.Shadow {
			stands = false
		}
		if !fits || !stands || c.Cost == 0 {
			continue
		}
		if taken[i] = true; !isSlot {
			running[k] = levels[i].take(c.Rule, c.Cost)
			continue
		}
		if taking[sk] == nil {
			taking[sk] = driver.Slots{}
		}
		taking[sk].Take(c.Lease, ref.until(now, c.LeaseFor))
	}
	for i := range e.Claims {
		c := &e.Claims[i]
		if c.Rule.Kind() == driver.KindSlots {
			c.Result = driver.SlotResult(c.Rule, c.Cost, held[i], taken[i] && stands)
		} else {
			c.Result = levels[i].result(c.Rule, c.Cost, taken[i] && stands)
		}
	}
	if !stands {
		return
	}
	maps.Copy(ref.states, running)
	for k, leases := range taking {
		if ref.slots[k] == nil {
			ref.slots[k] = driver.Slots{}
		}
		maps.Copy(ref.slots[k], leases)
	}
}

// held returns what a claim on slots finds: the leases that are there, and those that the entry would add. Leases that
// are over leave for good when a claim needs their place, whatever becomes of its entry.
func (ref *reference) held(k key, taking driver.Slots, c *driver.Claim, now int64) int {
	all := maps.Clone(ref.slots[k])
	if all == nil {
		all = driver.Slots{}
	}
	maps.Copy(all, taking)
	if c.Cost == 0 {
		return all.Live(now)
	}
	n := all.Held(c.Rule.Capacity(), now)
	maps.DeleteFunc(ref.slots[k], func(id driver.ID, _ int64) bool { _, stays := all[id]; return !stays })
	return n
}

// until returns when a lease ends that is taken or renewed at now.
func (ref *reference) until(now int64, d time.Duration) int64 {
	if ref.forever {
		return math.MaxInt64
	}
	return now + d.Microseconds()
}

// apply makes a change at now.
func (ref *reference) apply(now int64, c *driver.Change) {
	switch c.Kind {
	case driver.Settle:
		ref.settle(now, c)
	case driver.Release:
		ref.slots[key{c.Policy, c.Subject}].Release(c.Lease)
	case driver.Renew:
		c.Lost = !ref.slots[key{c.Policy, c.Subject}].Renew(c.Lease, ref.until(now, c.LeaseFor))
	}
}

func (ref *reference) settle(now int64, c *driver.Change) {
	k := keyOf(c.Policy, c.Subject, c.Rule)
	s, ok := ref.states[k]
	if c.Amount == 0 || !ok && c.Amount < 0 {
		return // nothing to do; an absent key is full already
	}
	switch level := s.read(c.Rule, now); {
	case !c.Rule.IsWindow():
		ref.states[k] = state{bucket: level.bucket.Settle(c.Rule, c.Amount)}
	case level.window.Runs(c.Receipt):
		ref.states[k] = state{window: level.window.Settle(c.Rule, c.Amount)}
	}
}
