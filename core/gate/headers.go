package gate

import (
	"strconv"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/internal/wire"
)

// singleDialect is a dialect of three fields that describe one limiter.
type singleDialect struct {
	bit                     HeaderSet
	limit, remaining, reset string // in canonical form
}

var singleDialects = [...]singleDialect{
	{HeadersStandard, "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset"},
	{HeadersLegacy, "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
}

// The draft dialect, IETF draft-ietf-httpapi-ratelimit-headers 08 to 11. Draft 12 renames RateLimit's r to a and t to w.
const (
	draftPolicyField = "Ratelimit-Policy"
	draftField       = "Ratelimit"
	draftQuota       = ";q="
	draftWindow      = ";w="
	draftRemaining   = ";r="
	draftReset       = ";t="
	draftSlots       = `;qu="concurrent-requests"` // the quota's unit, where it is not requests
)

// setHeaders announces what is left, before the handler runs. An inner gate speaks for the outer ones too.
func (a *Admission) setHeaders(x Exchange) {
	for _, d := range singleDialects {
		if a.gate.headers&d.bit == 0 {
			continue
		}
		if owner, claim := a.tightest(d.bit); owner == a { // an outer one's fields are set already
			c := &a.claims[claim]
			a.setSingle(x, d, c.Rule.Capacity(), c.Result.Remaining, wire.Ceil(c.Result.ResetAfter))
		}
	}
	if a.gate.headers&HeadersDraft != 0 {
		a.setDraft(x)
	}
}

// tightest finds the enforced claim with the smallest remaining/limit, over the gates of the request that speak the
// dialect; the first of equals.
func (a *Admission) tightest(dialect HeaderSet) (owner *Admission, claim int) {
	var remaining, limit int
	if a.outer != nil && a.outer.gate.headers&dialect != 0 {
		if owner, claim = a.outer.tightest(dialect); owner != nil {
			remaining, limit = owner.claims[claim].Result.Remaining, owner.claims[claim].Rule.Capacity()
		}
	}
	for i := range a.verdicts {
		v := &a.verdicts[i]
		if !v.announced() {
			continue
		}
		c := &a.claims[v.claim]
		if owner == nil || c.Result.Remaining*limit < remaining*c.Rule.Capacity() {
			owner, claim, remaining, limit = a, v.claim, c.Result.Remaining, c.Rule.Capacity()
		}
	}
	return owner, claim
}

// announced says whether clients are told of a limiter: it is in force, and the store evaluated it.
func (v *verdict) announced() bool { return v.claim >= 0 && v.mode == Enforce && v.err == nil }

// setRefusal sets the fields of a refusal. What a custom body wants comes first: ours cannot be changed.
func (a *Admission) setRefusal(x Exchange) {
	ref := a.refusal
	for _, h := range ref.headers {
		x.SetHeader(h.name, h.value)
	}
	a.removeOuter(x) // its numbers would say that there is room
	if ref.Status == statusTooMany {
		reset := wire.RetryAfter(ref.RetryAfter)
		if ref.unsatisfiable() {
			reset = wire.Ceil(ref.ResetAfter)
		}
		for _, d := range singleDialects {
			if a.gate.headers&d.bit != 0 {
				a.setSingle(x, d, ref.Limit, ref.Remaining, reset)
			}
		}
		if a.gate.headers&HeadersDraft != 0 {
			a.setDraft(x)
		}
	}
	if ref.wait > 0 {
		x.SetHeader("Retry-After", a.number(ref.wait))
	}
	x.SetHeader("Cache-Control", "no-store")
}

// removeOuter takes back what outer gates announced.
func (a *Admission) removeOuter(x Exchange) {
	var set HeaderSet
	for o := a.outer; o != nil; o = o.outer {
		set |= o.gate.headers
	}
	for _, d := range singleDialects {
		if set&d.bit != 0 {
			x.SetHeader(d.limit, "")
			x.SetHeader(d.remaining, "")
			x.SetHeader(d.reset, "")
		}
	}
	if set&HeadersDraft != 0 {
		x.SetHeader(draftPolicyField, "")
		x.SetHeader(draftField, "")
	}
}

func (a *Admission) setSingle(x Exchange, d singleDialect, limit, remaining int, reset int64) {
	x.SetHeader(d.limit, a.number(int64(limit)))
	x.SetHeader(d.remaining, a.number(int64(remaining)))
	x.SetHeader(d.reset, a.number(reset))
}

// number writes n into the admission's own memory.
func (a *Admission) number(n int64) string {
	start := len(a.text)
	a.text = strconv.AppendInt(a.text, n, 10)
	return a.kept(start)
}

// setDraft lists every announced policy, of a refusal's state only those that refused. An empty list removes the field.
func (a *Admission) setDraft(x Exchange) {
	start := len(a.text)
	a.text = a.appendDraft(a.text, start, (*verdict).appendPolicy, false)
	x.SetHeader(draftPolicyField, a.kept(start))
	start = len(a.text)
	a.text = a.appendDraft(a.text, start, (*verdict).appendState, a.refusal != nil)
	x.SetHeader(draftField, a.kept(start))
}

func (a *Admission) appendDraft(b []byte, start int, item func(*verdict, *Admission, []byte) []byte, violated bool) []byte {
	if a.outer != nil && a.outer.gate.headers&HeadersDraft != 0 {
		b = a.outer.appendDraft(b, start, item, violated)
	}
	for i := range a.verdicts {
		v := &a.verdicts[i]
		if !v.announced() || violated && v.outcome != OutcomeDenied {
			continue
		}
		if len(b) > start {
			b = append(b, ", "...)
		}
		b = append(b, '"')
		b = append(b, v.policy.name...) // holds nothing that a structured field would have to escape
		b = append(b, '"')
		b = item(v, a, b)
	}
	return b
}

// appendPolicy writes the quota, and the time in which it is refilled; slots have none.
func (v *verdict) appendPolicy(a *Admission, b []byte) []byte {
	c := &a.claims[v.claim]
	b = append(b, draftQuota...)
	b = strconv.AppendInt(b, int64(c.Rule.Capacity()), 10)
	if v.policy.holds() {
		return append(b, draftSlots...)
	}
	b = append(b, draftWindow...)
	return strconv.AppendInt(b, windowOf(c), 10)
}

// windowOf returns the seconds in which the whole quota comes again: a window's length, as long as this month is.
func windowOf(c *driver.Claim) int64 {
	if c.Rule.IsWindow() {
		return max(1, wire.Ceil(driver.Micros(c.Result.Receipt.Unit)))
	}
	return max(1, wire.Ceil(c.Rule.Refill(c.Rule.Capacity())))
}

// appendState writes what is left, and in what time as much will have come again: using it up at that pace, a client is not
// refused. With nothing left it is the time until something is, and for a refused cost the time until it fits.
func (v *verdict) appendState(a *Admission, b []byte) []byte {
	c := &a.claims[v.claim]
	b = append(b, draftRemaining...)
	b = strconv.AppendInt(b, int64(c.Result.Remaining), 10)
	var t int64
	switch {
	case v.policy.holds(): // nobody knows when one becomes free
		return b
	case v.outcome == OutcomeDenied && c.Cost > c.Rule.Capacity():
		return b // waiting cannot help
	case v.outcome == OutcomeDenied:
		t = wire.RetryAfter(c.Result.RetryAfter)
	case c.Rule.IsWindow(): // until it ends, and no faster than the quota's pace
		q := int64(c.Rule.Capacity())
		t = max(wire.Ceil(c.Result.ResetAfter), (int64(c.Result.Remaining)*windowOf(c)+q-1)/q)
	case c.Result.Remaining > 0:
		t = wire.Ceil(c.Rule.Refill(c.Result.Remaining))
	case c.Result.Fraction.Den > 0:
		n, _ := c.Rule.Reduced()
		t = wire.Ceil(driver.Micros((c.Result.Fraction.Den - c.Result.Fraction.Num + n - 1) / n))
	default: // in debt
		t = wire.Ceil(c.Result.ResetAfter - c.Rule.Refill(c.Rule.Capacity()-1))
	}
	b = append(b, draftReset...)
	return strconv.AppendInt(b, max(1, t), 10)
}
