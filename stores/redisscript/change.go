package redisscript

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// Apply implements [driver.Store]. Changes that are wrong by themselves are left out, and the error says so.
//
// What is settled or renewed goes by the script, at most 64 changes a call, and shares calls with decisions; what is released
// needs no script and goes in one pipeline, at the same time. After an error some changes may have been made; Lost is
// written only where the server answered.
func (s *Store) Apply(ctx context.Context, now time.Time, changes []driver.Change) error {
	micros, err := s.check(now)
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		return s.queue.open()
	}
	gives, wrong := s.releases(changes)
	var failed error
	for i := range gives {
		if err := s.start(ctx, gives[i].job); err != nil {
			gives[i].job, failed = nil, errors.Join(failed, s.onPart(gives[i].slot, err))
		}
	}
	err = s.correct(ctx, micros, changes)
	for _, give := range gives {
		if give.job == nil {
			continue
		}
		if err := s.laneAt(give.slot).wait(ctx, give.job); err != nil {
			failed = errors.Join(failed, s.onPart(give.slot, err))
		} else {
			s.queue.recycle(give.job)
		}
	}
	return errors.Join(failed, err, wrong)
}

// giving is a job that gives leases back, and one of its slots, which are all of one lane: those of a node that hangs do not
// hold up the others.
type giving struct {
	job  *job
	slot int
}

// releases returns what gives leases back, and what was wrong with some.
func (s *Store) releases(changes []driver.Change) (gives []giving, wrong error) {
	var r request
	var lists [lanes]leaseList
	for i := range changes {
		c := &changes[i]
		if c.Kind != driver.Release {
			continue
		}
		if err := checkLease(c); err != nil {
			wrong = errors.Join(wrong, err)
			continue
		}
		key, lane := r.keyOf(s.prefix, c.Policy, c.Subject, kindSlots), 0
		if s.cluster {
			lane = laneOf(Slot(key))
		}
		lists[lane].add(key, string(c.Lease[:]))
	}
	for i := range lists {
		commands := lists[i].commands
		if len(commands) == 0 {
			continue
		}
		j := s.queue.newJob(0)
		j.commands, j.slot = commands, Slot(commands[0][1])
		gives = append(gives, giving{j, j.slot})
	}
	return gives, wrong
}

// correct makes the changes that go by the script.
func (s *Store) correct(ctx context.Context, micros int64, changes []driver.Change) error {
	at := clock(micros)
	var wrong, failed error
	for len(changes) > 0 {
		j := s.queue.newJob(micros)
		j.request.at = at
		n := 0
		for ; n < len(changes) && len(j.request.claims) < packClaims; n++ {
			if err := j.request.addChange(s.prefix, &changes[n]); err != nil {
				wrong = errors.Join(wrong, err)
			}
		}
		// After a failure the rest is asked all the same, in the time that is left: it may be about other nodes.
		if err := s.have(ctx, j, nil); err != nil {
			failed = errors.Join(failed, err)
		} else {
			j.request.lost(changes[:n])
			s.queue.recycle(j)
		}
		changes = changes[n:]
	}
	return errors.Join(failed, wrong)
}

// addChange appends a change as a request of its own, if it goes by the script.
func (r *request) addChange(prefix string, c *driver.Change) error {
	switch c.Kind {
	case driver.Settle:
		return r.addSettle(prefix, c)
	case driver.Renew:
		return r.addRenew(prefix, c)
	case driver.Release:
		return nil
	}
	return fmt.Errorf("redisscript: policy %q: change of kind %d; Settle, Release and Renew are known", c.Policy, c.Kind)
}

func (r *request) addSettle(prefix string, c *driver.Change) error {
	// More than twice the capacity changes nothing: from full to the deepest debt.
	amount := min(max(c.Amount, -2*driver.MaxCount), 2*driver.MaxCount)
	next, err := r.claimOf(prefix, c.Policy, c.Subject, c.Rule, amount)
	if err == nil && next.op == opSlots {
		err = fmt.Errorf("redisscript: policy %q: slots are not settled; a lease is released or renewed", c.Policy)
	}
	if err != nil || amount == 0 {
		return err
	}
	next.flags = flagLast | flagSettle
	if c.Rule.IsWindow() && c.Receipt.Unit > 0 {
		if !next.has(c.Receipt) {
			return nil // of a window of another rule
		}
		next.flags |= flagReceipt
		next.start = math.Float64bits(float64(c.Receipt.Start))
	}
	next.v[3] = math.Float64bits(float64(amount))
	r.claims = append(r.claims, next)
	return nil
}

func (r *request) addRenew(prefix string, c *driver.Change) error {
	if err := checkLease(c); err != nil {
		return err
	}
	next := r.claimOn(r.keyOf(prefix, c.Policy, c.Subject, kindSlots))
	next.op, next.flags = opRenew, flagLast
	next.setLease(0, c.Lease, c.LeaseFor)
	r.claims = append(r.claims, next)
	return nil
}

// checkLease says what is wrong with a change of a lease. How many may be held does not matter, nor whether the lease exists.
func checkLease(c *driver.Change) (err error) {
	switch {
	case c.Rule.Kind() != driver.KindSlots:
		err = fmt.Errorf("rule %v has no leases; slots have", c.Rule)
	case c.Kind == driver.Renew:
		err = driver.CheckLeaseTime(c.LeaseFor)
	}
	if err != nil {
		return fmt.Errorf("redisscript: policy %q: %w", c.Policy, err)
	}
	return nil
}

// lost tells the renewals among the changes that r was made of what became of their leases.
func (r *request) lost(changes []driver.Change) {
	at := 0
	for i := range changes {
		c := &changes[i]
		if c.Kind != driver.Renew || checkLease(c) != nil {
			continue
		}
		for r.claims[at].op != opRenew {
			at++
		}
		c.Lost = r.claims[at].saw[0] == 0
		at++
	}
}
