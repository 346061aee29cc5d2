package gate

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/limit"
)

// policy is a compiled limiter: what all of them have in common is read from here, whatever their type.
type policy struct {
	index     int
	name      string
	limitType string
	mode      Mode // as configured
	match     Match
	key       Key
	// rule is what a key may use; anonymous what a request without a key may, under its address.
	rule, anonymous limit.Rule
	ruleFor         func(Request, string) (limit.Rule, bool) // nil: rule
	cost            func(Request) int                        // nil: 1

	onMissingKey               OnMissingKey
	onStoreError               OnStoreError
	jitter                     bool
	skipFailed, skipSuccessful bool
	lease                      time.Duration // how long a slot lives; 0: the limiter has none
	retryAfter                 time.Duration // what a client without a slot is told

	gives atomic.Bool // tokens may be given back to its keys, so a refusal says nothing about the next moment
}

// holds says whether the policy hands out slots.
func (p *policy) holds() bool { return p.lease > 0 }

// compile checks every limiter and makes a policy of it.
func compile(p *problems, c Config) []*policy {
	var list []*policy
	taken := map[string]int{}
	for i, l := range c.Limiters {
		where := fmt.Sprintf("limiter %d (%s): ", i+1, strings.TrimPrefix(fmt.Sprintf("%T", l), "gate."))
		compiled, check := compileOne(l)
		if compiled == nil {
			p.add(where, wrongLimiter(l))
			continue
		}
		compiled.index = len(list)
		if compiled.name == "" {
			compiled.name = compiled.limitType
		}
		if err := checkName(compiled.name); err != nil {
			p.add(where, err)
		} else if first := taken[compiled.name]; first > 0 {
			p.addf(where, "Name: %q is taken by limiter %d", compiled.name, first)
		} else {
			taken[compiled.name] = i + 1
			where = fmt.Sprintf("limiter %q: ", compiled.name)
		}
		check(p, where)
		checkCommon(p, where, compiled, c.Instances)
		if compiled.key == nil {
			compiled.key = ClientIP()
		}
		list = append(list, compiled)
	}
	return list
}

// compileOne returns the policy of a limiter and a function that says what is wrong with the fields of its own.
func compileOne(l Limiter) (*policy, func(*problems, string)) {
	switch l := l.(type) {
	case RequestRate:
		return l.compile(), l.check
	case ConcurrentRequests:
		return l.compile(), l.check
	}
	return nil, nil
}

func wrongLimiter(l Limiter) error {
	switch l.(type) {
	case nil:
		return errors.New("nil; pass a limiter such as gate.RequestRate{...}")
	case FleetUsage, WorkerUtilization, AdmissionQueue:
		return errNotBuilt
	}
	return errors.New("pass the value, not a pointer: a gate keeps its own copy")
}

func (r RequestRate) compile() *policy {
	p := &policy{name: r.Name, limitType: r.limitType(), mode: r.Mode, match: r.Match, key: r.Key,
		rule: r.Limit, anonymous: r.Anonymous, ruleFor: r.LimitFor, cost: r.Cost,
		onMissingKey: r.OnMissingKey, onStoreError: r.OnStoreError, jitter: r.Jitter == JitterOn,
		skipFailed: r.SkipFailed, skipSuccessful: r.SkipSuccessful}
	if r.Anonymous == (limit.Rule{}) {
		p.anonymous = r.Limit
	}
	p.gives.Store(r.SkipFailed || r.SkipSuccessful)
	return p
}

func (r RequestRate) check(p *problems, where string) {
	p.add(where+"Limit: ", checkRule(r.Limit))
	if r.Anonymous != (limit.Rule{}) {
		p.add(where+"Anonymous: ", checkRule(r.Anonymous))
		if r.OnMissingKey != MissingKeyUseClientIP {
			p.addf(where, "Anonymous: it is the limit of MissingKeyUseClientIP, and OnMissingKey is another")
		}
	}
	checkJitter(p, where, r.Jitter)
	if r.SkipFailed && r.SkipSuccessful {
		p.addf(where, "SkipFailed and SkipSuccessful: together they charge nobody")
	}
	later(p, where, "Approximate", r.Approximate)
}

// checkRule says what is wrong with the rule of a request rate.
func checkRule(r limit.Rule) error {
	if r.Kind() == driver.KindSlots {
		return errors.New("slots are no rate; the limiter for them is ConcurrentRequests")
	}
	return r.Validate()
}

// Defaults of ConcurrentRequests.
const (
	defaultLeaseTime  = time.Minute
	defaultRetryAfter = time.Second
)

func (r ConcurrentRequests) compile() *policy {
	p := &policy{name: r.Name, limitType: r.limitType(), mode: r.Mode, match: r.Match, key: r.Key,
		rule: driver.NewSlots(r.Max), anonymous: driver.NewSlots(r.Max),
		onMissingKey: r.OnMissingKey, onStoreError: r.OnStoreError, jitter: r.Jitter == JitterOn,
		lease: r.LeaseTime, retryAfter: r.RetryAfter}
	if r.LeaseTime == 0 {
		p.lease = defaultLeaseTime
	}
	if r.RetryAfter == 0 {
		p.retryAfter = defaultRetryAfter
	}
	if r.MaxFor != nil {
		p.ruleFor = func(req Request, key string) (limit.Rule, bool) {
			n, ok := r.MaxFor(req, key)
			if !ok || n == 0 {
				return limit.Rule{}, false
			}
			return driver.NewSlots(n), true
		}
	}
	return p
}

func (r ConcurrentRequests) check(p *problems, where string) {
	p.add(where+"Max: ", driver.NewSlots(r.Max).Validate())
	if r.LeaseTime != 0 {
		p.add(where+"LeaseTime: ", driver.CheckLeaseTime(r.LeaseTime))
	}
	if r.RetryAfter < 0 {
		p.addf(where, "RetryAfter: %v; 0 is the default, %v", r.RetryAfter, defaultRetryAfter)
	}
	checkJitter(p, where, r.Jitter)
}

func checkJitter(p *problems, where string, j Jitter) {
	if j > JitterOff {
		p.addf(where, "Jitter: %d is none of the constants", j)
	}
}

// checkCommon is about the fields that limiters share.
func checkCommon(p *problems, where string, c *policy, instances int) {
	if c.key != nil {
		p.add(where+"Key: ", c.key.check())
	}
	if c.match != nil {
		p.add(where+"Match: ", c.match.check())
	}
	if c.onMissingKey > MissingKeyReject {
		p.addf(where, "OnMissingKey: %d is none of the constants", c.onMissingKey)
	}
	if c.mode > Off {
		p.addf(where, "Mode: %d is none of Enforce, Shadow and Off", c.mode)
	}
	switch {
	case c.onStoreError > FailLocal:
		p.addf(where, "OnStoreError: %d is none of the constants", c.onStoreError)
	case c.onStoreError == FailLocal && instances == 0:
		p.addf(where, "OnStoreError: FailLocal divides the limit by Config.Instances, which is not set")
	}
}
