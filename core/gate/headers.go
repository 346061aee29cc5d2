package gate

import (
	"strconv"

	"github.com/headgate-go/headgate/core/internal/wire"
)

// standardFields are the names of the standard dialect, in canonical form.
var standardFields = [...]string{"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset"}

// setHeaders announces what is left, of the limiter that is nearest to its limit, before the handler runs. An inner gate
// speaks for the outer ones too.
func (a *Admission) setHeaders(x Exchange) {
	if a.gate.headers&HeadersStandard == 0 {
		return
	}
	if owner, claim := a.tightest(); owner == a { // an outer one's fields are set already
		res := &a.claims[claim].Result
		a.setStandard(x, a.claims[claim].Rule.Capacity(), res.Remaining, wire.Ceil(res.ResetAfter))
	}
}

// tightest finds the enforced claim with the smallest remaining/limit, over all gates of the request; the first of equals.
func (a *Admission) tightest() (owner *Admission, claim int) {
	var remaining, limit int
	if a.outer != nil && a.outer.gate.headers&HeadersStandard != 0 {
		if owner, claim = a.outer.tightest(); owner != nil {
			remaining, limit = owner.claims[claim].Result.Remaining, owner.claims[claim].Rule.Capacity()
		}
	}
	for i := range a.verdicts {
		v := &a.verdicts[i]
		if v.claim < 0 || v.mode != Enforce || v.err != nil {
			continue
		}
		c := &a.claims[v.claim]
		if owner == nil || c.Result.Remaining*limit < remaining*c.Rule.Capacity() {
			owner, claim, remaining, limit = a, v.claim, c.Result.Remaining, c.Rule.Capacity()
		}
	}
	return owner, claim
}

// setRefusal sets the fields of a refusal. What a custom body wants comes first: ours cannot be changed.
func (a *Admission) setRefusal(x Exchange) {
	ref := a.refusal
	for _, h := range ref.headers {
		x.SetHeader(h.name, h.value)
	}
	if ref.Status == statusTooMany && a.gate.headers&HeadersStandard != 0 {
		reset := wire.RetryAfter(ref.RetryAfter)
		if ref.unsatisfiable() {
			reset = wire.Ceil(ref.ResetAfter)
		}
		a.setStandard(x, ref.Limit, ref.Remaining, reset)
	} else {
		a.removeOuter(x)
	}
	if ref.wait > 0 {
		x.SetHeader("Retry-After", a.number(ref.wait))
	}
	x.SetHeader("Cache-Control", "no-store")
}

// removeOuter takes back the fields of an outer gate, where they would say that there is room.
func (a *Admission) removeOuter(x Exchange) {
	for o := a.outer; o != nil; o = o.outer {
		if o.gate.headers&HeadersStandard != 0 {
			for _, name := range standardFields {
				x.SetHeader(name, "")
			}
			return
		}
	}
}

func (a *Admission) setStandard(x Exchange, limit, remaining int, reset int64) {
	x.SetHeader(standardFields[0], a.number(int64(limit)))
	x.SetHeader(standardFields[1], a.number(int64(remaining)))
	x.SetHeader(standardFields[2], a.number(reset))
}

// number writes n into the admission's own memory.
func (a *Admission) number(n int64) string {
	start := len(a.text)
	a.text = strconv.AppendInt(a.text, n, 10)
	return a.kept(start)
}
