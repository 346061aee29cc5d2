package storetest

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// leaseTime is how long the leases of a case live that has nothing to say about it: longer than any case runs.
const leaseTime = time.Hour

var process = sync.OnceValue(func() (b [8]byte) {
	rand.Read(b[:])
	return b
})

var leaseCount atomic.Uint64

// newLease returns an ID that nobody else has, made as a gate makes them.
func newLease() driver.ID {
	var id driver.ID
	b := process()
	copy(id[:], b[:])
	binary.BigEndian.PutUint64(id[8:], leaseCount.Add(1))
	return id
}

// slot claims one of n slots.
func (k key) slot(n int, id driver.ID) driver.Claim {
	c := k.claim(driver.NewSlots(n), 1)
	c.Lease, c.LeaseFor = id, leaseTime
	return c
}

// slotFor is slot with a lease time.
func (k key) slotFor(n int, id driver.ID, d time.Duration) driver.Claim {
	c := k.slot(n, id)
	c.LeaseFor = d
	return c
}

// free looks at the slots and takes none.
func (k key) free(n int) driver.Claim { return k.claim(driver.NewSlots(n), 0) }

// shadowed returns the claim as a shadow claim.
func shadowed(c driver.Claim) driver.Claim {
	c.Shadow = true
	return c
}

// acquire asks for one of n slots under a new ID.
func (p *probe) acquire(k key, n int, now time.Time) (driver.ID, driver.Result) {
	id := newLease()
	return id, p.entry(now, k.slot(n, id))[0]
}

// hold takes count of n slots, all of which must be free.
func (p *probe) hold(k key, n, count int, now time.Time) []driver.ID {
	ids := make([]driver.ID, count)
	for i := range ids {
		id, r := p.acquire(k, n, now)
		if !r.Allowed {
			p.fatalf("%d of %d slots held: refused (%s)", i, n, show(r))
		}
		ids[i] = id
	}
	return ids
}

func (k key) released(n int, id driver.ID) driver.Change {
	return driver.Change{Kind: driver.Release, Policy: k.policy, Subject: k.subject, Rule: driver.NewSlots(n), Lease: id}
}

func (k key) renewed(n int, id driver.ID, d time.Duration) driver.Change {
	return driver.Change{Kind: driver.Renew, Policy: k.policy, Subject: k.subject, Rule: driver.NewSlots(n), Lease: id, LeaseFor: d}
}

// release gives leases back.
func (p *probe) release(k key, n int, now time.Time, ids ...driver.ID) {
	for _, id := range ids {
		p.apply(now, k.released(n, id))
	}
}

// renew renews a lease and says whether the store still had it.
func (p *probe) renew(k key, n int, id driver.ID, d time.Duration, now time.Time) (held bool) {
	changes := []driver.Change{k.renewed(n, id, d)}
	if err := p.store().Apply(context.Background(), now, changes); err != nil {
		p.fatalf("Apply: %v", err)
	}
	return !changes[0].Lost
}

// left checks how many of n slots are free, without taking one.
func (p *probe) left(what string, k key, n, want int, now time.Time) {
	p.admitted(what+": slots left", p.entry(now, k.free(n))[0], want)
}

// full checks that a key gives no slot.
func (p *probe) full(what string, k key, n int, now time.Time) {
	id, r := p.acquire(k, n, now)
	p.noSlot(what, r)
	if p.renew(k, n, id, leaseTime, now) {
		p.errorf("%s: the lease that was refused can be renewed", what)
	}
}

// noSlot checks an answer that must be a refusal.
func (p *probe) noSlot(what string, r driver.Result) {
	if want := (driver.Result{Reason: driver.ReasonLimit}); r != want {
		p.errorf("%s: got %s; want refused (limit), remaining 0, no waits", what, show(r))
	}
}

// saneSlots checks what holds for every answer about slots.
func (p *probe) saneSlots(c *driver.Claim) {
	r := c.Result
	switch {
	case r.Remaining < 0 || r.Remaining > c.Rule.Capacity():
		p.errorf("remaining %d is not in 0..%d", r.Remaining, c.Rule.Capacity())
	case r.RetryAfter != 0 || r.ResetAfter != 0 || r.Fraction != driver.Fraction{} || r.Receipt != driver.Receipt{}:
		p.errorf("slots with waits, a fraction or a receipt, which they do not have: %s", show(r))
	case c.Cost == 0 && !r.Allowed:
		p.errorf("cost 0 was refused")
	case r.Allowed && r.Reason != driver.ReasonNone, !r.Allowed && (r.Reason != driver.ReasonLimit || r.Remaining != 0):
		p.errorf("%s with reason %q", show(r), r.Reason)
	}
}

// slotCases are about the slots of one key, where no time passes.
var slotCases = []Case{
	{"BR137_remaining_counts_down", "a count read before the add is one too high: the client sees 1 left and is refused",
		func(p *probe) {
			k := p.key("slots")
			for want := 2; want >= 0; want-- {
				_, r := p.acquire(k, 3, at(0))
				p.admitted("of 3", r, want)
			}
			for range 5 {
				p.full("the fourth of 3", k, 3, at(0))
			}
			one := p.key("one")
			_, r := p.acquire(one, 1, at(0))
			p.admitted("of 1", r, 0)
			p.full("the second of 1", one, 1, at(0))
		}},
	{"BR039_refused_requests_take_no_slot", "refused requests that are counted keep a key full for ever",
		func(p *probe) {
			k := p.key("slots")
			ids := p.hold(k, 2, 2, at(0))
			for range 10 {
				batch := make([]driver.Entry, 100)
				for i := range batch {
					batch[i].Claims = []driver.Claim{k.slot(2, newLease())}
				}
				if got := allowed(p.decide(at(0), batch...)); got != 0 {
					p.errorf("%d admitted with 2 of 2 held", got)
				}
			}
			p.left("with a wider limit", k, 1000, 998, at(0))
			p.release(k, 2, at(0), ids[0])
			_, r := p.acquire(k, 2, at(0))
			p.admitted("after one was released", r, 0)
			p.full("and one more", k, 2, at(0))
		}},
	{"BR127_released_twice", "a release that runs in the error path and again in the final one: capacity grows above the limit",
		func(p *probe) {
			k := p.key("slots")
			ids := p.hold(k, 3, 2, at(0))
			for range 3 {
				p.release(k, 3, at(0), ids[0])
				p.left("one of two released", k, 3, 2, at(0))
			}
			p.apply(at(0), k.released(3, ids[1]), k.released(3, ids[1]), k.released(3, ids[1]), k.released(3, ids[0]))
			p.left("both released", k, 3, 3, at(0))
			p.hold(k, 3, 3, at(0))
			p.full("the fourth of 3", k, 3, at(0))
			p.release(k, 3, at(0), ids...)
			p.full("after a late release", k, 3, at(0))
		}},
	{"a_release_frees_its_own_lease", "a release that frees any lease lets a request in while another one still holds its slot",
		func(p *probe) {
			k := p.key("slots")
			ids := p.hold(k, 3, 3, at(0))
			p.release(k, 3, at(0), ids[1])
			for i, id := range ids {
				if held := p.renew(k, 3, id, leaseTime, at(0)); held != (i != 1) {
					p.errorf("lease %d of 3, of which the second was released: held %t", i+1, held)
				}
			}
			_, r := p.acquire(k, 3, at(0))
			p.admitted("the free slot", r, 0)
		}},
	{"releases_of_unknown_leases", "a lease that was never taken, or of another key, that frees somebody's slot",
		func(p *probe) {
			k, others := p.keyOf("slots", "alice"), []key{p.keyOf("slots", "bob"), p.keyOf("more slots", "alice")}
			p.release(k, 2, at(0), newLease()) // of a key that does not exist
			p.left("nothing was taken", k, 2, 2, at(0))
			ids := p.hold(k, 2, 2, at(0))
			for _, o := range others {
				stranger := p.hold(o, 2, 1, at(0))
				p.release(o, 2, at(0), ids...)
				p.release(k, 2, at(0), stranger...)
				p.left("the other key", o, 2, 1, at(0))
			}
			p.release(k, 2, at(0), newLease(), driver.ID{}, driver.ID{1}, driver.ID{15: 1})
			p.full("after releases of others' leases", k, 2, at(0))
			for i, id := range ids {
				if !p.renew(k, 2, id, leaseTime, at(0)) {
					p.errorf("lease %d is gone", i)
				}
			}
		}},
	{"BR018_cost_zero_looks_at_slots", "a look that takes a slot, or is refused when none is left",
		func(p *probe) {
			k := p.key("slots")
			for range 5 {
				p.left("unused", k, 3, 3, at(0))
			}
			ids := p.hold(k, 3, 3, at(0))
			for range 3 {
				p.left("all held", k, 3, 0, at(0))
				p.left("under a lower limit", k, 2, 0, at(0))
				p.left("under a higher limit", k, 5, 2, at(0))
			}
			p.release(k, 3, at(0), ids...)
			p.left("all released", k, 3, 3, at(0))
			// A lease is not needed to look, and not taken if there is one.
			c := k.slot(3, newLease())
			c.Cost = 0
			p.admitted("a look with a lease", p.entry(at(0), c)[0], 3)
			if p.renew(k, 3, c.Lease, leaseTime, at(0)) {
				p.errorf("a look took a lease")
			}
		}},
	{"leases_are_told_apart_by_every_byte", "two leases that are one take one slot, and the first release frees both",
		func(p *probe) {
			const n = 100
			k, base := p.key("slots"), newLease()
			ids := []driver.ID{base, {1}, {15: 1}, {7: 1}, {8: 1}, {0: '\r', 1: '\n'}, {0: 0xff, 15: 0xff}}
			for i := range base {
				for _, bit := range []byte{1, 0x80} {
					id := base
					id[i] ^= bit
					ids = append(ids, id)
				}
			}
			for i, id := range ids {
				p.admitted("lease "+strconv.Itoa(i), p.entry(at(0), k.slot(n, id))[0], n-1-i)
			}
			for i, id := range ids {
				p.release(k, n, at(0), id)
				p.left("released "+strconv.Itoa(i), k, n, n-len(ids)+1+i, at(0))
			}
		}},
	{"a_lease_asked_for_again", "an acquire whose answer was lost and that is sent again takes a second slot, which nobody gives back",
		func(p *probe) {
			k, id := p.key("slots"), newLease()
			for range 3 {
				if r := p.entry(at(0), k.slot(5, id))[0]; !r.Allowed {
					p.errorf("asked again: %s", show(r))
				}
				p.left("one lease", k, 5, 4, at(0))
			}
			p.release(k, 5, at(0), id)
			p.left("released", k, 5, 5, at(0))
		}},
	{"BR042_a_new_number_of_slots_counts_at_once", "a limit kept with the state is ignored; or whoever is inside when it is lowered is thrown out",
		func(p *probe) {
			k := p.key("slots")
			ids := p.hold(k, 5, 5, at(0))
			p.full("lowered to 3", k, 3, at(0))
			for i, id := range ids {
				if !p.renew(k, 3, id, leaseTime, at(0)) {
					p.errorf("lowered to 3: lease %d of 5 is lost", i+1)
				}
			}
			p.release(k, 3, at(0), ids[:2]...)
			p.full("two of five released, of 3", k, 3, at(0))
			p.release(k, 3, at(0), ids[2])
			_, r := p.acquire(k, 3, at(0))
			p.admitted("three of five released, of 3", r, 0)
			_, r = p.acquire(k, 10, at(0))
			p.admitted("raised to 10", r, 6)
			p.full("lowered to 1", k, 1, at(0))
			p.release(k, 7, at(0), ids...) // under a number that never held
			p.left("two are held", k, 10, 8, at(0))
		}},
	{"largest_slots", "numbers at the ends of what is accepted",
		func(p *probe) {
			k := p.key("slots")
			for i, d := range []time.Duration{driver.MinLease, driver.MaxLease, time.Second + time.Millisecond} {
				r := p.entry(at(0), k.slotFor(driver.MaxCount, newLease(), d))[0]
				p.admitted("lease time "+d.String(), r, driver.MaxCount-1-i)
			}
		}},
}
