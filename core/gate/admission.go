package gate

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"
	"unsafe"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/internal/clientaddr"
	"github.com/headgate-go/headgate/core/internal/lease"
)

// Admission is what a gate decided about one request, and the way back to it from a handler: gingate.Admission(c), the
// same in every adapter, and [FromContext]. Every method works on nil, which is what a handler finds where no limiter was
// asked, and answers as for a request that may pass. It belongs to one request, is never reused, and may be read from any
// goroutine.
type Admission struct {
	gate     *Gate
	outer    *Admission
	ctx      admissionContext
	question question

	verdicts  []verdict
	claims    []driver.Claim
	entry     [1]driver.Entry
	text      []byte // subjects and header values; only ever appended to
	refusal   *Refusal
	took      bool      // the claims that fit were taken
	local     bool      // limiters with FailLocal were decided in this process
	localTook bool      // and what they asked for was taken here
	holding   bool      // a slot was taken
	heldSince time.Time // for observers
	canceled  bool      // the client left before the answer
	mu        sync.Mutex
	// innerRefused is set by an inner gate that refused the request: what was taken here goes back.
	innerRefused bool

	// Room for the usual request, so that it costs one allocation.
	room struct {
		verdicts [2]verdict
		claims   [2]driver.Claim
		text     [160]byte
	}
}

// verdict is one limiter's part of an admission.
type verdict struct {
	policy  *policy
	subject string
	err     error
	claim   int // index of its claim; -1 where the store is not asked
	cost    int
	charge  int         // what is charged now; guarded by mu, as settled and the slot are
	settled bool        // Settle was called
	slot    slot        // where a slot is held
	held    *lease.Held // in a shared store
	mode    Mode
	outcome Outcome
	reason  Reason
}

// question is what keys ask about: the request, and the client's address once it was looked for.
type question struct {
	gate *Gate
	req  Request
	// base is the request's context as it came. Corrections use it, which may be made after the request is over, when a
	// framework has given req's memory to another one.
	base     context.Context
	addr     netip.Addr
	resolved bool
}

func (q *question) clientAddr() netip.Addr {
	if q.resolved {
		return q.addr
	}
	var peer netip.Addr
	if x, ok := q.req.(Addressed); ok {
		peer = x.RemoteAddrPort().Addr()
	} else {
		peer = clientaddr.ParsePeer(q.req.RemoteAddr())
	}
	if q.gate.warnForwarded.Load() {
		q.warnForwarded()
	}
	q.addr, q.resolved = q.gate.client.Resolve(peer, q.req), true
	return q.addr
}

// warnForwarded tells once that there is a proxy and nobody trusts it: everybody behind it would share one budget.
func (q *question) warnForwarded() {
	for _, name := range []string{clientaddr.DefaultHeader, "Forwarded"} {
		if q.req.Header(name) != "" && q.gate.warnForwarded.CompareAndSwap(true, false) {
			q.gate.log.warn(warnForwarded, "a request carries a forwarding header and no proxy is trusted: all clients "+
				"behind a load balancer share one limit; name your proxies in Client.Trusted (PerClient: further arguments)",
				"code", "untrusted-proxy", "header", name)
		}
	}
}

func newAdmission(g *Gate, r Request) *Admission {
	var a *Admission
	if x, ok := r.(Roomy); ok {
		a = x.Room()
	} else {
		a = new(Admission)
	}
	a.gate, a.question = g, question{gate: g, req: r, base: r.Context()}
	a.verdicts = a.room.verdicts[:0]
	a.claims = a.room.claims[:0]
	a.text = a.room.text[:0]
	return a
}

// kept returns what was appended to a.text since start as a string that shares the memory: it is never written again, and
// lives as long as anything that points into it.
func (a *Admission) kept(start int) string {
	if start == len(a.text) {
		return ""
	}
	return unsafe.String(&a.text[start], len(a.text)-start)
}

// Format writes the outcomes, whatever the verb: a key is never printed by accident.
func (a *Admission) Format(s fmt.State, _ rune) {
	text := "allowed"
	if a.Refusal() != nil {
		text = "refused"
	}
	for _, d := range a.Decisions() {
		text += " " + d.Policy + "=" + d.Outcome.String()
	}
	_, _ = io.WriteString(s, "gate.Admission("+text+")") // fmt's own buffer
}

// Allowed says that the request may pass.
func (a *Admission) Allowed() bool { return a.Refusal() == nil }

// Refusal returns the answer to a request that may not pass; nil if it may.
func (a *Admission) Refusal() *Refusal {
	if a == nil {
		return nil
	}
	return a.refusal
}

// Decision returns what the named policy decided, of the innermost gate that has it.
func (a *Admission) Decision(policy string) (Decision, bool) {
	for ; a != nil; a = a.outer {
		for i := range a.verdicts {
			if a.verdicts[i].policy.name == policy {
				return a.decision(i), true
			}
		}
	}
	return Decision{}, false
}

// Decisions returns what every limiter that was asked decided: the outer gate's first, each in configuration order.
func (a *Admission) Decisions() []Decision {
	if a == nil {
		return nil
	}
	return append(a.outer.Decisions(), a.ownDecisions()...)
}

// Done ends what Admit or Take admitted, with the error of the work if it failed: its slots are given back, and policies
// with SkipFailed or SkipSuccessful give their cost back by that. Without it a slot stays taken for as long as the process
// lives. A second Done is a no-op; requests that came through an adapter need none.
func (a *Admission) Done(err error) {
	if a == nil {
		return
	}
	a.giveBack(skips(err != nil))
	end := EndReturned
	if err != nil {
		end = EndError
	}
	a.release(end)
}

func (a *Admission) ownDecisions() []Decision {
	list := make([]Decision, len(a.verdicts))
	for i := range a.verdicts {
		list[i] = a.decision(i)
	}
	return list
}

func (a *Admission) decision(i int) Decision {
	v := &a.verdicts[i]
	d := Decision{
		Gate: a.gate.name, Policy: v.policy.name, LimitType: v.policy.limitType, Outcome: v.outcome, Mode: v.mode,
		Reason: v.reason, Cost: v.cost, Err: v.err, subject: &v.subject, Rule: v.policy.rule,
	}
	if v.claim >= 0 {
		claim := &a.claims[v.claim]
		d.Rule = claim.Rule
		if v.err == nil || v.outcome == OutcomeDenied || v.outcome == OutcomeWouldDeny {
			d.Limit = claim.Rule.Capacity()
			d.Remaining = claim.Result.Remaining
			d.RetryAfter, d.ResetAfter = claim.Result.RetryAfter, claim.Result.ResetAfter
		}
	}
	return d
}

// Met says whether g already decided about this request: mounted again, it has nothing to do. Serve knows; adapters that
// ask first spare what they would allocate for a second exchange.
func (a *Admission) Met(g *Gate) bool {
	for ; a != nil; a = a.outer {
		if a.gate == g {
			return true
		}
	}
	return false
}

// markRefused tells every outer gate that the request ends here.
func (a *Admission) markRefused() {
	for o := a.outer; o != nil; o = o.outer {
		o.innerRefused = true
	}
}

// admissionContext is the request's context with the admission in it. It is part of the admission, so making one costs
// nothing.
type admissionContext struct {
	context.Context
	admission *Admission
}

type admissionKey struct{}

func (c *admissionContext) Value(key any) any {
	if key == (admissionKey{}) {
		return c.admission
	}
	return c.Context.Value(key)
}

// NewContext returns parent with a in it, for adapters: what FromContext finds. It may be called once for an admission.
func NewContext(parent context.Context, a *Admission) context.Context {
	a.ctx = admissionContext{Context: parent, admission: a}
	return &a.ctx
}

// FromContext returns the admission of the innermost gate that the request of ctx passed; nil where there is none.
func FromContext(ctx context.Context) *Admission {
	a, _ := ctx.Value(admissionKey{}).(*Admission)
	return a
}

type valueKey string

// WithValue returns ctx with a value that the key [Value](name) finds, in net/http.
func WithValue(ctx context.Context, name string, value any) context.Context {
	return context.WithValue(ctx, valueKey(name), value)
}

// ContextValue returns what WithValue stored under name; nil where there is nothing.
func ContextValue(ctx context.Context, name string) any { return ctx.Value(valueKey(name)) }
