package redisscript

import (
	"fmt"
	"hash/maphash"
	"math"

	"github.com/headgate-go/headgate/core/driver"
)

// packClaims is the most claims that one call decides. A call of 64 holds the server for about 0.15 ms.
const packClaims = 64

// The ops of the script, and the flags that stand above them.
const (
	opEach     = 0 // one-claim requests on consecutive keys, one rule and cost
	opRepeat   = 1 // equal one-claim requests on one key
	opBucket   = 2
	opSlots    = 3
	opFixed    = 4
	opSliding  = 5
	opCalendar = 6
	opRenew    = 8

	flagLast    = 1 // last claim of its request
	flagShadow  = 2
	flagSettle  = 4 // always fits; the amount is signed
	flagReceipt = 8 // of a window: the time follows at which the window to be settled began; another is left alone
	flagShift   = 4
)

// claim is a driver.Claim as the script sees it, and what the script answered. A further kind of limit is another op
// here, a case in claimOf and one in answer.
type claim struct {
	key   string
	hash  uint64 // of key
	place uint16 // of the key in KEYS, while a pack is made
	op    uint8
	flags uint8
	part  int16     // of the request, where it is decided in several
	v     [4]uint64 // the record's numbers, as bits of doubles (of a lease's id as they are)
	outer [2]uint64 // what follows the record of a calendar: its outer edges
	start uint64    // and with flagReceipt
	saw   [3]int64  // of the reply, in its order
}

// width returns how many doubles the script answers to an op.
func width(op uint8) int {
	switch op {
	case opSlots, opRenew:
		return 1
	case opSliding, opCalendar:
		return 3
	}
	return 2
}

// request is what one caller asks: the claims of its entries, or its changes, one after another. It lives in memory of
// its own, so that a caller that leaves is not written to.
type request struct {
	at      int64 // microseconds of our own clock, for calendars; with a given time, that
	claims  []claim
	scratch []byte
}

func (r *request) reset() {
	clear(r.claims) // let go of the keys
	r.claims = r.claims[:0]
}

// errManyClaims is the answer to an entry that no call could hold.
var errManyClaims = fmt.Errorf("redisscript: more than %d claims in one entry", packClaims)

// add appends the claims of an entry. What is wrong with the entry is returned, and then nothing of it is sent.
func (r *request) add(prefix string, e *driver.Entry) error {
	start := len(r.claims)
	for i := range e.Claims {
		c := &e.Claims[i]
		next, err := r.claimOf(prefix, c.Policy, c.Subject, c.Rule, c.Cost)
		switch {
		case err != nil:
		case next.op == opSlots:
			err = next.setSlots(c)
		case c.Cost < 0:
			err = fmt.Errorf("redisscript: policy %q: cost %d is negative", c.Policy, c.Cost)
		}
		if err != nil {
			r.claims = r.claims[:start]
			return err
		}
		if c.Shadow {
			next.flags = flagShadow
		}
		r.claims = append(r.claims, next)
	}
	mine := r.claims[start:]
	if len(mine) == 0 {
		return nil
	}
	mine[len(mine)-1].flags |= flagLast
	err := errManyClaims
	if len(mine) <= packClaims {
		err = checkShadow(mine, e.Claims)
	}
	if err != nil {
		r.claims = r.claims[:start]
	}
	return err
}

// checkShadow refuses a request that claims one key both ways: its shadow claim would take what the other one needs.
// Different requests of one call may, as they do while a limiter's mode changes: they are decided one after another.
func checkShadow(claims []claim, asked []driver.Claim) error {
	for i := range claims {
		for j := range i {
			a, b := &claims[i], &claims[j]
			if asked[i].Shadow != asked[j].Shadow && a.hash == b.hash && a.key == b.key {
				return fmt.Errorf("redisscript: key %s is both shadow and enforcing in one entry", a.key)
			}
		}
	}
	return nil
}

// claimOf makes the record of one claim.
func (r *request) claimOf(prefix, policy, subject string, rule driver.Rule, cost int) (claim, error) {
	if err := rule.Validate(); err != nil {
		return claim{}, fmt.Errorf("redisscript: policy %q: %w", policy, err)
	}
	kind := kindOf(rule)
	if kind == "" { // the gate does not ask a store about unlimited rules
		return claim{}, fmt.Errorf("redisscript: policy %q: rule %v has no state", policy, rule)
	}
	next := r.claimOn(r.keyOf(prefix, policy, subject, kind))
	// One above the capacity fits as little as any larger cost.
	cost = min(cost, rule.Capacity()+1)
	if kind == kindSlots {
		next.op = opSlots // the rest is the lease's, which the caller knows
		return next, nil
	}
	if rule.IsWindow() {
		next.setWindow(rule, cost, r.at)
		return next, nil
	}
	next.op = opBucket
	n, p := rule.Reduced()
	next.v = numbers(int64(rule.Capacity()), n, p, int64(cost))
	return next, nil
}

// keyOf returns a key. It is never reused memory: a client may hold it longer than its call lasts.
func (r *request) keyOf(prefix, policy, subject, kind string) string {
	r.scratch = appendKey(r.scratch[:0], prefix, policy, subject, kind)
	return string(r.scratch)
}

func (r *request) claimOn(key string) claim {
	return claim{key: key, hash: maphash.String(hashSeed, key)}
}

func numbers(a, b, c, d int64) [4]uint64 {
	return [4]uint64{math.Float64bits(float64(a)), math.Float64bits(float64(b)), math.Float64bits(float64(c)), math.Float64bits(float64(d))}
}

// answer writes the results of an entry from what the script saw of its claims, by the script's own comparisons, and says
// whether it is admitted. A calendar that does not reach to the server's time is the entry's error.
func answer(claims []claim, e *driver.Entry) (admitted bool) {
	admitted = true
	for i := range e.Claims {
		c := &e.Claims[i]
		if claims[i].op == opCalendar && claims[i].saw[2] == 0 {
			e.Err = &driver.Error{Class: driver.ClassClock, Err: fmt.Errorf("redisscript: policy %q: the server's clock differs "+
				"from ours by more than a calendar window", c.Policy)}
			return false
		}
		admitted = admitted && (c.Shadow || claims[i].fits(c.Rule, c.Cost))
	}
	for i := range e.Claims {
		c := &e.Claims[i]
		taken := admitted && c.Cost > 0 && claims[i].fits(c.Rule, c.Cost)
		switch {
		case claims[i].op == opSlots:
			c.Result = driver.SlotResult(c.Rule, c.Cost, claims[i].held(), taken)
		case c.Rule.IsWindow():
			c.Result = claims[i].window(c.Rule).Result(c.Rule, c.Cost, taken)
		default:
			c.Result = claims[i].level().Result(c.Rule, c.Cost, taken)
		}
	}
	return admitted
}

func (c *claim) fits(rule driver.Rule, cost int) bool {
	switch {
	case cost == 0:
		return true
	case c.op == opSlots:
		return c.held() < rule.Capacity()
	case rule.IsWindow():
		return c.window(rule).Fits(rule, cost)
	}
	return c.level().Fits(cost)
}

// level is a bucket as the script saw it. When that was it did not say, and no answer needs it.
func (c *claim) level() driver.Level { return driver.Level{Whole: c.saw[0], Num: c.saw[1]} }
