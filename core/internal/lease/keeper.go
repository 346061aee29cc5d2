// Package lease keeps the slots that a process holds in a shared store: it renews those of long requests, many in one call,
// and gives back those that ended, off the request's path and until the store was told. What it cannot give back ends by
// itself, one lease time after the last renewal.
package lease

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// Options of a keeper.
type Options struct {
	// Apply tells the store, within a deadline of its own.
	Apply func(changes []driver.Change) error
	// Dropped is told a change that was given up, with the store's last failure. It must not block.
	Dropped func(err error)
}

// Keeper keeps leases. Make it with [New]; safe for concurrent use. It runs nothing while no lease is held or on its way back.
type Keeper struct {
	o       Options
	process [8]byte
	counter atomic.Uint64

	mu       sync.Mutex
	closing  bool // nobody waits any longer than he must
	closed   bool
	held     int
	renewals map[time.Duration]*list // by lease time: each in the order in which they are due
	ended    []ending                // to be given back now
	later    []ending                // and again at a later time
	giving   bool                    // a goroutine gives back
	renewing bool                    // a goroutine renews
	timer    *time.Timer
	fires    time.Time       // when the timer does; zero: it is not set
	quiet    []chan struct{} // closed when nothing is held nor on its way
}

// Held is a lease in use.
type Held struct {
	change     driver.Change
	due        time.Time // of its next renewal
	lost       bool      // guarded by the keeper's mu, as all of it
	prev, next *Held
	on         *list
}

// ending is a lease on its way back.
type ending struct {
	change driver.Change
	due    time.Time     // when to try, if later
	until  time.Time     // when it ends by itself
	wait   time.Duration // before the next attempt
	again  bool          // give it back twice: a claim without an answer may reach the store after the first time
}

const (
	firstWait   = 100 * time.Millisecond
	longestWait = 2 * time.Second
	// maxEnding bounds what waits for a store that is away. What is dropped ends by itself.
	maxEnding = 1 << 16
	// batch bounds a call, so that it stays within its deadline.
	batch = 256
)

// New makes a keeper.
func New(o Options) *Keeper {
	k := &Keeper{o: o, renewals: map[time.Duration]*list{}}
	_, _ = rand.Read(k.process[:]) // never fails
	return k
}

// NewID returns a lease's name: 8 random bytes of the process, then a counter.
func (k *Keeper) NewID() (id driver.ID) {
	copy(id[:], k.process[:])
	binary.BigEndian.PutUint64(id[8:], k.counter.Add(1))
	return id
}

// Hold keeps a lease alive that the store just gave.
func (k *Keeper) Hold(c *driver.Claim) *Held {
	h := &Held{change: changeOf(c)}
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held++
	if !k.closed {
		k.plan(h, now, c.LeaseFor/3)
	}
	return h
}

func changeOf(c *driver.Claim) driver.Change {
	return driver.Change{Kind: driver.Renew, Policy: c.Policy, Subject: c.Subject, Rule: c.Rule, Lease: c.Lease, LeaseFor: c.LeaseFor}
}

// plan puts a lease at the end of its list; k.mu is held. Those that failed come back sooner than the others of their list,
// so they have a list of their own.
func (k *Keeper) plan(h *Held, now time.Time, wait time.Duration) {
	h.due = now.Add(wait)
	l := k.renewals[wait]
	if l == nil {
		l = &list{}
		k.renewals[wait] = l
	}
	l.push(h)
	k.arm(h.due)
}

// Release ends a lease: it is not renewed any more, and given back soon. It says whether the lease was lost before. A lease
// is released once.
func (k *Keeper) Release(h *Held) (lost bool) {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	h.unlink()
	h.on = released
	k.held--
	if !h.lost {
		k.end(h.change, now, false)
	} else {
		k.settle()
	}
	return h.lost
}

// Disown gives back a lease of which nobody knows whether the store gave it: the claim had no answer.
func (k *Keeper) Disown(c *driver.Claim) {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.end(changeOf(c), now, true)
}

func (k *Keeper) end(c driver.Change, now time.Time, again bool) {
	c.Kind = driver.Release
	if len(k.ended)+len(k.later) >= maxEnding {
		k.o.Dropped(errTooMany)
		return
	}
	k.ended = append(k.ended, ending{change: c, until: now.Add(c.LeaseFor), wait: firstWait, again: again})
	k.give()
}

var errTooMany = &driver.Error{Class: driver.ClassOverflow, Err: errors.New("too many slots wait to be given back; they end with their lease")}

// give starts the goroutine that gives back; k.mu is held. What ends while it makes a call goes into its next one.
func (k *Keeper) give() {
	if !k.giving && len(k.ended) > 0 {
		k.giving = true
		go k.giveAll()
	}
}

func (k *Keeper) giveAll() {
	var changes []driver.Change
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.ended) > 0 {
		list := k.ended[:min(len(k.ended), batch)]
		k.ended = k.ended[len(list):]
		changes = changes[:0]
		for i := range list {
			changes = append(changes, list[i].change)
		}
		k.mu.Unlock()
		err := k.o.Apply(changes)
		now := time.Now()
		k.mu.Lock()
		k.gave(list, now, err)
	}
	k.ended = nil
	k.giving = false
	k.settle()
}

// gave plans what is to be given back once more; k.mu is held.
func (k *Keeper) gave(list []ending, now time.Time, err error) {
	for _, e := range list {
		switch {
		case err == nil && (!e.again || k.closing):
			continue
		case err == nil:
			e.again, e.wait = false, longestWait
		case k.closed || now.Add(e.wait).After(e.until):
			k.o.Dropped(err)
			continue
		}
		e.due = now.Add(e.wait)
		e.wait = min(2*e.wait, longestWait)
		k.later = append(k.later, e)
		k.arm(e.due)
	}
}

// arm sets the timer if nothing fires before at; k.mu is held.
func (k *Keeper) arm(at time.Time) {
	if k.closed || !k.fires.IsZero() && !at.Before(k.fires) {
		return
	}
	k.fires = at
	if k.timer == nil {
		k.timer = time.AfterFunc(time.Until(at), k.tick)
	} else {
		k.timer.Reset(time.Until(at))
	}
}

// tick does what is due, and sets the timer anew.
func (k *Keeper) tick() {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fires = time.Time{}
	if k.closed {
		return
	}
	rest := k.later[:0]
	for _, e := range k.later {
		if e.due.After(now) {
			rest = append(rest, e)
			k.arm(e.due)
		} else {
			k.ended = append(k.ended, e)
		}
	}
	clear(k.later[len(rest):])
	k.later = rest
	k.give()
	if !k.renewing {
		k.renewing = true
		go k.renewAll()
	}
}

// settle tells those who wait for it that there is nothing left; k.mu is held.
func (k *Keeper) settle() {
	if k.held > 0 || k.giving || len(k.ended) > 0 || len(k.later) > 0 {
		return
	}
	for _, c := range k.quiet {
		close(c)
	}
	k.quiet = nil
}

// Close waits until every lease was given back, or ctx ends. Then it renews no more: leases of handlers that still run end by
// themselves, and are given back as well as can be if the handler is over before.
func (k *Keeper) Close(ctx context.Context) error {
	quiet := make(chan struct{})
	k.mu.Lock()
	k.closing = true
	k.quiet = append(k.quiet, quiet)
	k.ended = append(k.ended, k.later...) // now, rather than when it would be due
	k.later = nil
	k.give()
	k.settle()
	k.mu.Unlock()
	var err error
	select {
	case <-quiet:
	case <-ctx.Done():
		err = ctx.Err()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	if k.timer != nil {
		k.timer.Stop()
	}
	k.later = nil
	return err
}
