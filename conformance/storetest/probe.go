package storetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// probe runs one case against a store and collects what is wrong. It is no testing.T, so that a broken store can be
// shown to fail.
type probe struct {
	newStore func() driver.Store
	id       string // unique in the world: subjects and policies that contain it are this case's own

	mu       sync.Mutex
	made     []driver.Store
	failures []string
}

// stop ends a case. Anything else that is thrown is a store that panicked.
type stop struct{}

// enough failures tell what is wrong; a history would list thousands.
const enough = 5

func runCase(c Case, newStore func() driver.Store) []string {
	p := &probe{newStore: newStore, id: unique()}
	func() {
		defer func() {
			if r := recover(); r != nil && r != any(stop{}) {
				p.failures = append(p.failures, fmt.Sprintf("panic: %v", r))
			}
		}()
		c.run(p)
	}()
	for _, s := range p.made {
		s.Close()
	}
	return p.failures
}

var runID = sync.OnceValue(func() string {
	var b [6]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
})

var caseCount atomic.Uint64

func unique() string { return runID() + "-" + strconv.FormatUint(caseCount.Add(1), 36) }

// errorf notes a failure; the case goes on. It may be called by any goroutine, but the one that makes it enough must be
// the case's own.
func (p *probe) errorf(format string, args ...any) {
	p.mu.Lock()
	p.failures = append(p.failures, fmt.Sprintf(format, args...))
	full := len(p.failures) >= enough
	p.mu.Unlock()
	if full {
		panic(stop{})
	}
}

// fatalf notes a failure and ends the case.
func (p *probe) fatalf(format string, args ...any) {
	p.mu.Lock()
	p.failures = append(p.failures, fmt.Sprintf(format, args...))
	p.mu.Unlock()
	panic(stop{})
}

// store returns the case's store.
func (p *probe) store() driver.Store {
	if len(p.made) == 0 {
		return p.another()
	}
	return p.made[0]
}

// another makes one more store.
func (p *probe) another() driver.Store {
	s := p.newStore()
	if s == nil {
		p.fatalf("the factory returned no store")
	}
	p.made = append(p.made, s)
	return s
}

// handles returns n stores on the same state: n of the factory's, or the same one n times where every store of the
// factory stands alone. Which it is shows in whether a second store sees what the first one took.
func (p *probe) handles(n int) []driver.Store {
	all := []driver.Store{p.store()}
	k := p.key("handles")
	p.take(k, perDay(1), 1, noon)
	second := p.another()
	e := []driver.Entry{{Claims: []driver.Claim{k.claim(perDay(1), 0)}}}
	if err := second.Decide(context.Background(), noon, e); err != nil {
		p.fatalf("Decide through a second store: %v", err)
	}
	shared := e[0].Claims[0].Result.Remaining == 0
	if shared {
		all = append(all, second)
	}
	for len(all) < n {
		if shared {
			all = append(all, p.another())
		} else {
			all = append(all, all[0])
		}
	}
	return all
}

// noon is the moment at which cases that give the time begin.
var noon = time.Date(2031, 3, 1, 12, 0, 0, 0, time.UTC)

// at returns the moment d after noon.
func at(d time.Duration) time.Time { return noon.Add(d) }

// key is what state is kept under.
type key struct{ policy, subject string }

func (k key) claim(rule driver.Rule, cost int) driver.Claim {
	return driver.Claim{Policy: k.policy, Subject: k.subject, Rule: rule, Cost: cost}
}

func (k key) shadow(rule driver.Rule, cost int) driver.Claim {
	c := k.claim(rule, cost)
	c.Shadow = true
	return c
}

// key returns the key of a policy; all keys of one case have one subject unless told apart by keyOf, so that a cluster
// decides them in one step.
func (p *probe) key(policy string) key { return p.keyOf(policy, "subject") }

func (p *probe) keyOf(policy, subject string) key {
	s := driver.AppendSubject(nil, "storetest")
	s = driver.AppendSubject(s, p.id)
	return key{policy, string(driver.AppendSubject(s, subject))}
}

// decide asks the case's store, fails the case if the store does, and checks what every answer has to satisfy.
func (p *probe) decide(now time.Time, batch ...driver.Entry) []driver.Entry {
	if err := p.store().Decide(context.Background(), now, batch); err != nil {
		p.fatalf("Decide: %v", err)
	}
	for i := range batch {
		if batch[i].Err == nil {
			for j := range batch[i].Claims {
				p.sane(&batch[i].Claims[j])
			}
		}
	}
	return batch
}

// entry decides one entry that must be answerable, and returns its results.
func (p *probe) entry(now time.Time, claims ...driver.Claim) []driver.Result {
	e := p.decide(now, driver.Entry{Claims: claims})[0]
	if e.Err != nil {
		p.fatalf("unexpected Err of an entry: %v", e.Err)
	}
	results := make([]driver.Result, len(claims))
	for i := range e.Claims {
		results[i] = e.Claims[i].Result
	}
	return results
}

// take decides one entry of one claim.
func (p *probe) take(k key, rule driver.Rule, cost int, now time.Time) driver.Result {
	return p.entry(now, k.claim(rule, cost))[0]
}

// apply makes changes that must succeed.
func (p *probe) apply(now time.Time, changes ...driver.Change) {
	if err := p.store().Apply(context.Background(), now, changes); err != nil {
		p.fatalf("Apply: %v", err)
	}
}

// settle takes amount from a key, or gives it back if negative.
func (p *probe) settle(k key, rule driver.Rule, amount int, now time.Time) {
	p.apply(now, driver.Change{Kind: driver.Settle, Policy: k.policy, Subject: k.subject, Rule: rule, Amount: amount})
}

// sane checks what holds for every answer (BR157).
func (p *probe) sane(c *driver.Claim) {
	r := c.Result
	if c.Rule.Kind() == driver.KindSlots {
		p.saneSlots(c)
		return
	}
	switch {
	case r.Remaining < 0 || r.Remaining > c.Rule.Capacity():
		p.errorf("remaining %d is not in 0..%d", r.Remaining, c.Rule.Capacity())
	case r.RetryAfter < 0 || r.ResetAfter < 0:
		p.errorf("negative wait: retry after %v, reset after %v", r.RetryAfter, r.ResetAfter)
	case r.Allowed && (r.Reason != driver.ReasonNone || r.RetryAfter != 0):
		p.errorf("allowed, with reason %q and retry after %v", r.Reason, r.RetryAfter)
	case !r.Allowed && r.Reason != driver.ReasonLimit && r.Reason != driver.ReasonCost:
		p.errorf("refused with reason %q", r.Reason)
	case !r.Allowed && (r.Reason == driver.ReasonCost) != (c.Cost > c.Rule.Capacity()):
		p.errorf("cost %d against capacity %d refused with reason %q", c.Cost, c.Rule.Capacity(), r.Reason)
	case !r.Allowed && (r.Reason == driver.ReasonLimit) != (r.RetryAfter > 0):
		p.errorf("refused with reason %q and retry after %v", r.Reason, r.RetryAfter)
	case c.Cost == 0 && !r.Allowed:
		p.errorf("cost 0 was refused")
	case r.Fraction.Num < 0 || r.Fraction.Num > 0 && r.Fraction.Num >= r.Fraction.Den:
		p.errorf("fraction %d/%d", r.Fraction.Num, r.Fraction.Den)
	case !c.Rule.IsWindow() && r.Receipt != driver.Receipt{}:
		p.errorf("a bucket's receipt is %+v, want none", r.Receipt)
	case c.Rule.IsWindow() && (r.Receipt.Unit <= 0 || r.ResetAfter <= 0 || r.ResetAfter > driver.Micros(r.Receipt.Unit)):
		p.errorf("a window's receipt is %+v, and its reset after %v", r.Receipt, r.ResetAfter)
	}
}

// admitted checks a result that must be allowed and leave remaining.
func (p *probe) admitted(what string, r driver.Result, remaining int) {
	if !r.Allowed || r.Remaining != remaining {
		p.errorf("%s: got %s; want allowed, remaining %d", what, show(r), remaining)
	}
}

// refused checks a result that must be refused for the limit, leave remaining and ask to wait for retry.
func (p *probe) refused(what string, r driver.Result, remaining int, retry time.Duration) {
	if r.Allowed || r.Remaining != remaining || r.RetryAfter != retry {
		p.errorf("%s: got %s; want refused, remaining %d, retry after %v", what, show(r), remaining, retry)
	}
}

func show(r driver.Result) string {
	verdict := "allowed"
	if !r.Allowed {
		verdict = "refused (" + r.Reason.String() + ")"
	}
	text := fmt.Sprintf("%s, remaining %d + %d/%d, retry after %v, reset after %v",
		verdict, r.Remaining, r.Fraction.Num, r.Fraction.Den, r.RetryAfter, r.ResetAfter)
	if r.Receipt != (driver.Receipt{}) {
		text += fmt.Sprintf(", window of %d us from %d", r.Receipt.Unit, r.Receipt.Start)
	}
	return text
}

// Rules of the cases.

func perSecond(n, burst int) driver.Rule { return driver.NewBucket(n, time.Second).WithBurst(burst) }
func perMinute(n, burst int) driver.Rule { return driver.NewBucket(n, time.Minute).WithBurst(burst) }
func perDay(n int) driver.Rule           { return driver.NewBucket(n, 24*time.Hour).WithBurst(n) }

// fresh proves that a key holds no state: a key that does is cut to the capacity it had, an absent one is as full as the
// rule that asks.
func (p *probe) fresh(what string, k key, now time.Time) {
	if r := p.take(k, perDay(1_000_000), 0, now); r.Remaining != 1_000_000 {
		p.errorf("%s: the key has state (%s)", what, show(r))
	}
}
