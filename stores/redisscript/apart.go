package redisscript

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// A cluster decides in one step only what lies in one hash slot. All keys of one subject do; the claims of a request on
// several subjects are parted, the parts asked at the same time, and what one part took while another refused is given back.
// So no limit is ever exceeded, but a request may be refused for the sake of one that is about to be refused elsewhere.

// lanes is how many queues a cluster has: each is for a range of slots, so that a node that hangs holds up those that share a
// lane with it, and not the others. Nodes have ranges too, as a rule, all of one size: where there are 2, 3, 4 or 6 of them, or
// 12, no lane is of two. More lanes would make packs smaller.
const lanes = 12

// laneSenders is the least that a lane's queue may start: calls to a node that hangs keep them, and a breaker needs to see
// enough of those to open.
const laneSenders = 16

// hashSlots is the number of hash slots.
const hashSlots = 16384

// lane returns the queue that a job waits in.
func (s *Store) lane(j *job) *queue { return s.laneAt(j.slot) }

func (s *Store) laneAt(slot int) *queue {
	if s.lanes == nil {
		return &s.queue
	}
	return s.lanes[laneOf(slot)]
}

func laneOf(slot int) int { return slot * lanes / hashSlots }

// Parts implements [driver.Parted]: what shares a lane fails together.
func (s *Store) Parts() int { return max(1, len(s.lanes)) }

// Part implements [driver.Parted].
func (s *Store) Part(subject string) int {
	if s.lanes == nil {
		return 0
	}
	scratch := digests.Get().(*[]byte)
	*scratch = appendDigest((*scratch)[:0], subject)
	slot := hashSlot(*scratch)
	digests.Put(scratch)
	return laneOf(slot)
}

var digests = sync.Pool{New: func() any { return new([]byte) }}

// onPart says which part of the store an error is about.
func (s *Store) onPart(slot int, err error) error {
	if err == nil || s.lanes == nil {
		return err
	}
	return &driver.PartialError{Parts: 1 << laneOf(slot), Err: err}
}

// part is what of a request lies in one slot: a job of its own.
type part struct {
	job *job
	of  []int // the claims of the whole
	err error
}

// askApart has a job answered whose claims may lie in different slots. It fails if one of them could not be decided; then
// what the others took for the entries is given back.
func (s *Store) askApart(ctx context.Context, j *job, entries []driver.Entry) error {
	r := &j.request
	slot, same, oneKey := Slot(r.claims[0].key), true, true
	for i := range r.claims {
		c := &r.claims[i]
		c.part = 0
		if i > 0 && c.hash != r.claims[0].hash { // hashing for a slot costs more than telling keys apart
			same, oneKey = same && Slot(c.key) == slot, false
		}
	}
	if same {
		j.slot = slot
		if err := s.ask(ctx, j); oneKey || !comesAgain(err) {
			return s.onPart(slot, err)
		}
	}
	all := make([]int, len(r.claims))
	for i := range all {
		all[i] = i
	}
	parts := s.askParts(ctx, j, all, same)
	var failed driver.PartialError
	for n, p := range parts {
		for k, i := range p.of {
			r.claims[i].part = int16(n)
			if p.err == nil {
				r.claims[i].saw = p.job.request.claims[k].saw
			} else {
				r.claims[i].part = unanswered
			}
		}
		if p.err == nil {
			s.queue.recycle(p.job)
			continue
		}
		failed.Parts |= 1 << laneOf(Slot(r.claims[p.of[0]].key))
		if failed.Err == nil {
			failed.Err = p.err
		}
	}
	if failed.Err == nil {
		return nil
	}
	for i, from := 0, 0; i < len(entries); i++ {
		if entries[i].Err == nil {
			s.giveBack(ctx, r.claims[from:from+len(entries[i].Claims)], &entries[i], j.now)
			from += len(entries[i].Claims)
		}
	}
	return &failed
}

// unanswered is the part of claims of which nobody knows what became.
const unanswered = -1

// askParts asks for some claims of a job in parts of one slot each, or of one key each: while a slot moves, a node that has one
// of two keys can decide about neither together, and about each alone.
func (s *Store) askParts(ctx context.Context, j *job, of []int, byKey bool) []part {
	var parts []part
	places := map[uint64]int{}
	var touched []int // parts that the running entry has claims in
	for _, i := range of {
		c := j.request.claims[i]
		place := c.hash
		if !byKey {
			place = uint64(Slot(c.key))
		}
		n, ok := places[place]
		if !ok {
			n = len(parts)
			places[place] = n
			parts = append(parts, part{job: s.queue.newJob(j.now)})
			parts[n].job.slot = Slot(c.key)
		}
		p := &parts[n]
		last := c.flags&flagLast != 0
		c.flags &^= flagLast
		p.job.request.claims, p.of = append(p.job.request.claims, c), append(p.of, i)
		if !slices.Contains(touched, n) {
			touched = append(touched, n)
		}
		if last {
			for _, n := range touched {
				claims := parts[n].job.request.claims
				claims[len(claims)-1].flags |= flagLast
			}
			touched = touched[:0]
		}
	}
	for n := range parts {
		parts[n].err = s.start(ctx, parts[n].job)
	}
	for n := range parts {
		if p := &parts[n]; p.err == nil {
			p.err = s.lane(p.job).wait(ctx, p.job)
		}
	}
	if byKey {
		return parts
	}
	for n := 0; n < len(parts); n++ {
		if p := parts[n]; len(p.of) > 1 && comesAgain(p.err) {
			parts = slices.Replace(parts, n, n+1, s.askParts(ctx, j, p.of, true)...)
		}
	}
	return parts
}

// giveBack returns what some parts of a refused entry took, off the request's path.
func (s *Store) giveBack(ctx context.Context, claims []claim, e *driver.Entry, now int64) {
	var changes []driver.Change
	for i := range claims {
		c, asked := &claims[i], &e.Claims[i]
		if c.part == unanswered || asked.Cost == 0 || !c.fits(asked.Rule, asked.Cost) || refusedBy(c.part, claims, e) {
			continue
		}
		change := driver.Change{Kind: driver.Settle, Policy: asked.Policy, Subject: asked.Subject, Rule: asked.Rule,
			Amount: -asked.Cost, Lease: asked.Lease, LeaseFor: asked.LeaseFor}
		switch {
		case c.op == opSlots:
			change.Kind, change.Amount = driver.Release, 0
		case asked.Rule.IsWindow():
			change.Receipt = c.window(asked.Rule).Result(asked.Rule, asked.Cost, true).Receipt
		}
		changes = append(changes, change)
	}
	if len(changes) == 0 {
		return
	}
	at := time.Time{}
	if now != 0 {
		at = time.UnixMicro(now)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	s.giving.Go(func() {
		defer cancel()
		_ = s.Apply(ctx, at, changes) // best effort: what is not given back refills, or ends with its lease
	})
}

// refusedBy says whether a part of an entry took nothing, because one of its claims that enforce does not fit.
func refusedBy(part int16, claims []claim, e *driver.Entry) bool {
	for i := range claims {
		asked := &e.Claims[i]
		if claims[i].part == part && !asked.Shadow && !claims[i].fits(asked.Rule, asked.Cost) {
			return true
		}
	}
	return false
}

// comesAgain says that a node could not decide about several keys at once, because their slot is on the move: nothing was
// executed.
func comesAgain(err error) bool { return wordOf(err) == "TRYAGAIN" }
