package storetest

import (
	"fmt"

	"github.com/headgate-go/headgate/core/driver"
)

// reference is a store in as few lines as possible, slow and obvious: what every other one is compared with. It has no
// clock, no bound and no expiry.
type reference map[stateKey]state

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
func (ref reference) decide(now int64, e *driver.Entry) {
	for i := range e.Claims {
		c := &e.Claims[i]
		if c.Cost < 0 || c.Rule.Kind() == driver.KindUnlimited || c.Rule.Validate() != nil {
			e.Err = fmt.Errorf("claim %d is not answerable", i)
			return
		}
	}
	// running is what the entry would leave; it becomes real only if every enforcing claim fits.
	running := map[stateKey]state{}
	levels := make([]seen, len(e.Claims))
	taken := make([]bool, len(e.Claims))
	stands := true
	for i := range e.Claims {
		c := &e.Claims[i]
		k := keyOf(c.Policy, c.Subject, c.Rule)
		s, ok := running[k]
		if !ok {
			s = ref[k]
		}
		levels[i] = s.read(c.Rule, now)
		fits := levels[i].fits(c.Rule, c.Cost)
		if !fits && !c.Shadow {
			stands = false
		}
		if fits && stands && c.Cost > 0 {
			running[k] = levels[i].take(c.Rule, c.Cost)
			taken[i] = true
		}
	}
	for i := range e.Claims {
		c := &e.Claims[i]
		c.Result = levels[i].result(c.Rule, c.Cost, taken[i] && stands)
	}
	if stands {
		for k, s := range running {
			ref[k] = s
		}
	}
}

// settle makes a [driver.Settle] change at now.
func (ref reference) settle(now int64, c *driver.Change) {
	k := keyOf(c.Policy, c.Subject, c.Rule)
	s, ok := ref[k]
	if c.Amount == 0 || !ok && c.Amount < 0 {
		return // nothing to do; an absent key is full already
	}
	switch level := s.read(c.Rule, now); {
	case !c.Rule.IsWindow():
		ref[k] = state{bucket: level.bucket.Settle(c.Rule, c.Amount)}
	case level.window.Runs(c.Receipt):
		ref[k] = state{window: level.window.Settle(c.Rule, c.Amount)}
	}
}
