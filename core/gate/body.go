package gate

import (
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/internal/wire"
	"github.com/headgate-go/headgate/core/limit"
)

// jsonBody is the default rendering.
func jsonBody(_ Request, r *Refusal) (string, []byte) {
	return wire.JSONType, wire.JSON(r.wire())
}

// ProblemJSON is a [Body] in the form of RFC 9457, application/problem+json.
func ProblemJSON(_ Request, r *Refusal) (contentType string, body []byte) {
	violated := make([]string, len(r.Violated))
	for i, d := range r.Violated {
		violated[i] = d.Policy
	}
	return wire.ProblemType, wire.Problem(r.Status, r.wire(), violated)
}

func (r *Refusal) wire() wire.Error {
	return wire.Error{Type: r.errorType(), Message: r.Message, LimitType: r.LimitType, Policy: r.Policy, RetryAfter: r.wait}
}

func (r *Refusal) errorType() wire.Type {
	switch r.Status {
	case statusTooMany:
		return wire.TypeRateLimit
	case statusUnavailable:
		return wire.TypeOverloaded
	}
	return wire.TypeInvalidRequest
}

// Statuses as numbers: core knows no HTTP package.
const (
	statusBadRequest  = 400
	statusTooMany     = 429
	statusInternal    = 500
	statusUnavailable = 503
)

// message says what was exceeded and what to do.
func (r *Refusal) message() string {
	var text string
	switch {
	case r.Outcome == OutcomeRejected:
		text = wire.MissingKey(r.Policy)
	case r.Outcome == OutcomeFailClosed:
		text = wire.StoreUnavailable(r.wait)
	case r.unsatisfiable():
		text = wire.Cost(r.Cost, r.Limit)
	case r.Rule.Kind() == driver.KindSlots:
		text = wire.Concurrent(r.Rule.Capacity(), r.wait)
	case r.Rule.IsWindow():
		text = wire.Quota(r.Rule.Capacity(), windowName(r.Rule), r.wait)
	default:
		count, period := r.Rule.Rate()
		text = wire.Rate(count, period, r.Rule.Capacity(), r.wait)
	}
	if r.DocsURL != "" {
		text += " See " + r.DocsURL
	}
	return text
}

// unsatisfiable says that waiting cannot help.
func (d Decision) unsatisfiable() bool { return d.Cost > d.Limit && d.Outcome != OutcomeFailClosed }

func windowName(rule limit.Rule) string {
	switch rule.Kind() {
	case driver.KindDaily:
		return "day"
	case driver.KindMonthly:
		return "month"
	}
	_, period := rule.Rate()
	return wire.Period(period)
}
