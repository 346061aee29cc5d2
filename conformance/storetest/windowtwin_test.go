package storetest_test

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// windowFaults are what can be wrong with a store's windows. The zero value is a sound store.
type windowFaults struct {
	// counting
	deniedCounts, deniedMovesTime, oneMore, equalTimesOnce, countsBeforeCleaning, checkThenAct, maxCostWraps bool
	zeroRefused, zeroMovesTime                                                                               bool
	// windows
	fromFirstHit, endsAfterLast, edgeLate, forgetsPrev, prevForEver, wholeSeconds, clockBack bool
	floatDivision, floatProducts, plainProducts, days24, months30, utcOnly, dateIsFirst      bool
	// changes
	kindLosesCounts, lengthLosesCounts, remembersLimit, bucketShares, sharesPolicies bool
	// requests
	chargesFirst, snapshot, sameKeyTwice, shadowCharged, shadowRefuses, failsBatch, acceptsInvalid bool
	// answers
	retryWhole, retryShort, retryRest, keepsReceipt, nameByKind bool
	// settling
	ignoresReceipts, dropsReceipts, receiptByStart, givesCredit, noBound, givesTwoLimits, asksWhenSettling, settleLost bool
}

// windowTwin is a simple store of windows and buckets that can be broken on purpose.
type windowTwin struct {
	windowFaults
	mu    sync.Mutex
	state map[string]pane
}

// pane is the state of a key; first and limit are used by faults only.
type pane struct {
	bucket driver.Bucket
	window driver.Window
	first  int64
	limit  int
}

func newWindowTwin(f windowFaults) *windowTwin {
	return &windowTwin{windowFaults: f, state: map[string]pane{}}
}

func (t *windowTwin) Close() error { return nil }

func (t *windowTwin) KeyName(policy, subject string, rule driver.Rule) string {
	return driver.Digest(t.key(policy, subject, rule))
}

func (t *windowTwin) key(policy, subject string, rule driver.Rule) string {
	if t.sharesPolicies && rule.IsWindow() {
		policy = "all"
	}
	k := fmt.Sprintf("%d %s %s", len(policy), policy, subject)
	_, period := rule.Rate()
	switch {
	case !rule.IsWindow() && !t.bucketShares:
		k += " bucket"
	case t.nameByKind || t.kindLosesCounts:
		k += fmt.Sprint(" ", rule.Kind())
	case t.lengthLosesCounts:
		k += fmt.Sprint(" ", period)
	}
	return k
}

func micros(now time.Time) int64 {
	if now.IsZero() {
		now = time.Now()
	}
	return now.UnixMicro()
}

func (t *windowTwin) Decide(_ context.Context, now time.Time, batch []driver.Entry) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	us, old := micros(now), t.state
	if t.snapshot {
		old = maps.Clone(t.state)
	}
	for i := range batch {
		e := &batch[i]
		e.Err = nil
		for j := range e.Claims {
			c := &e.Claims[j]
			if c.Cost < 0 || c.Rule.Kind() == driver.KindUnlimited || c.Rule.Validate() != nil && !(t.acceptsInvalid && c.Rule.IsWindow()) {
				e.Err = fmt.Errorf("claim %d: rule %v, cost %d", j, c.Rule, c.Cost)
			}
		}
		if e.Err != nil && t.failsBatch {
			return e.Err
		}
		if e.Err == nil {
			t.decide(us, e, old)
		}
	}
	return nil
}

// view is what a claim found.
type view struct {
	bucket driver.Level
	window driver.WindowLevel
}

func (t *windowTwin) decide(us int64, e *driver.Entry, old map[string]pane) {
	views := make([]view, len(e.Claims))
	taken := make([]bool, len(e.Claims))
	undo := map[string]pane{}
	stands := true
	for i := range e.Claims {
		c := &e.Claims[i]
		k := t.key(c.Policy, c.Subject, c.Rule)
		if _, ok := undo[k]; !ok {
			undo[k] = t.state[k]
		}
		s := old[k]
		if t.sameKeyTwice {
			s = undo[k]
		}
		if t.checkThenAct {
			t.mu.Unlock()
			runtime.Gosched()
			t.mu.Lock()
		}
		views[i] = t.read(s, c.Rule, us)
		fits := t.fits(s, views[i], c)
		if !fits && (!c.Shadow || t.shadowRefuses) {
			stands = false
		}
		switch {
		case fits && (stands || c.Shadow && t.shadowCharged) && c.Cost > 0:
			taken[i] = true
			t.state[k] = t.take(s, views[i], c.Rule, c.Cost)
		case !fits && c.Rule.IsWindow() && !c.Shadow && len(e.Claims) == 1:
			undo[k] = t.refuse(s, views[i])
		case c.Cost == 0 && t.zeroMovesTime && s.window.Time != 0:
			s.window = views[i].window.Take(0)
			t.state[k], undo[k] = s, s
		}
	}
	if !stands && !t.chargesFirst {
		for i := range e.Claims {
			c := &e.Claims[i]
			if k := t.key(c.Policy, c.Subject, c.Rule); !c.Shadow || !t.shadowCharged {
				t.put(k, undo[k])
			}
		}
	}
	for i := range e.Claims {
		t.answer(&e.Claims[i], views[i], taken[i] && stands)
	}
}

func (t *windowTwin) put(k string, s pane) {
	if s == (pane{}) {
		delete(t.state, k)
	} else {
		t.state[k] = s
	}
}

// refuse returns what a refused request leaves behind.
func (t *windowTwin) refuse(s pane, v view) pane {
	switch {
	case t.deniedCounts:
		s.window = v.window.Take(1)
	case (t.deniedMovesTime || t.endsAfterLast) && s.window.Time != 0:
		s.window.Time = v.window.At
	case t.countsBeforeCleaning && s.window.Time != 0:
		s.window = v.window.Take(0)
	}
	return s
}

func (t *windowTwin) read(s pane, rule driver.Rule, us int64) view {
	if !rule.IsWindow() {
		return view{bucket: s.bucket.Read(rule, us)}
	}
	w := s.window
	if t.clockBack {
		w.Time = min(w.Time, us)
	}
	if _, period := rule.Rate(); t.wholeSeconds && rule.Zone() == nil {
		if period < time.Second {
			return view{window: driver.WindowLevel{Cur: int64(rule.Capacity()), Length: period.Microseconds(), At: us}}
		}
		rule = driver.NewWindow(rule.Kind(), rule.Capacity(), period.Truncate(time.Second))
	}
	if t.utcOnly && rule.Zone() != nil {
		rule = rule.In(time.UTC)
	}
	l := w.Read(rule, us)
	switch start := l.Start(); {
	case w.Time == 0:
	case t.fromFirstHit && l.At < s.first+l.Length:
		l.Prev, l.Cur, l.Elapsed = w.Prev, w.Cur, max(l.At-s.first, 0)
	case t.fromFirstHit:
		l.Prev, l.Cur, l.Elapsed = w.Cur, 0, 0
	case t.endsAfterLast && l.At < w.Time+l.Length:
		l.Prev, l.Cur = w.Prev, w.Cur
	case t.edgeLate && l.Elapsed == 0 && w.Time >= start-l.Length:
		l.Prev, l.Cur = w.Prev, w.Cur
	case t.prevForEver && w.Time < start-l.Length:
		l.Prev = w.Cur
	}
	if t.forgetsPrev {
		l.Prev = 0
	}
	const day = 86400e6
	switch b := rule.Zone() != nil; {
	case b && t.days24 && rule.Kind() == driver.KindDaily:
		edges := rule.Boundaries(l.At)
		l.Elapsed, l.Length = (l.At-edges[1])%day, day
	case b && t.months30 && rule.Kind() == driver.KindMonthly:
		l.Length = max(30*day, l.Elapsed+1)
	case b && t.dateIsFirst && rule.Kind() == driver.KindDaily:
		y, m, d := time.UnixMicro(l.At).In(rule.Zone()).Date()
		edge := func(i int) int64 { return time.Date(y, m, d+i, 0, 0, 0, 0, rule.Zone()).UnixMicro() }
		l.Elapsed, l.Length = l.At-edge(0), max(edge(1)-edge(0), l.At-edge(0)+1)
		if w.Time < l.Start() {
			l.Cur = 0
		}
	}
	return view{window: l}
}

func (t *windowTwin) fits(s pane, v view, c *driver.Claim) bool {
	if !c.Rule.IsWindow() {
		return c.Cost == 0 || v.bucket.Fits(c.Cost)
	}
	l, rule := v.window, c.Rule
	if t.remembersLimit && s.limit != 0 {
		rule = driver.NewWindow(rule.Kind(), s.limit, time.Duration(l.Length)*time.Microsecond)
	}
	if t.countsBeforeCleaning && s.window.Time != 0 && s.window.Time < l.Start() {
		l.Cur = s.window.Cur
	}
	m, rest := int64(rule.Capacity())-l.Cur-int64(c.Cost), l.Length-l.Elapsed
	sliding := rule.Kind() == driver.KindSliding && m >= 0 && c.Cost <= rule.Capacity()
	switch {
	case c.Cost == 0:
		return !t.zeroRefused || l.Fits(rule, 1)
	case t.oneMore:
		l.Cur--
	case t.maxCostWraps && !sliding:
		return m >= 0
	case t.floatDivision && sliding:
		return float64(l.Prev)*float64(rest)/float64(l.Length) <= float64(m)
	case t.floatProducts && sliding:
		return float64(l.Prev)*float64(rest) <= float64(m)*float64(l.Length)
	case t.plainProducts && sliding:
		return l.Prev*rest <= m*l.Length
	}
	return l.Fits(rule, c.Cost)
}

func (t *windowTwin) take(s pane, v view, rule driver.Rule, cost int) pane {
	if !rule.IsWindow() {
		s.bucket = v.bucket.Take(rule, cost)
		if t.bucketShares {
			s.window = driver.Window{Cur: s.bucket.Whole, Time: s.bucket.Time}
		}
		return s
	}
	if s.limit == 0 {
		s.limit = rule.Capacity()
	}
	if v.window.Elapsed == 0 || s.first == 0 {
		s.first = v.window.At
	}
	if t.equalTimesOnce && s.window.Time == v.window.At {
		return s
	}
	s.window = v.window.Take(cost)
	return s
}

func (t *windowTwin) answer(c *driver.Claim, v view, taken bool) {
	if !c.Rule.IsWindow() {
		c.Result = v.bucket.Result(c.Rule, c.Cost, taken)
		return
	}
	old := c.Result.Receipt
	r := v.window.Result(c.Rule, c.Cost, taken)
	if taken {
		r.Allowed, r.Reason, r.RetryAfter = true, driver.ReasonNone, 0
	}
	if r.Allowed && c.Cost == 0 && t.zeroRefused && r.Remaining == 0 {
		r.Allowed, r.Reason, r.RetryAfter = false, driver.ReasonLimit, r.ResetAfter
	}
	switch {
	case t.retryWhole && r.RetryAfter > 0:
		r.RetryAfter = time.Duration(v.window.Length) * time.Microsecond
	case t.retryShort && r.RetryAfter > time.Microsecond:
		r.RetryAfter -= time.Microsecond
	case t.retryRest && r.RetryAfter > 0:
		r.RetryAfter = r.ResetAfter
	case t.keepsReceipt && old != driver.Receipt{}:
		r.Receipt = old
	}
	c.Result = r
}

func (t *windowTwin) Apply(_ context.Context, now time.Time, changes []driver.Change) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	us := micros(now)
	for i := range changes {
		c := &changes[i]
		k := t.key(c.Policy, c.Subject, c.Rule)
		s, ok := t.state[k]
		if c.Kind != driver.Settle || c.Amount == 0 || !ok && c.Amount < 0 && !t.givesCredit {
			continue
		}
		if t.settleLost {
			t.mu.Unlock()
			runtime.Gosched()
			t.mu.Lock()
		}
		v := t.read(s, c.Rule, us)
		if !c.Rule.IsWindow() {
			s.bucket = v.bucket.Settle(c.Rule, c.Amount)
			t.state[k] = s
			continue
		}
		switch {
		case t.ignoresReceipts:
		case t.dropsReceipts && c.Receipt.Unit != 0,
			t.receiptByStart && c.Receipt.Unit != 0 && c.Receipt.Start != v.window.Start(),
			!t.receiptByStart && !v.window.Runs(c.Receipt),
			t.asksWhenSettling && !v.window.Fits(c.Rule, max(c.Amount, 0)):
			continue
		}
		t.state[k] = t.settle(s, v.window, c)
	}
	return nil
}

func (t *windowTwin) settle(s pane, l driver.WindowLevel, c *driver.Change) pane {
	amount, limit := c.Amount, c.Rule.Capacity()
	if t.givesTwoLimits {
		amount = max(amount, -2*limit)
	}
	s.window = l.Settle(c.Rule, amount)
	uncut := l.Cur + int64(min(max(amount, -1000), 1_000_000))
	if t.givesCredit && uncut < 0 || t.noBound && uncut > int64(2*limit) {
		s.window.Cur = uncut
	}
	return s
}
