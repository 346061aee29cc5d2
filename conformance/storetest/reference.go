package storetest

import (
	"fmt"

	"github.com/headgate-go/headgate/core/driver"
)

// reference is a store in as few lines as possible, slow and obvious: what every other one is compared with. It has no
// clock, no bound and no expiry.
type reference map[stateKey]driver.Bucket

type stateKey struct {
	policy, subject string
	kind            driver.Kind
}

// decide answers an entry at now (microseconds).
func (ref reference) decide(now int64, e *driver.Entry) {
	for i := range e.Claims {
		c := &e.Claims[i]
		if c.Cost < 0 || c.Rule.Kind() != driver.KindBucket || c.Rule.Validate() != nil {
			e.Err = fmt.Errorf("claim %d is not answerable", i)
			return
		}
	}
	// running is what the entry would leave; it becomes real only if every enforcing claim fits.
	running := map[stateKey]driver.Bucket{}
	levels := make([]driver.Level, len(e.Claims))
	taken := make([]bool, len(e.Claims))
	stands := true
	for i := range e.Claims {
		c := &e.Claims[i]
		k := stateKey{c.Policy, c.Subject, c.Rule.Kind()}
		state, ok := running[k]
		if !ok {
			state = ref[k]
		}
		levels[i] = state.Read(c.Rule, now)
		fits := c.Cost == 0 || levels[i].Fits(c.Cost)
		if !fits && !c.Shadow {
			stands = false
		}
		if fits && stands && c.Cost > 0 {
			running[k] = levels[i].Take(c.Rule, c.Cost)
			taken[i] = true
		}
	}
	for i := range e.Claims {
		c := &e.Claims[i]
		c.Result = levels[i].Result(c.Rule, c.Cost, taken[i] && stands)
	}
	if stands {
		for k, b := range running {
			ref[k] = b
		}
	}
}

// settle makes a [driver.Settle] change at now.
func (ref reference) settle(now int64, c *driver.Change) {
	k := stateKey{c.Policy, c.Subject, c.Rule.Kind()}
	state, ok := ref[k]
	if c.Amount == 0 || !ok && c.Amount < 0 {
		return // nothing to do; an absent key is full already
	}
	ref[k] = state.Read(c.Rule, now).Settle(c.Rule, c.Amount)
}
