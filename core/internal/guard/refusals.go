package guard

import (
	"hash/maphash"
	"math"
	"math/bits"
	"sync"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// maxRemembered bounds how long a refusal is answered without asking the store, and with it how long another process's
// refund, reset or raised limit goes unseen.
const maxRemembered = 2 * time.Second

const (
	refusalShards   = 16
	refusalsPerPart = 4096
)

// Refusals remembers which keys were just refused. A key that was refused for two seconds cannot be admitted before then
// unless somebody gives tokens back or raises the limit, so the one who hammers is answered here: the more it hammers, the
// less it costs. Keys are held as 64-bit hashes, at most 65,536 of them. Safe for concurrent use.
type Refusals struct {
	seed   maphash.Seed
	shards [refusalShards]refusalShard
}

type refusalShard struct {
	mu sync.Mutex
	m  map[uint64]refusal
}

// forget makes room: what no longer answers goes, or something does. Losing one costs a call of the store, no more.
func (s *refusalShard) forget(now time.Duration) {
	for h, e := range s.m {
		if now >= e.from+min(e.result.RetryAfter, maxRemembered) {
			delete(s.m, h)
		}
	}
	for h := range s.m {
		if len(s.m) <= refusalsPerPart*3/4 { // more than one at a time, so that it is not done for each
			return
		}
		delete(s.m, h)
	}
}

// refusal is the smallest cost that was refused, and from which instant on it may fit.
type refusal struct {
	rule   driver.Rule
	cost   int
	from   time.Duration // the instant before the call was sent
	result driver.Result
}

// NewRefusals returns an empty memory.
func NewRefusals() *Refusals {
	r := &Refusals{seed: maphash.MakeSeed()}
	for i := range r.shards {
		r.shards[i].m = map[uint64]refusal{}
	}
	return r
}

// Lookup answers a claim from memory, at now on the caller's own clock: it says nothing unless this cost under this rule
// certainly does not fit yet. A refused cost of 400 says nothing about cost 1.
func (r *Refusals) Lookup(c *driver.Claim, now time.Duration) bool {
	h := r.hash(c.Policy, c.Subject)
	s := &r.shards[h%refusalShards]
	s.mu.Lock()
	e, ok := s.m[h]
	s.mu.Unlock()
	if !ok || c.Cost < e.cost || c.Cost > c.Rule.Capacity() || c.Rule != e.rule {
		return false
	}
	if e.rule.Kind() == driver.KindSliding && c.Cost != e.cost {
		return false // how much longer it would take, the sliding window alone knows
	}
	passed := now - e.from
	if passed < 0 || passed >= min(e.result.RetryAfter, maxRemembered) {
		return false
	}
	c.Result = driver.Result{
		Reason:     driver.ReasonMemory,
		Remaining:  e.result.Remaining,
		RetryAfter: e.result.RetryAfter - passed,
		ResetAfter: max(0, e.result.ResetAfter-passed),
		Receipt:    e.result.Receipt,
	}
	if !e.rule.IsWindow() {
		n, p := e.rule.Reduced()
		c.Result.Remaining = min(e.cost-1, c.Result.Remaining+int(grown(e.result.Fraction, passed, n, p)))
		c.Result.RetryAfter += e.rule.Refill(c.Cost - e.cost)
	}
	return true
}

// Remember keeps a refusal by the store; from is the instant before the call was sent. What a cost that was admitted took
// makes the waits of a remembered one longer: it is forgotten.
func (r *Refusals) Remember(c *driver.Claim, from time.Duration) {
	if c.Result.Allowed && c.Cost > 0 {
		r.Forget(c.Policy, c.Subject)
		return
	}
	if c.Result.Allowed || c.Result.Reason != driver.ReasonLimit || c.Result.RetryAfter <= 0 {
		return
	}
	h := r.hash(c.Policy, c.Subject)
	s := &r.shards[h%refusalShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.m[h]; ok && e.rule == c.Rule && e.cost < c.Cost && from < e.from+min(e.result.RetryAfter, maxRemembered) {
		return // the smaller cost says more
	}
	if len(s.m) >= refusalsPerPart {
		s.forget(from)
	}
	s.m[h] = refusal{rule: c.Rule, cost: c.Cost, from: from, result: c.Result}
}

// Forget drops what is known of a key: something was given back to it.
func (r *Refusals) Forget(policy, subject string) {
	h := r.hash(policy, subject)
	s := &r.shards[h%refusalShards]
	s.mu.Lock()
	delete(s.m, h)
	s.mu.Unlock()
}

// Clear drops everything: modes or limits changed.
func (r *Refusals) Clear() {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		clear(s.m)
		s.mu.Unlock()
	}
}

func (r *Refusals) hash(policy, subject string) uint64 {
	return maphash.String(r.seed, policy) ^ bits.RotateLeft64(maphash.String(r.seed, subject), 1)
}

// grown is how many whole tokens came since the refusal, with the fraction that was there.
func grown(f driver.Fraction, passed time.Duration, n, p int64) int64 {
	hi, lo := bits.Mul64(uint64(passed/time.Microsecond), uint64(n))
	lo, carry := bits.Add64(lo, uint64(f.Num), 0)
	if hi += carry; hi >= uint64(p) {
		return math.MaxInt32
	}
	q, _ := bits.Div64(hi, lo, uint64(p))
	return int64(min(q, math.MaxInt32))
}
