package lease

import (
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// together is how far ahead of their time leases are renewed that are due soon anyway: of the wait between two renewals.
const together = 8

// renewAll renews what is due, as many leases in one call as there are.
func (k *Keeper) renewAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for !k.closed {
		due := k.due(time.Now())
		if len(due) == 0 {
			break
		}
		changes := make([]driver.Change, len(due))
		for i, h := range due {
			changes[i] = h.change
		}
		k.mu.Unlock()
		err := k.o.Apply(changes)
		now := time.Now()
		k.mu.Lock()
		for i, h := range due {
			k.renewed(h, changes[i].Lost, now, err)
		}
	}
	k.renewing = false
	for wait, l := range k.renewals {
		if l.head != nil {
			k.arm(l.head.due)
		} else {
			delete(k.renewals, wait)
		}
	}
}

// due takes the leases from their lists whose time has come; k.mu is held.
func (k *Keeper) due(now time.Time) (list []*Held) {
	for wait, l := range k.renewals {
		if l.head == nil || l.head.due.After(now) {
			continue
		}
		for h := l.head; h != nil && len(list) < batch && !h.due.After(now.Add(wait/together)); h = l.head {
			h.unlink()
			list = append(list, h)
		}
	}
	return list
}

// renewed plans the next renewal; k.mu is held. After a failure it comes sooner, for there are two more thirds of the lease
// time to reach the store in.
func (k *Keeper) renewed(h *Held, lost bool, now time.Time, err error) {
	switch {
	case h.on == released: // meanwhile
	case err != nil:
		k.plan(h, now, max(h.change.LeaseFor/12, time.Millisecond))
	case lost:
		h.lost = true
	default:
		k.plan(h, now, h.change.LeaseFor/3)
	}
}

// list is a list of leases.
type list struct{ head, tail *Held }

// released is where a lease is that was given back.
var released = &list{}

func (l *list) push(h *Held) {
	h.on, h.prev, h.next = l, l.tail, nil
	if l.tail == nil {
		l.head = h
	} else {
		l.tail.next = h
	}
	l.tail = h
}

// unlink takes a lease from its list, if it is on one.
func (h *Held) unlink() {
	l := h.on
	if l == nil || l == released {
		return
	}
	if h.prev == nil {
		l.head = h.next
	} else {
		h.prev.next = h.next
	}
	if h.next == nil {
		l.tail = h.prev
	} else {
		h.next.prev = h.prev
	}
	h.on, h.prev, h.next = nil, nil, nil
}
