package gate

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/internal/wire"
	"github.com/headgate-go/headgate/core/limit"
)

// The stages of a decision, in order. Shedders will stand before ask, so that what they refuse never reaches the store.
//
//	passes (exempt, preflight) -> ask: which limiters, whose keys, what cost -> the store, once -> conclude -> handler

// decide asks every limiter that the request is about. Nil: there is none.
func (g *Gate) decide(ctx context.Context, r Request) (a *Admission, spent time.Duration) {
	state := g.state.Load()
	for i, p := range g.policies {
		if state.modes[i] == Off || p.match != nil && !p.match.Matches(r) {
			continue
		}
		if a == nil {
			a = newAdmission(g, r)
		}
		a.ask(p, state.modes[i], r)
	}
	if a == nil {
		return nil, 0
	}
	if a.rejected() {
		return a, 0
	}
	return a, a.askStore(ctx)
}

// ask reads one limiter's key, rule and cost, and adds its claim.
func (a *Admission) ask(p *policy, m Mode, r Request) {
	a.verdicts = append(a.verdicts, verdict{policy: p, mode: m, claim: -1})
	v := &a.verdicts[len(a.verdicts)-1]
	rule, ok := a.identify(v, r)
	if !ok {
		return
	}
	cost := 1
	if p.cost != nil {
		cost = p.cost(r)
	}
	a.claim(v, rule, cost)
}

// claim adds what the limiter asks of the store.
func (a *Admission) claim(v *verdict, rule limit.Rule, cost int) {
	if cost < 0 {
		a.gate.log.warn(warnCost, "a negative cost; 1 is charged", "policy", v.policy.name, "cost", cost)
		cost, v.reason = 1, ReasonInvalidCost
	}
	v.cost, v.charge = cost, cost
	if rule.Kind() == driver.KindUnlimited {
		return
	}
	v.claim = len(a.claims)
	a.claims = append(a.claims, driver.Claim{Policy: v.policy.name, Subject: v.subject, Rule: rule, Cost: cost, Shadow: v.mode == Shadow})
	if v.policy.holds() && cost > 0 {
		c := &a.claims[v.claim]
		c.Lease, c.LeaseFor = a.gate.leases.NewID(), v.policy.lease
	}
}

// identify reads the key and the rule that goes with it. False: the limiter is not asked, and the outcome says why.
func (a *Admission) identify(v *verdict, r Request) (limit.Rule, bool) {
	p := v.policy
	start := len(a.text)
	a.text = append(a.text, a.gate.prefix...)
	var ok bool
	if a.text, ok = p.key.appendTo(&a.question, a.text); ok {
		v.subject = a.kept(start)
		return a.ruleFor(p, v.subject, r), true
	}
	v.reason = ReasonMissingKey
	if p.onMissingKey == MissingKeyUseClientIP {
		if a.text, ok = (clientIP{}).appendTo(&a.question, a.text); ok {
			v.subject = a.kept(start)
			return p.anonymous, true
		}
	}
	a.text = a.text[:start]
	v.outcome = OutcomeSkipped
	if p.onMissingKey == MissingKeyReject {
		v.outcome = OutcomeRejected
		if v.mode == Shadow {
			v.outcome = OutcomeWouldDeny
		}
	}
	return limit.Rule{}, false
}

func (a *Admission) ruleFor(p *policy, subject string, r Request) limit.Rule {
	if p.ruleFor == nil {
		return p.rule
	}
	rule, ok := p.ruleFor(r, keyText(subject))
	if !ok || rule == (limit.Rule{}) {
		return p.rule
	}
	err := rule.Validate()
	if err == nil && !p.holds() {
		err = checkRule(rule)
	}
	if err != nil {
		a.gate.log.warn(warnLimitFor, "LimitFor or MaxFor answered what cannot be a limit; the configured one is used",
			"policy", p.name, "error", err)
		return p.rule
	}
	return rule
}

// keyText returns the values of a subject's parts, joined by "+": the subject is the gate's name, then source and value
// of each part, all with their lengths.
func keyText(subject string) string {
	_, rest := cutPart(subject)
	var text string
	for i := 0; rest != ""; i++ {
		var value string
		_, rest = cutPart(rest)
		value, rest = cutPart(rest)
		if i > 0 {
			value = text + "+" + value
		}
		text = value
	}
	return text
}

func cutPart(s string) (part, rest string) {
	var head [binary.MaxVarintLen64]byte
	n, size := binary.Uvarint(head[:copy(head[:], s)])
	s = s[size:]
	return s[:n], s[n:]
}

// rejected says whether a limiter demands a key that is not there: the request ends, and nothing else is asked.
func (a *Admission) rejected() bool {
	found := false
	for i := range a.verdicts {
		found = found || a.verdicts[i].outcome == OutcomeRejected
	}
	if !found {
		return false
	}
	a.claims = a.claims[:0]
	for i := range a.verdicts {
		if v := &a.verdicts[i]; v.outcome != OutcomeRejected {
			v.claim, v.outcome = -1, OutcomeSkipped
		}
	}
	a.refuse()
	return true
}

// askStore makes the one call, and concludes from its answers. It returns the time that the call took where somebody
// observes it.
func (a *Admission) askStore(ctx context.Context) (spent time.Duration) {
	if len(a.claims) == 0 {
		return 0
	}
	g := a.gate
	var from time.Duration
	if g.refusals != nil {
		from = g.clockReading()
		if a.remembered(from) {
			return 0
		}
	}
	start := g.observed()
	a.entry[0].Claims = a.claims
	err := g.storeDecide(ctx, a.entry[:])
	if g.observer != nil {
		spent = time.Since(start)
	}
	if err != nil {
		g.logFailure("the store failed", err)
		a.decideLocally(ctx)
	}
	refused := a.conclude(err)
	a.hold(err)
	switch {
	case refused:
		a.refuse()
		a.release(EndCanceled) // what FailLocal took
	case ctx.Err() != nil:
		a.cancel()
	}
	if g.refusals != nil && err == nil {
		a.remember(from)
	}
	return spent
}

// remembered answers from the memory of refusals: if one limiter certainly refuses, the store need not be asked, and the
// other limiters are not.
func (a *Admission) remembered(now time.Duration) bool {
	found := false
	for i := range a.verdicts {
		v := &a.verdicts[i]
		found = found || v.claim >= 0 && v.memorable() && a.gate.refusals.Lookup(&a.claims[v.claim], now)
	}
	if !found {
		return false
	}
	for i := range a.verdicts {
		v := &a.verdicts[i]
		if v.claim >= 0 && a.claims[v.claim].Result.Reason != ReasonMemory {
			v.claim, v.outcome = -1, OutcomeSkipped
		}
	}
	a.conclude(nil)
	a.refuse()
	return true
}

func (a *Admission) remember(from time.Duration) {
	for i := range a.verdicts {
		if v := &a.verdicts[i]; v.claim >= 0 && v.memorable() {
			a.gate.refusals.Remember(&a.claims[v.claim], from)
		}
	}
}

// memorable says whether a refusal by this limiter may be remembered: not in shadow, whose state is to be watched, not where
// handlers give tokens back, and never of slots, which become free at any moment.
func (v *verdict) memorable() bool {
	return v.mode == Enforce && !v.policy.holds() && !v.policy.gives.Load()
}

// cancel ends a request whose client left before the answer: it is charged, its handler is not run, and its slots go back.
func (a *Admission) cancel() {
	for i := range a.verdicts {
		if v := &a.verdicts[i]; v.outcome == OutcomeAllowed {
			v.outcome = OutcomeCanceled
		}
	}
	a.canceled = true
	a.release(EndCanceled)
}

// conclude turns the store's answers into outcomes, and says whether one of them refuses.
func (a *Admission) conclude(err error) (refused bool) {
	for i := range a.verdicts {
		v := &a.verdicts[i]
		if v.claim < 0 {
			continue
		}
		res := &a.claims[v.claim].Result
		if v.policy.holds() { // nobody knows when a slot becomes free
			res.ResetAfter = v.policy.retryAfter
			if !res.Allowed {
				res.RetryAfter = v.policy.retryAfter
			}
		}
		switch {
		case err != nil && !(a.local && v.policy.onStoreError == FailLocal && !res.Allowed):
			v.err = err
			v.outcome = a.failed(v)
		case !res.Allowed:
			v.err = err // of FailLocal: refused here, since the store is not there
			v.outcome = OutcomeDenied
			if v.mode == Shadow {
				v.outcome = OutcomeWouldDeny
			}
			if v.reason == ReasonNone {
				v.reason = res.Reason
			}
		}
		refused = refused || v.outcome.refuses()
	}
	a.took = err == nil && !refused
	return refused
}

// failed is what a limiter makes of a request when the store failed.
func (a *Admission) failed(v *verdict) Outcome {
	switch {
	case v.policy.onStoreError == FailLocal && a.local:
		return OutcomeFailLocal
	case v.policy.onStoreError == FailClosed && v.mode == Shadow:
		return OutcomeWouldShed
	case v.policy.onStoreError == FailClosed:
		return OutcomeFailClosed
	}
	return OutcomeFailOpen
}

// refuse builds the refusal: of those that refuse, 429 before 503, then the longest wait, then configuration order.
func (a *Admission) refuse() {
	ref := &Refusal{DocsURL: a.gate.docsURL}
	best := -1
	for i := range a.verdicts {
		if !a.verdicts[i].outcome.refuses() {
			continue
		}
		d := a.decision(i)
		ref.Violated = append(ref.Violated, d)
		if best < 0 || worse(d, ref.Violated[best]) {
			best = len(ref.Violated) - 1
		}
	}
	ref.Decision = ref.Violated[best]
	ref.Status = ref.Outcome.status()
	switch {
	case ref.Status == statusBadRequest, ref.unsatisfiable():
	case ref.Outcome == OutcomeFailClosed:
		ref.wait = 1
	default:
		ref.wait = wire.RetryAfter(ref.RetryAfter)
		if a.gate.policy(ref.Policy).jitter {
			ref.wait = wire.Jitter(ref.wait, a.gate.rand())
		}
	}
	ref.Message = ref.message()
	a.refusal = ref
}

func (o Outcome) status() int {
	switch o {
	case OutcomeDenied:
		return statusTooMany
	case OutcomeRejected:
		return statusBadRequest
	}
	return statusUnavailable
}

// worse says whether d is to be reported rather than e, which comes before it.
func worse(d, e Decision) bool {
	if s, t := d.Outcome.status(), e.Outcome.status(); s != t {
		return s == statusTooMany
	}
	if d.unsatisfiable() != e.unsatisfiable() {
		return d.unsatisfiable()
	}
	return d.RetryAfter > e.RetryAfter
}
