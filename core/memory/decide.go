package memory

import (
	"errors"
	"fmt"

	"github.com/headgate-go/headgate/core/driver"
)

// decideOne answers an entry of one claim, which is nearly every request: one lock, one look-up, no list.
func (s *Store) decideOne(e *driver.Entry, c *driver.Claim, clk clock) {
	if e.Err = check(0, c); e.Err != nil {
		c.Result = driver.Result{}
		return
	}
	if kind := c.Rule.Kind(); kind != driver.KindBucket {
		if kind == driver.KindSlots {
			s.takeSlot(c)
		} else {
			s.decideWindow(c, clk)
		}
		return
	}
	h := s.hash(c.Policy, c.Subject, bucketState)
	sh := s.shard(h)
	sh.mu.Lock()
	i, found := sh.find(h)
	var b driver.Bucket
	if found {
		b = sh.slots[i].bucket()
	}
	level := b.Read(c.Rule, clk.now)
	if c.Cost == 0 || !level.Fits(c.Cost) {
		sh.mu.Unlock()
		answer(c, level, false)
		return
	}
	b = level.Take(c.Rule, c.Cost)
	answer(c, level, true)
	tick := clk.freshAt(b.Time, c.Result.ResetAfter)
	if found {
		sh.update(i, bucketCell(b), tick)
	} else if !s.closed.Load() {
		sh.insert(i, h, bucketCell(b), tick, clk.tick())
	}
	sh.mu.Unlock()
	s.sweepBy(tick, clk)
}

// decideWindow is decideOne for a window.
func (s *Store) decideWindow(c *driver.Claim, clk clock) {
	h := s.hash(c.Policy, c.Subject, windowState)
	sh := s.shard(h)
	sh.mu.Lock()
	i, found := sh.find(h)
	var w driver.Window
	if found {
		w = sh.slots[i].window()
	}
	level := w.Read(c.Rule, clk.now)
	if c.Cost == 0 || !level.Fits(c.Rule, c.Cost) {
		sh.mu.Unlock()
		c.Result = level.Result(c.Rule, c.Cost, false)
		return
	}
	w = level.Take(c.Cost)
	tick := clk.overAt(level, w.Cur, c.Rule)
	if found {
		sh.update(i, windowCell(w), tick)
	} else if !s.closed.Load() {
		sh.insert(i, h, windowCell(w), tick, clk.tick())
	}
	sh.mu.Unlock()
	c.Result = level.Result(c.Rule, c.Cost, true)
	s.sweepBy(tick, clk)
}

// answer is [driver.Level.Result] written in place: copying the struct costs four times its arithmetic. The conformance
// suite holds them together.
func answer(c *driver.Claim, l driver.Level, taken bool) {
	res := &c.Result
	res.Allowed, res.Reason, res.RetryAfter = true, driver.ReasonNone, 0
	if taken {
		l.Whole -= int64(c.Cost)
	} else if c.Cost > 0 && !l.Fits(c.Cost) {
		res.Allowed = false
		if c.Cost > c.Rule.Capacity() {
			res.Reason = driver.ReasonCost
		} else {
			res.Reason = driver.ReasonLimit
			res.RetryAfter = driver.Micros(l.Wait(c.Rule, int64(c.Cost)))
		}
	}
	res.ResetAfter = driver.Micros(l.Wait(c.Rule, int64(c.Rule.Capacity())))
	if l.Whole >= 0 {
		_, p := c.Rule.Reduced()
		res.Remaining, res.Fraction = int(l.Whole), driver.Fraction{Num: l.Num, Den: p}
	} else { // in debt nothing is above a remaining 0
		res.Remaining, res.Fraction = 0, driver.Fraction{}
	}
	res.Receipt = driver.Receipt{}
}

// inline is how many claims an entry may have before deciding it allocates. A gate has a handful of limiters.
const inline = 8

// work is what is known of one claim while its entry is decided.
type work struct {
	hash  uint64
	level driver.WindowLevel // what it found; of a bucket in the fields that bucket names, of slots in Cur: larger work costs time
	after cell               // what it leaves, if taken
	taken bool
	last  bool // no claim evaluated later took from the same key
}

func (w *work) bucket() driver.Level {
	return driver.Level{Whole: w.level.Prev, Num: w.level.Cur, At: w.level.At}
}

// decideMany answers an entry of any number of claims. All shards involved stay locked from the first read to the last
// write, so nothing ever has to be given back.
func (s *Store) decideMany(e *driver.Entry, clk clock) {
	claims := e.Claims
	e.Err = nil
	for i := range claims {
		if err := check(i, &claims[i]); err != nil {
			e.Err = err
			for j := range claims {
				claims[j].Result = driver.Result{}
			}
			return
		}
	}
	var buf [inline]work
	w := buf[:0]
	var ids [inline]uint64
	locked := ids[:0]
	for i := range claims {
		h := s.hash(claims[i].Policy, claims[i].Subject, stateOf(&claims[i].Rule))
		w = append(w, work{hash: h})
		locked = insertSorted(locked, h&s.mask)
	}
	for _, id := range locked {
		s.shards[id].mu.Lock()
	}

	// Claims that enforce come first, wherever they stand: a shadow claim on the same key must not refuse them.
	admitted := true
	for i := range claims {
		if c := &claims[i]; !c.Shadow && !s.evaluate(w, i, c, clk, admitted) {
			admitted = false
		}
	}
	if !admitted {
		for i := range w {
			w[i].taken = false // shadow claims of a refused request look at what is really there
		}
	}
	for i := range claims {
		if c := &claims[i]; c.Shadow {
			s.evaluate(w, i, c, clk, admitted)
		}
	}

	first := uint32(never)
	for i := range claims {
		c, l := &claims[i], &w[i].level
		var tick uint32
		switch stateOf(&c.Rule) {
		case bucketState:
			answer(c, w[i].bucket(), w[i].taken)
			tick = clk.freshAt(l.At, c.Result.ResetAfter)
		case slotState:
			c.Result = driver.SlotResult(c.Rule, c.Cost, int(l.Cur), w[i].taken)
			if w[i].taken {
				s.hold(s.shard(w[i].hash), w[i].hash, c)
			}
			continue
		default:
			c.Result = l.Result(c.Rule, c.Cost, w[i].taken)
			tick = clk.overAt(*l, l.Cur+int64(c.Cost), c.Rule)
		}
		if w[i].taken && w[i].last {
			s.write(w[i].hash, w[i].after, tick, clk)
			first = min(first, tick)
		}
	}
	for _, id := range locked {
		s.shards[id].mu.Unlock()
	}
	if first != never {
		s.sweepBy(first, clk)
	}
}

// evaluate reads the key of claim i as the claims evaluated before it leave it, says whether the claim fits, and notes
// what taking it would leave if the entry still stands.
func (s *Store) evaluate(w []work, i int, c *driver.Claim, clk clock, stands bool) bool {
	var state cell
	before := -1
	for j := range w {
		if w[j].taken && w[j].last && w[j].hash == w[i].hash {
			before = j
		}
	}
	kind := stateOf(&c.Rule)
	if before >= 0 {
		state = w[before].after
	} else if kind == slotState {
		state.lo = uint64(s.shard(w[i].hash).leases.held(w[i].hash))
	} else if sh := s.shard(w[i].hash); sh.count > 0 {
		if k, ok := sh.find(w[i].hash); ok {
			state = sh.slots[k].cell
		}
	}
	fits := c.Cost == 0
	switch kind {
	case slotState:
		w[i].level.Cur = int64(state.lo)
		if fits = fits || state.lo < uint64(c.Rule.Capacity()); fits && stands && c.Cost > 0 {
			w[i].after, w[i].taken, w[i].last = cell{lo: state.lo + 1}, true, true
		}
	case bucketState:
		l := state.bucket().Read(c.Rule, clk.now)
		w[i].level = driver.WindowLevel{Prev: l.Whole, Cur: l.Num, At: l.At}
		if fits = fits || l.Fits(c.Cost); fits && stands && c.Cost > 0 {
			w[i].after, w[i].taken, w[i].last = bucketCell(l.Take(c.Rule, c.Cost)), true, true
		}
	default:
		l := state.window().Read(c.Rule, clk.now)
		w[i].level = l
		if fits = fits || l.Fits(c.Rule, c.Cost); fits && stands && c.Cost > 0 {
			w[i].after, w[i].taken, w[i].last = windowCell(l.Take(c.Cost)), true, true
		}
	}
	if w[i].taken && before >= 0 {
		w[before].last = false
	}
	return fits
}

// write stores the state of a key whose shard is locked. It looks the key up again, since an earlier write of the same
// entry may have moved or evicted it.
func (s *Store) write(h uint64, c cell, tick uint32, clk clock) {
	sh := s.shard(h)
	if i, ok := sh.find(h); ok {
		sh.update(i, c, tick)
	} else if !s.closed.Load() { // Close may have emptied the shard since
		sh.insert(i, h, c, tick, clk.tick())
	}
}

// insertSorted adds id to an ascending list without duplicates.
func insertSorted(list []uint64, id uint64) []uint64 {
	i := len(list)
	for i > 0 && list[i-1] > id {
		i--
	}
	if i > 0 && list[i-1] == id {
		return list
	}
	list = append(list, 0)
	copy(list[i+1:], list[i:])
	list[i] = id
	return list
}

// check says what makes a claim unanswerable.
func check(i int, c *driver.Claim) error {
	if c.Cost >= 0 && (knownBucket(&c.Rule) || knownWindow(&c.Rule)) {
		return nil
	}
	return checkSlot(i, c)
}

// checkSlot is check for a claim that is not on a rate, or not a valid one.
func checkSlot(i int, c *driver.Claim) error {
	if !knownSlots(&c.Rule) {
		return explain("claim", i, c.Policy, c.Rule, c.Cost)
	}
	if err := c.CheckLease(); err != nil {
		return failure("claim", i, c.Policy, err)
	}
	return nil
}

// knownBucket says whether the rule is a valid bucket: the cheap form of [driver.Rule.Validate], asked for every claim
// because the arithmetic relies on it.
func knownBucket(r *driver.Rule) bool {
	n, p := r.Reduced()
	return r.Kind() == driver.KindBucket && r.Zone() == nil && uint(r.Capacity()-1) < driver.MaxCount &&
		uint64(n-1) < driver.MaxCount && uint64(p-1) < maxPeriod && n <= 1000*p
}

func knownWindow(r *driver.Rule) bool { return r.IsWindow() && r.Validate() == nil }

// knownSlots is the cheap form for slots, which have no rate.
func knownSlots(r *driver.Rule) bool {
	_, p := r.Reduced()
	return r.Kind() == driver.KindSlots && r.Zone() == nil && uint(r.Capacity()-1) < driver.MaxCount && p >= 0
}

const maxPeriod = uint64(driver.MaxPeriod / 1000) // microseconds

// explain makes the error of a claim or a change whose rule or cost cannot be right.
func explain(what string, i int, policy string, r driver.Rule, cost int) error {
	err := r.Validate()
	switch {
	case cost < 0:
		err = fmt.Errorf("cost %d is negative", cost)
	case r.Kind() == driver.KindUnlimited:
		err = errors.New("an unlimited rule has no state; do not ask a store about it")
	case err == nil:
		err = errors.New("slots are released, not settled")
	}
	return failure(what, i, policy, err)
}

// failure names the policy and never the subject.
func failure(what string, i int, policy string, err error) error {
	return &driver.Error{Class: driver.ClassOther, Err: fmt.Errorf("memory: %s %d (policy %q): %w", what, i, policy, err)}
}
