package telemetry_test

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel"

	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
	"github.com/headgate-go/headgate/telemetry"
)

// An observer may be made before the application has set its providers: what it saw by then is reported to them too.
func TestGlobalProvidersThatAreSetLater(t *testing.T) {
	o := telemetry.NewObserver(telemetry.WithSpans(), telemetry.WithTenants(3),
		telemetry.WithTenantName(func(gate.Request, gate.Decision) string { return "early" }))
	g := gate.Must(gate.New(gate.Config{Name: "early", Observer: o, Clock: clock, Limiters: []gate.Limiter{
		gate.RequestRate{Name: "p", Limit: limit.PerDay(1).WithBurst(1)}}}))
	ask := func(ctx context.Context) { g.Admit(ctx, gate.Call{Operation: "GET /x", Addr: "192.0.2.1"}) }
	ask(context.Background())
	ask(context.Background())

	b := newBench(t)
	otel.SetMeterProvider(b.meters)
	otel.SetTracerProvider(b.tracers)
	ctx, span := b.request()
	ask(ctx)
	span.End()
	if n := b.sum("headgate.decisions", "headgate.gate=early"); n != 3 {
		t.Errorf("%d decisions, want 3", n)
	}
	if n := b.sum("headgate.tenant.refusals", "headgate.tenant=early"); n != 2 {
		t.Errorf("%d refusals, want 2", n)
	}
	if n := len(b.spans.Ended()); n != 2 {
		t.Errorf("%d spans, want that of the request and that of the store", n)
	}
}
