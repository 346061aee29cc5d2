package telemetry

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/headgate-go/headgate/core/gate"
)

// decisionEvent is the name of the span event for a decision that was not simply to let pass.
const decisionEvent = "headgate.decision"

// takeSpan is the name of the span of WithSpans.
const takeSpan = "headgate.take"

// trace writes to the request's own span.
func (o *Observer) trace(span trace.Span, e *gate.Event, outcome gate.Outcome) {
	at := trace.WithTimestamp(e.Start.Add(e.Duration))
	for i := range e.Decisions {
		if d := &e.Decisions[i]; rank(d.Outcome) > rank(gate.OutcomeAllowed) {
			span.AddEvent(decisionEvent, at, trace.WithAttributes(o.describe(e, d)...))
		}
	}
	inner, spent := written(span)
	if e.StoreDuration > 0 {
		span.SetAttributes(keyStoreDuration.Float64(spent + e.StoreDuration.Seconds()))
	}
	if e.InnerRefused || rank(outcome) < inner {
		return // a gate further in said more
	}
	span.SetAttributes(keyOutcome.String(outcome.String()))
	if e.Refusal == nil {
		return
	}
	span.SetAttributes(keyPolicy.String(e.Refusal.Policy))
	if wait := e.Refusal.RetryAfterSeconds(); wait > 0 {
		span.SetAttributes(keyRetryAfter.Float64(float64(wait)))
	}
	if e.Refusal.Status >= 500 { // 429 and 400 are the client's doing, and no error of a server's span
		span.SetStatus(codes.Error, "refused by "+e.Refusal.Policy+": "+e.Refusal.Outcome.String())
	}
}

// describe tells what one limiter decided. An error is told by its class: its text may name hosts and keys.
func (o *Observer) describe(e *gate.Event, d *gate.Decision) []attribute.KeyValue {
	attributes := withError([]attribute.KeyValue{
		keyGate.String(d.Gate), keyPolicy.String(d.Policy), keyLimitType.String(d.LimitType),
		keyOutcome.String(d.Outcome.String()), keyMode.String(d.Mode.String()),
	}, classOf(d.Err))
	if d.Reason != gate.ReasonNone {
		attributes = append(attributes, keyReason.String(d.Reason.String()))
	}
	if d.RetryAfter > 0 {
		attributes = append(attributes, keyRetryAfter.Float64(d.RetryAfter.Seconds()))
	}
	if tenant := o.tenant(e, d); tenant != "" {
		// A name may point into the request.
		attributes = append(attributes, keyTenant.String(strings.Clone(tenant)))
	}
	return attributes
}

// written returns what gates further in wrote to the span: they are observed first. The API cannot read a span, the spans
// of the SDK can be read; of others the outermost gate has the last word.
func written(span trace.Span) (strongest int, spent float64) {
	readable, ok := span.(interface{ Attributes() []attribute.KeyValue })
	if !ok {
		return 0, 0
	}
	for _, a := range readable.Attributes() {
		switch a.Key {
		case keyOutcome:
			strongest = rankOf(a.Value.AsString())
		case keyStoreDuration:
			spent = a.Value.AsFloat64()
		}
	}
	return strongest, spent
}

func rankOf(word string) int {
	for i := range ranks {
		if outcome := gate.Outcome(i); outcome.String() == word {
			return rank(outcome)
		}
	}
	return 0
}

// take makes the span of a decision's time in the store, after the fact: the store is the last that a decision waits for.
func (o *Observer) take(e *gate.Event, outcome gate.Outcome, class class) {
	end := e.Start.Add(e.Duration)
	_, span := o.tracer.Start(e.Context, takeSpan, trace.WithTimestamp(end.Add(-e.StoreDuration)),
		trace.WithAttributes(keyGate.String(e.Gate), keyOutcome.String(outcome.String())))
	if class != 0 {
		span.SetAttributes(withError(nil, class)...)
		span.SetStatus(codes.Error, "the store failed")
	}
	span.End(trace.WithTimestamp(end))
}
