package gate

import (
	"context"
	"sync"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/internal/guard"
)

// slot says where a slot of a request is held.
type slot uint8

const (
	noSlot    slot = iota
	storeSlot      // in a shared store, which wants to hear of it
	localSlot      // in this process
	failSlot       // in this process, because the store failed
)

// hold takes note of the slots that the store's answer gave, before the handler runs.
func (a *Admission) hold(err error) {
	for i := range a.verdicts {
		v := &a.verdicts[i]
		if v.claim < 0 || !v.policy.holds() {
			continue
		}
		c := &a.claims[v.claim]
		switch {
		case c.LeaseFor == 0: // only looked at
		case err != nil && a.local && v.policy.onStoreError == FailLocal:
			if c.Result.Allowed && a.localTook {
				v.slot = failSlot
			}
			a.disown(c, err)
		case err != nil:
			a.disown(c, err)
		case !a.took || !c.Result.Allowed:
		case a.gate.guarded == nil:
			v.slot = localSlot
		default:
			v.slot, v.held = storeSlot, a.gate.leases.Hold(c)
		}
		if v.slot != noSlot {
			a.holding = true
			a.slotStarted(i)
		}
	}
}

// disown gives a slot back of which nobody knows whether it was taken, since there was no answer.
func (a *Admission) disown(c *driver.Claim, err error) {
	if a.gate.guarded != nil && !guard.Unsent(err) {
		a.gate.leases.Disown(c)
	}
}

// release gives every slot of the request back, once. It waits for nothing but an in-process store.
func (a *Admission) release(end LeaseEnd) {
	if !a.holding {
		return
	}
	for i := range a.verdicts {
		v := &a.verdicts[i]
		a.mu.Lock()
		where, held := v.slot, v.held
		v.slot, v.held = noSlot, nil
		a.mu.Unlock()
		how := end
		switch where {
		case noSlot:
			continue
		case storeSlot:
			if a.gate.leases.Release(held) {
				how = EndLost
			}
		case localSlot:
			a.gate.applyHere(a.gate.store, &a.claims[v.claim])
		case failSlot:
			a.gate.applyHere(a.gate.local, &a.claims[v.claim])
		}
		a.slotEnded(i, how)
	}
}

// oneChange spares an allocation for each slot that is given back in the process.
var oneChange = sync.Pool{New: func() any { return new([1]driver.Change) }}

func (g *Gate) applyHere(store driver.Store, c *driver.Claim) {
	changes := oneChange.Get().(*[1]driver.Change)
	changes[0] = driver.Change{Kind: driver.Release, Policy: c.Policy, Subject: c.Subject, Rule: c.Rule, Lease: c.Lease}
	if err := store.Apply(context.Background(), g.now(), changes[:]); err != nil && driver.ClassOf(err) != driver.ClassClosed {
		g.logFailure("the store could not take a correction", err)
	}
	changes[0] = driver.Change{}
	oneChange.Put(changes)
}

func (a *Admission) slotStarted(i int) {
	if a.gate.observer == nil {
		return
	}
	if a.heldSince.IsZero() {
		a.heldSince = time.Now()
	}
	a.gate.observer.Observe(Event{Kind: LeaseStarted, Context: a.question.base, Request: a.question.req, Gate: a.gate.name,
		Start: a.heldSince, Decisions: []Decision{a.decision(i)}})
}

// slotEnded tells the observer. The request may be over, and its memory another one's: it is left out.
func (a *Admission) slotEnded(i int, end LeaseEnd) {
	if a.gate.observer == nil {
		return
	}
	a.gate.observer.Observe(Event{Kind: LeaseEnded, Context: a.question.base, Gate: a.gate.name, Start: a.heldSince,
		Duration: time.Since(a.heldSince), Decisions: []Decision{a.decision(i)}, End: end})
}

// trailer is an admission whose slots are held until the response is over.
type trailer struct {
	admission *Admission
	end       LeaseEnd
}

// Close implements io.Closer, for [Trailing].
func (t *trailer) Close() error {
	t.admission.release(t.end)
	return nil
}

// finish gives the slots back now, or when what the handler began to send is sent.
func (a *Admission) finish(x Exchange, end LeaseEnd) {
	if !a.holding {
		return
	}
	if t, ok := x.(Trailing); ok && end != EndPanic && t.Trail(&trailer{a, end}) {
		return
	}
	a.release(end)
}
