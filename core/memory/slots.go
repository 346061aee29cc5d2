package memory

import (
	"context"

	"github.com/headgate-go/headgate/core/driver"
)

// InProcess says that leases of this store end by release alone, see [driver.InProcess]: a process that dies takes its
// store with it, so there is no lease that nobody could release. How long a lease is said to live is checked and
// otherwise ignored, and a renewal does nothing but tell whether the lease is there.
func (*Store) InProcess() {}

// decideSlot is decideOne for a slot. It needs no clock, since leases do not end by time.
func (s *Store) decideSlot(e *driver.Entry, c *driver.Claim) {
	if e.Err = checkSlot(0, c); e.Err != nil {
		c.Result = driver.Result{}
		return
	}
	s.takeSlot(c)
}

func (s *Store) takeSlot(c *driver.Claim) {
	h := s.hash(c.Policy, c.Subject, slotState)
	sh := s.shard(h)
	sh.mu.Lock()
	held := sh.leases.held(h)
	take := c.Cost > 0 && held < c.Rule.Capacity()
	if take {
		s.hold(sh, h, c)
	}
	sh.mu.Unlock()
	c.Result = driver.SlotResult(c.Rule, c.Cost, held, take)
}

// hold adds the lease of a claim to the key, whose shard is locked.
func (s *Store) hold(sh *shard, h uint64, c *driver.Claim) {
	if !s.closed.Load() { // Close may have emptied the shard since
		sh.leases.take(h, s.leaseHash(h, &c.Lease), idOf(&c.Lease))
	}
}

// release ends the lease that a change names, if it is held.
func (s *Store) release(c *driver.Change) {
	h := s.hash(c.Policy, c.Subject, slotState)
	lease := s.leaseHash(h, &c.Lease)
	sh := s.shard(h)
	sh.mu.Lock()
	sh.leases.release(h, lease, idOf(&c.Lease))
	sh.mu.Unlock()
}

// holds says whether the lease that a change names is held.
func (s *Store) holds(c *driver.Change) bool {
	h := s.hash(c.Policy, c.Subject, slotState)
	lease := s.leaseHash(h, &c.Lease)
	sh := s.shard(h)
	sh.mu.Lock()
	_, ok := sh.leases.find(lease, idOf(&c.Lease))
	sh.mu.Unlock()
	return ok
}

// Reset makes subject a key never seen under policy, whatever its rule, see [driver.Inspector]. The only error is
// [driver.ErrClosed], and the context is not looked at. It looks through all leases of a shard, if the key has any.
func (s *Store) Reset(_ context.Context, policy, subject string) error {
	if s.closed.Load() {
		return driver.ErrClosed
	}
	for _, state := range [...]uint64{bucketState, windowState} {
		h := s.hash(policy, subject, state)
		sh := s.shard(h)
		sh.mu.Lock()
		if i, ok := sh.find(h); ok {
			sh.remove(i)
		}
		sh.mu.Unlock()
	}
	h := s.hash(policy, subject, slotState)
	sh := s.shard(h)
	sh.mu.Lock()
	s.forget(&sh.leases, h)
	sh.mu.Unlock()
	return nil
}

// forget drops the leases of a key. They are not listed anywhere: all that are held under keys of the shard are looked at.
func (s *Store) forget(l *leases, h uint64) {
	i, ok := l.find(h, leaseID{})
	if !ok {
		return
	}
	l.count -= l.table[i].held
	l.keys--
	l.table[i] = lease{}
	for i := range l.table {
		if id := l.table[i].id(); l.table[i].hash == s.leaseHash(h, &id) {
			l.table[i] = lease{}
		}
	}
	l.resize(max(minLeases, fitting(l.used()))) // which also closes the gaps
}
