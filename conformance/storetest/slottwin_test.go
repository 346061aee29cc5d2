package storetest_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// slotFaults are what can be wrong with a store's slots. The zero value is a sound store.
type slotFaults struct {
	// counting
	countsBefore, oneMore, deniedHolds, checkThenAct, zeroTakes, zeroRefused, zeroTooLow, againTakes bool
	// leases
	firstHalf, secondHalf, releasesAny, releasesEverywhere, releaseCounts, releaseLost bool
	renewRevives, renewAlways, renewIdle, renewNever, renewElsewhere, renewTakes       bool
	// time
	neverSweeps, sweepsAtOnce, sweepsOldest, lookSweeps, sweepUndone, endsLate, endsEarly, clockBackEnds, endsInProcess bool
	// changes of the limit
	remembersMax, throwsOut bool
	// requests
	rateRefusedHolds, slotRefusedPays, shadowRefuses, shadowHeldByRefused, shadowUnheld, sameKeyTwice, snapshot bool
	stopsAtRefusal, failsBatch, acceptsInvalid, invalidHolds, keepsResult, keepsLost                            bool
	// corrections
	oneKindOnly bool
	// keys
	sharesPolicies, joinsNames, sharesKinds, nameByMax, namesAsBucket, namesSubject bool
	// clearing
	resetsNothing, resetsLeasesOnly, resetsRatesOnly, resetsSubject, resetsPolicy bool
}

// slotTwin is a simple store of slots, buckets and windows that can be broken on purpose. It shares nothing with the
// suite's reference.
type slotTwin struct {
	slotFaults
	process bool // leases end by release alone
	mu      sync.Mutex
	state   map[string]*holding
}

// holding is the state of a key.
type holding struct {
	bucket driver.Bucket
	window driver.Window
	leases map[driver.ID]int64
	// of faults:
	extra int // counted beside the leases
	most  int // the limit that was first seen
}

func newSlotTwin(f slotFaults) *slotTwin {
	return &slotTwin{slotFaults: f, state: map[string]*holding{}}
}

// processTwin is the same store in the process.
type processTwin struct{ *slotTwin }

func newProcessTwin(f slotFaults) processTwin {
	t := newSlotTwin(f)
	t.process = true
	return processTwin{t}
}

func (processTwin) InProcess() {}

func (t *slotTwin) Close() error { return nil }

func (t *slotTwin) KeyName(policy, subject string, rule driver.Rule) string {
	name := policy + driver.Digest(subject)
	switch {
	case rule.Kind() != driver.KindSlots || t.namesAsBucket:
	case t.nameByMax:
		name += fmt.Sprint(rule.Capacity())
	default:
		name += " slots"
	}
	if t.namesSubject {
		name += subject
	}
	return name
}

func (t *slotTwin) at(policy, subject string) *holding {
	k := fmt.Sprintf("%d %s %s", len(policy), policy, subject)
	switch {
	case t.sharesPolicies:
		k = subject
	case t.joinsNames:
		k = policy + ":" + subject
	}
	if t.state[k] == nil {
		t.state[k] = &holding{leases: map[driver.ID]int64{}}
	}
	return t.state[k]
}

func (t *slotTwin) id(id driver.ID) driver.ID {
	switch {
	case t.firstHalf:
		clear(id[8:])
	case t.secondHalf:
		clear(id[:8])
	}
	return id
}

func (t *slotTwin) yield() {
	t.mu.Unlock()
	runtime.Gosched()
	t.mu.Lock()
}

func (t *slotTwin) Decide(_ context.Context, now time.Time, batch []driver.Entry) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var counts map[*holding]int
	if t.snapshot {
		counts = map[*holding]int{}
		for _, h := range t.state {
			counts[h] = len(h.leases)
		}
	}
	for i := range batch {
		e := &batch[i]
		e.Err = nil
		for j := range e.Claims {
			c := &e.Claims[j]
			bad := c.Cost < 0 || c.Rule.Kind() == driver.KindUnlimited || c.Rule.Validate() != nil || c.CheckLease() != nil
			if isSlot := c.Rule.Kind() == driver.KindSlots; bad && !(t.acceptsInvalid && isSlot && c.Rule.Validate() == nil) {
				e.Err = fmt.Errorf("claim %d: rule %v, cost %d", j, c.Rule, c.Cost)
			} else if isSlot && t.invalidHolds && len(e.Claims) > 1 && c.Cost > 0 {
				t.at(c.Policy, c.Subject).leases[t.id(c.Lease)] = math.MaxInt64
			}
		}
		if e.Err != nil && t.failsBatch {
			return e.Err
		}
		if e.Err == nil {
			t.decide(micros(now), e, counts)
		}
	}
	return nil
}

func (t *slotTwin) decide(us int64, e *driver.Entry, counts map[*holding]int) {
	type found struct {
		bucket driver.Level
		window driver.WindowLevel
		held   int
		taken  bool
	}
	all := make([]found, len(e.Claims))
	undo := map[*holding]holding{}
	stands := true
	for i := range e.Claims {
		c, f := &e.Claims[i], &all[i]
		h := t.at(c.Policy, c.Subject)
		if _, ok := undo[h]; !ok {
			undo[h] = holding{bucket: h.bucket, window: h.window, extra: h.extra, leases: maps.Clone(h.leases)}
		}
		fits := c.Cost == 0
		switch {
		case c.Rule.Kind() == driver.KindSlots:
			f.held = t.held(h, c, us)
			if counts != nil && c.Cost > 0 {
				f.held = counts[h]
			}
			if t.sameKeyTwice {
				f.held = len(undo[h].leases)
			}
			fits = t.fits(h, f.held, c)
		case c.Rule.IsWindow():
			f.window = h.window.Read(c.Rule, us)
			fits = fits || f.window.Fits(c.Rule, c.Cost)
		default:
			f.bucket = h.bucket.Read(c.Rule, us)
			fits = fits || f.bucket.Fits(c.Cost)
		}
		if !fits && (!c.Shadow || t.shadowRefuses) {
			stands = false
		}
		if t.checkThenAct {
			t.yield()
		}
		isSlot := c.Rule.Kind() == driver.KindSlots
		take := fits && stands && c.Cost > 0 && !(isSlot && c.Shadow && t.shadowUnheld)
		switch {
		case isSlot && (t.deniedHolds && !fits && len(e.Claims) == 1 || t.zeroTakes && c.Cost == 0 || t.shadowHeldByRefused && c.Shadow && fits):
			h.leases[t.id(c.Lease)] = t.until(us, c.LeaseFor)
			undo[h] = holding{bucket: h.bucket, window: h.window, leases: maps.Clone(h.leases)}
			f.taken = take
		case take && isSlot:
			if _, again := h.leases[t.id(c.Lease)]; again && t.againTakes {
				h.extra++
			}
			h.leases[t.id(c.Lease)] = t.until(us, c.LeaseFor)
			f.taken = true
		case take && c.Rule.IsWindow():
			h.window, f.taken = f.window.Take(c.Cost), true
		case take:
			h.bucket, f.taken = f.bucket.Take(c.Rule, c.Cost), true
		}
	}
	for h, old := range undo {
		if stands {
			break
		}
		if !t.slotRefusedPays {
			h.bucket, h.window = old.bucket, old.window
		}
		switch {
		case t.sweepUndone:
			h.leases = old.leases
		case !t.rateRefusedHolds:
			// What was swept stays away.
			maps.DeleteFunc(h.leases, func(id driver.ID, _ int64) bool { _, before := old.leases[id]; return !before })
			h.extra = old.extra
		}
	}
	for i := range e.Claims {
		c, f := &e.Claims[i], &all[i]
		before := c.Result
		switch f.taken = f.taken && stands; {
		case c.Rule.Kind() == driver.KindSlots:
			c.Result = t.answer(c, f.held, f.taken)
			if t.keepsResult && before.Remaining > c.Rule.Capacity() {
				c.Result.ResetAfter = before.ResetAfter
			}
		case c.Rule.IsWindow():
			c.Result = f.window.Result(c.Rule, c.Cost, f.taken)
		default:
			c.Result = f.bucket.Result(c.Rule, c.Cost, f.taken)
		}
		if t.stopsAtRefusal && !c.Result.Allowed && !c.Shadow {
			for j := i + 1; j < len(e.Claims); j++ {
				e.Claims[j].Result = driver.Result{Allowed: true, Remaining: e.Claims[j].Rule.Capacity()}
			}
			return
		}
	}
}

func (t *slotTwin) until(us int64, d time.Duration) int64 {
	if t.process && !t.endsInProcess {
		return math.MaxInt64
	}
	return us + d.Microseconds()
}

func (t *slotTwin) over(until, us int64) bool {
	switch {
	case t.endsLate:
		return until < us
	case t.endsEarly:
		return until-500 <= us
	case t.clockBackEnds:
		return until <= us || until > us+3600_000_000
	}
	return until <= us
}

// held counts the leases of a key.
func (t *slotTwin) held(h *holding, c *driver.Claim, us int64) int {
	n := c.Rule.Capacity()
	if h.most == 0 {
		h.most = n
	}
	live := 0
	for _, until := range h.leases {
		if !t.over(until, us) {
			live++
		}
	}
	switch {
	case c.Cost > 0 || t.lookSweeps:
	case t.zeroTooLow:
		return len(h.leases) + h.extra
	default:
		return live + h.extra
	}
	full := len(h.leases)+h.extra >= n || t.sweepsAtOnce || c.Cost == 0 && t.lookSweeps
	if full && !t.neverSweeps {
		maps.DeleteFunc(h.leases, func(_ driver.ID, until int64) bool { return t.over(until, us) })
	}
	for id := range h.leases {
		if t.throwsOut && len(h.leases) > n || t.sweepsOldest && full && len(h.leases) == n {
			delete(h.leases, id)
		}
	}
	return len(h.leases) + h.extra
}

func (t *slotTwin) fits(h *holding, held int, c *driver.Claim) bool {
	n := c.Rule.Capacity()
	switch {
	case c.Cost == 0:
		return !t.zeroRefused || held < n
	case t.oneMore:
		return held <= n
	case t.remembersMax:
		return held < h.most
	}
	return held < n
}

func (t *slotTwin) answer(c *driver.Claim, held int, taken bool) driver.Result {
	if t.countsBefore && taken {
		held--
	}
	r := driver.SlotResult(c.Rule, c.Cost, held, taken)
	if taken {
		r.Allowed, r.Reason, r.Remaining = true, driver.ReasonNone, max(r.Remaining, 0)
	}
	if t.zeroRefused && c.Cost == 0 && held >= c.Rule.Capacity() {
		r.Allowed, r.Reason = false, driver.ReasonLimit
	}
	return r
}
