package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// faults are what can be wrong with a twin. The zero value is a sound store.
type faults struct {
	// taking
	chargesRefused, chargesFirst, snapshot, checkThenAct, offByOne, refusedWritesTime, sameKeyTwice bool
	// shadow
	shadowCharged, shadowRefuses, shadowUncharged, shadowsStopEachOther bool
	// costs
	zeroWrites, zeroRefused, negativeMints, costWithoutReason, failsBatch bool
	// time and arithmetic
	clockGoesBack, clockFreezes, rememberRule, dropsFraction, wholeSeconds, fullWhenWide, wraps, roundsDown, roundsUp bool
	// keys
	joinsNames, sharesPolicies, cutsSubjects, cString bool
	// answers
	stopsAtRefusal, answersAsTaken, keepsOldErr, keepsOldResult bool
	// settling
	overfills, deepDebt, createsOnGiveBack, asksWhenSettling, settleLost bool
	// life
	worksAfterClose, secondCloseFails, canceledRefuses bool
}

// twin is a simple store that can be broken on purpose. It shares nothing with the suite's reference.
type twin struct {
	faults
	mu     sync.Mutex
	closed bool
	state  map[string]driver.Bucket
	rules  map[string]driver.Rule
	extra  map[string]int64
}

func newTwin(f faults) *twin {
	return &twin{faults: f, state: map[string]driver.Bucket{}, rules: map[string]driver.Rule{}, extra: map[string]int64{}}
}

func (t *twin) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed && t.secondCloseFails {
		return errors.New("already closed")
	}
	t.closed = true
	return nil
}

func (t *twin) clock(now time.Time) int64 {
	if now.IsZero() {
		now = time.Now()
	}
	us := now.UnixMicro()
	if t.wholeSeconds {
		us -= us % 1_000_000
	}
	return us
}

func (t *twin) key(policy, subject string) string {
	if t.cutsSubjects && len(subject) > 1000 {
		subject = subject[:1000]
	}
	if t.cString {
		for i := range len(subject) {
			if subject[i] == 0 && i > 0 {
				subject = subject[:i]
				break
			}
		}
	}
	switch {
	case t.joinsNames:
		return policy + ":" + subject
	case t.sharesPolicies:
		return subject
	}
	return fmt.Sprintf("%d %s %s", len(policy), policy, subject)
}

func (t *twin) Decide(ctx context.Context, now time.Time, batch []driver.Entry) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed && !t.worksAfterClose {
		return driver.ErrClosed
	}
	us, old := t.clock(now), t.state
	if t.snapshot {
		old = maps.Clone(t.state)
	}
	for i := range batch {
		e := &batch[i]
		if !t.keepsOldErr {
			e.Err = nil
		}
		for j := range e.Claims {
			c := &e.Claims[j]
			if c.Rule.Kind() != driver.KindBucket || c.Rule.Validate() != nil || c.Cost < 0 && !t.negativeMints {
				e.Err = fmt.Errorf("claim %d: rule %v, cost %d", j, c.Rule, c.Cost)
			}
		}
		if e.Err != nil && t.failsBatch {
			return e.Err
		}
		if e.Err == nil {
			t.decide(ctx, us, e, old)
		}
	}
	return nil
}

// decide answers one entry, reading from old and writing to t.state; they are the same unless that is the fault.
func (t *twin) decide(ctx context.Context, us int64, e *driver.Entry, old map[string]driver.Bucket) {
	levels := make([]driver.Level, len(e.Claims))
	taken := make([]bool, len(e.Claims))
	undo := map[string]driver.Bucket{}
	stands, shadowStands := true, true
	for i := range e.Claims {
		c := &e.Claims[i]
		k := t.key(c.Policy, c.Subject)
		if _, ok := undo[k]; !ok {
			undo[k] = t.state[k]
		}
		if t.rememberRule {
			if r, ok := t.rules[k]; ok {
				c.Rule = r
			} else if c.Cost > 0 {
				t.rules[k] = c.Rule
			}
		}
		b := old[k]
		if t.sameKeyTwice {
			b = undo[k]
		}
		if t.checkThenAct {
			t.mu.Unlock()
			runtime.Gosched()
			t.mu.Lock()
		}
		levels[i] = t.read(b, c.Rule, us)
		levels[i].Whole += t.extra[k]
		fits := t.fits(levels[i], c)
		if t.canceledRefuses && ctx.Err() != nil {
			fits, levels[i].Whole = false, 0
		}
		if !fits && (!c.Shadow || t.shadowRefuses) {
			stands = false
		}
		if !fits && c.Shadow && t.shadowsStopEachOther {
			shadowStands = false
		}
		take := fits && stands && c.Cost != 0 || t.chargesRefused && c.Cost <= c.Rule.Capacity()
		if c.Shadow {
			take = take && shadowStands && !t.shadowUncharged || t.shadowCharged && fits
		}
		if take || t.zeroWrites && c.Cost == 0 {
			taken[i] = true
			t.state[k] = t.take(levels[i], c.Rule, c.Cost)
		} else if t.refusedWritesTime && !fits && b.Time != 0 {
			undo[k] = levels[i].Take(c.Rule, 0)
		}
	}
	if !stands && !t.chargesRefused && !t.chargesFirst {
		for i := range e.Claims {
			if c := &e.Claims[i]; !c.Shadow || !t.shadowCharged {
				t.put(t.key(c.Policy, c.Subject), undo)
			}
		}
	}
	for i := range e.Claims {
		c := &e.Claims[i]
		if t.keepsOldResult && c.Result.Remaining > 0 {
			continue
		}
		t.answer(c, levels[i], taken[i] && (stands || t.answersAsTaken))
		if t.stopsAtRefusal && !c.Result.Allowed && !c.Shadow {
			for j := i + 1; j < len(e.Claims); j++ {
				e.Claims[j].Result = driver.Result{Allowed: true, Remaining: e.Claims[j].Rule.Capacity()}
			}
			return
		}
	}
}

func (t *twin) put(k string, from map[string]driver.Bucket) {
	if b := from[k]; b.Time == 0 {
		delete(t.state, k)
	} else {
		t.state[k] = b
	}
}

func (t *twin) read(b driver.Bucket, rule driver.Rule, us int64) driver.Level {
	if t.clockGoesBack && us < b.Time {
		b.Time = us
	}
	if t.clockFreezes && us < b.Time {
		return driver.Level{At: b.Time}
	}
	elapsed := max(us-b.Time, 0)
	n, _ := rule.Reduced()
	if b.Time != 0 && t.fullWhenWide && float64(elapsed)*float64(n) >= 1<<53 {
		return driver.Level{Whole: int64(rule.Capacity()), At: us}
	}
	if b.Time != 0 && t.wraps && elapsed*n < 0 {
		return driver.Level{Whole: 0, At: us}
	}
	return b.Read(rule, us)
}

func (t *twin) fits(l driver.Level, c *driver.Claim) bool {
	switch {
	case c.Cost == 0:
		return l.Whole > 0 || !t.zeroRefused
	case t.offByOne:
		return l.Whole+1 >= int64(c.Cost)
	}
	return l.Fits(c.Cost)
}

func (t *twin) take(l driver.Level, rule driver.Rule, cost int) driver.Bucket {
	b := l.Take(rule, cost)
	if t.dropsFraction {
		b.Part = 0
	}
	return b
}

func (t *twin) answer(c *driver.Claim, l driver.Level, taken bool) {
	r := l.Result(c.Rule, c.Cost, taken)
	if t.offByOne && taken {
		r.Allowed, r.Reason, r.RetryAfter = true, driver.ReasonNone, 0
	}
	if t.zeroRefused && c.Cost == 0 && l.Whole <= 0 {
		r.Allowed, r.Reason = false, driver.ReasonLimit
	}
	if t.canceledRefuses && l.Whole == 0 {
		r.Allowed = false
	}
	if t.costWithoutReason && r.Reason == driver.ReasonCost {
		r.Reason, r.RetryAfter = driver.ReasonLimit, time.Second
	}
	if t.roundsDown {
		r.RetryAfter = r.RetryAfter.Truncate(time.Millisecond)
	}
	if t.roundsUp {
		r.RetryAfter = (r.RetryAfter + time.Second - 1).Truncate(time.Second)
	}
	c.Result = r
}

func (t *twin) Apply(_ context.Context, now time.Time, changes []driver.Change) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed && !t.worksAfterClose {
		return driver.ErrClosed
	}
	us := t.clock(now)
	for i := range changes {
		c := &changes[i]
		k := t.key(c.Policy, c.Subject)
		b, ok := t.state[k]
		if c.Kind != driver.Settle || c.Amount == 0 || !ok && c.Amount < 0 && !t.createsOnGiveBack {
			continue
		}
		if t.settleLost {
			t.mu.Unlock()
			runtime.Gosched()
			t.mu.Lock()
		}
		level := t.read(b, c.Rule, us)
		if t.asksWhenSettling && !level.Fits(c.Amount) {
			continue
		}
		after := level.Settle(c.Rule, c.Amount)
		// The model cuts both when it reads, so what is wrong is kept beside the state.
		uncut := level.Whole - min(max(int64(c.Amount), -1000), 1000)
		if t.overfills && uncut > after.Whole || t.deepDebt && uncut < after.Whole {
			t.extra[k] = uncut - after.Whole
		}
		t.state[k] = after
	}
	return nil
}
