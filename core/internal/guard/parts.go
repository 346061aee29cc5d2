package guard

import (
	"context"
	"errors"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// part is what fails by itself: the whole store, or a part of a [driver.Parted]. With one breaker for a cluster, a node that
// hangs would switch off the limits of everybody: ten failures in a row come together easily, and of three probes in a row
// one meets the bad node. Sets of parts are bits of a word.
type part struct {
	breaker breaker
	last    atomic.Pointer[driver.Error] // what an open breaker answers: the latest failure, with its class
	failing atomic.Bool
}

// next takes the lowest part from a set that is not empty.
func next(set uint64) (i int, rest uint64) { return bits.TrailingZeros64(set), set & (set - 1) }

// placesOf returns the parts that a batch is about.
func (s *Store) placesOf(batch []driver.Entry) uint64 {
	if s.parted == nil {
		return 1
	}
	var places uint64
	last := ""
	for i := range batch {
		for j := range batch[i].Claims {
			// As a rule the claims of a request have one subject.
			if subject := batch[i].Claims[j].Subject; places == 0 || subject != last {
				places |= 1 << s.parted.Part(subject)
				last = subject
			}
		}
	}
	return places
}

// allow says which parts a call probes, or why it may not be made.
func (s *Store) allow(places uint64) (probes uint64, refused error) {
	for i, rest := 0, places; rest != 0; {
		i, rest = next(rest)
		ok, probe := s.parts[i].breaker.allow()
		if !ok {
			s.abandon(probes)
			return 0, s.parts[i].refusal()
		}
		if probe {
			probes |= 1 << i
		}
	}
	return probes, nil
}

// refusal is what a part answers whose breaker is open.
func (p *part) refusal() error {
	if last := p.last.Load(); last != nil {
		return last
	}
	return errOpen
}

// record tells breakers how a call ended that they let through.
func (s *Store) record(places, probes, failed uint64) {
	for i, rest := 0, places; rest != 0; {
		i, rest = next(rest)
		bit := uint64(1) << i
		s.parts[i].breaker.record(probes&bit != 0, failed&bit != 0)
	}
}

// abandon ends probes that found out nothing.
func (s *Store) abandon(probes uint64) {
	for i, rest := 0, probes; rest != 0; {
		i, rest = next(rest)
		s.parts[i].breaker.abandon()
	}
}

func (s *Store) succeeded(places, probes uint64) {
	s.record(places, probes, 0)
	for i, rest := 0, places; rest != 0; {
		i, rest = next(rest)
		if p := &s.parts[i]; p.failing.Load() && p.failing.CompareAndSwap(true, false) && s.o.Back != nil {
			s.o.Back()
		}
	}
}

func (s *Store) failed(places uint64, why *driver.Error) {
	for i, rest := 0, places; rest != 0; {
		i, rest = next(rest)
		s.parts[i].last.Store(why)
		s.parts[i].failing.Store(true)
	}
}

// changed tells the worst state of all parts, if that is another one now because of p.
func (s *Store) changed(p *part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	worst := Closed
	for i := range s.parts {
		switch state := State(s.parts[i].breaker.state.Load()); {
		case state == Open:
			worst = Open
		case state == HalfOpen && worst == Closed:
			worst = HalfOpen
		}
	}
	if worst == s.told {
		return
	}
	s.told = worst
	if s.o.Changed == nil {
		return
	}
	var err error
	if last := p.last.Load(); last != nil && worst != Closed {
		err = last
	}
	s.o.Changed(worst, err)
}

// correctParts makes the changes that are about parts whose breakers let them through. One node that is down must not cost the
// leases of the others their renewals.
func (s *Store) correctParts(ctx context.Context, now time.Time, changes []driver.Change) error {
	var allowed, asked, probes uint64
	var refused error
	sent, at := make([]driver.Change, 0, len(changes)), make([]int, 0, len(changes))
	for i := range changes {
		place := uint64(1) << s.parted.Part(changes[i].Subject)
		if asked&place == 0 {
			asked |= place
			p, err := s.allow(place)
			if err == nil {
				allowed |= place
			}
			probes |= p
			refused = errors.Join(refused, err)
		}
		if allowed&place != 0 {
			sent, at = append(sent, changes[i]), append(at, i)
		}
	}
	if len(sent) == 0 {
		return refused
	}
	err := s.through(ctx, allowed, probes, func(ctx context.Context) error { return s.store.Apply(ctx, now, sent) })
	for k, i := range at {
		changes[i].Lost = sent[k].Lost
	}
	return errors.Join(err, refused)
}
