package gate

import (
	"context"
	"fmt"
	"strings"
)

// Call is a [Request] for code that is not HTTP: jobs, queues, replays, tests. The zero value has no method, no address and
// no values.
type Call struct {
	// Operation is "POST /v1/routes", or one word for work that is not HTTP: then the method is empty.
	Operation string
	// Values are what Value and Header find; Header ignores case, and wants strings.
	Values map[string]any
	// Addr is the client's address, with or without a port.
	Addr string
	// Ctx is what Context returns; nil: context.Background(). Admit uses the context it is given.
	Ctx context.Context
}

// Context returns Ctx.
func (c Call) Context() context.Context {
	if c.Ctx == nil {
		return context.Background()
	}
	return c.Ctx
}

// Method returns the first word of an Operation of two.
func (c Call) Method() string {
	method, _, ok := strings.Cut(c.Operation, " ")
	if !ok {
		return ""
	}
	return method
}

// Path returns the second word of Operation, or its only one.
func (c Call) Path() string {
	if _, path, ok := strings.Cut(c.Operation, " "); ok {
		return path
	}
	return c.Operation
}

// Header returns the string among Values under name.
func (c Call) Header(name string) string {
	if s, ok := c.Values[name].(string); ok {
		return s
	}
	for key, v := range c.Values {
		if s, ok := v.(string); ok && strings.EqualFold(key, name) {
			return s
		}
	}
	return ""
}

// HeaderValues returns Header's value, if any.
func (c Call) HeaderValues(name string) []string {
	if s := c.Header(name); s != "" {
		return []string{s}
	}
	return nil
}

// RemoteAddr returns Addr.
func (c Call) RemoteAddr() string { return c.Addr }

// Value returns Values[name].
func (c Call) Value(name string) any { return c.Values[name] }

// requestIn is a request under another context.
type requestIn struct {
	Request
	ctx context.Context
}

func (r requestIn) Context() context.Context { return r.ctx }

// Admit decides about r without a response: for code that is not HTTP, and for asking in tests what a policy says. It
// never returns nil. Call Done when the work is over. Ctx wins over the request's own.
func (g *Gate) Admit(ctx context.Context, r Request) *Admission {
	r = requestIn{r, ctx}
	if g.passes(r) {
		return newAdmission(g, r)
	}
	start := g.observed()
	a, spent := g.decide(ctx, r)
	if a == nil {
		return newAdmission(g, r)
	}
	if g.observer != nil {
		e := a.event(r, start, spent)
		e.Route = g.routeLabel(r)
		g.observer.Observe(e)
	}
	return a
}

// Take charges cost to one key of one policy, whatever the policy's Match, Key and Cost say: for costs known only in code.
// Of a [ConcurrentRequests] it takes a slot, with cost 1, until Done.
// Key is what the limiter's Key yields, one string per part of a Join; "ip:ADDR" names a client that fell back to its
// address. A policy that does not exist, or a key that does not fit it, is refused with status 500 and logged. A policy
// that is Off admits. LimitFor and MaxFor are not asked: the configured limit holds.
func (g *Gate) Take(ctx context.Context, policy string, cost int, key ...string) *Admission {
	start := g.observed()
	r := requestIn{Call{Operation: "take"}, ctx}
	a := newAdmission(g, r)
	p, err := g.named(policy)
	if err != nil {
		return a.fail(err)
	}
	if p.holds() && cost > 1 {
		return a.fail(fmt.Errorf("policy %q: cost %d; a slot is taken with cost 1, and 0 looks whether there is one", policy, cost))
	}
	m := g.state.Load().modes[p.index]
	if m == Off {
		return a
	}
	subject, err := g.subject(a.text, p, key)
	if err != nil {
		return a.fail(err)
	}
	a.text = subject
	a.verdicts = append(a.verdicts, verdict{policy: p, mode: m, claim: -1, subject: a.kept(0)})
	a.claim(&a.verdicts[0], p.rule, cost)
	spent := a.askStore(ctx)
	if g.observer != nil {
		g.observer.Observe(a.event(r, start, spent))
	}
	return a
}

// fail refuses a call that makes no sense: the program is wrong, and says so.
func (a *Admission) fail(err error) *Admission {
	a.gate.log.warn(warnTake, "Take: refused", "error", err)
	a.refusal = &Refusal{Decision: Decision{Gate: a.gate.name, Outcome: OutcomeRejected, Err: err}, Status: statusInternal,
		Message: "Take: " + err.Error()}
	return a
}
