package memory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// Apply makes the changes one after another; see [driver.Store]. One that makes no sense (an invalid rule, an unknown
// kind of change) is left out and reported in the error, without hurting the others.
//
// A lease is found by policy, subject and ID; the rule of a Release or Renew is not looked at. Renew leaves a lease as it is,
// since nothing but a Release ends it.
func (s *Store) Apply(_ context.Context, now time.Time, changes []driver.Change) error {
	if s.closed.Load() {
		return driver.ErrClosed
	}
	var clk clock
	var problems []error
	for i := range changes {
		switch c := &changes[i]; c.Kind {
		case driver.Settle:
			if !knownBucket(&c.Rule) && !knownWindow(&c.Rule) {
				problems = append(problems, explain("change", i, c.Policy, c.Rule, 0))
				continue
			}
			if clk.now == 0 {
				clk = s.read(now)
			}
			s.settle(c, clk)
		case driver.Release:
			s.release(c)
		case driver.Renew:
			if err := driver.CheckLeaseTime(c.LeaseFor); err != nil {
				problems = append(problems, failure("change", i, c.Policy, err))
				continue
			}
			c.Lost = !s.holds(c)
		default:
			problems = append(problems, fmt.Errorf("memory: change %d: unknown kind %d", i, c.Kind))
		}
	}
	if len(problems) > 0 {
		return &driver.Error{Class: driver.ClassOther, Err: errors.Join(problems...)}
	}
	return nil
}

// settle takes or gives back without asking whether it fits. A key without state is full: there is nothing to give back
// to it. A key that becomes full keeps its state until the sweeper comes, as it would in a shared store.
func (s *Store) settle(c *driver.Change, clk clock) {
	if c.Amount == 0 {
		return
	}
	kind := stateOf(&c.Rule)
	h := s.hash(c.Policy, c.Subject, kind)
	sh := s.shard(h)
	sh.mu.Lock()
	i, found := sh.find(h)
	if !found && c.Amount < 0 {
		sh.mu.Unlock()
		return
	}
	var state cell
	if found {
		state = sh.slots[i].cell
	}
	var tick uint32
	if kind == bucketState {
		b := state.bucket().Read(c.Rule, clk.now).Settle(c.Rule, c.Amount)
		left := b.Read(c.Rule, b.Time).Wait(c.Rule, int64(c.Rule.Capacity()))
		state, tick = bucketCell(b), clk.freshAt(b.Time, driver.Micros(left))
	} else {
		level := state.window().Read(c.Rule, clk.now)
		if !level.Runs(c.Receipt) { // what was taken then does not count any more
			sh.mu.Unlock()
			return
		}
		w := level.Settle(c.Rule, c.Amount)
		state, tick = windowCell(w), clk.overAt(level, w.Cur, c.Rule)
	}
	s.write(h, state, tick, clk)
	sh.mu.Unlock()
	s.sweepBy(tick, clk)
}
