package telemetry_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/headgate-go/headgate/adapters/httpgate"
	"github.com/headgate-go/headgate/conformance/adaptertest"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
	"github.com/headgate-go/headgate/telemetry"
)

// Observing adds one allocation to a request that passes, the gate's list of decisions, and the observer adds none: with an
// SDK that collects, with a span that is not sampled, and without either.
func TestObservingAllocatesOnce(t *testing.T) {
	unsampled, span := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())).Tracer("server").Start(context.Background(), "GET")
	defer span.End()
	for _, tt := range []struct {
		name   string
		meters metric.MeterProvider
		ctx    context.Context
	}{
		{"sdk", sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())), context.Background()},
		{"sdk, span not sampled", sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())), unsampled},
		{"none", noop.NewMeterProvider(), context.Background()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := telemetry.NewObserver(telemetry.WithMeterProvider(tt.meters), telemetry.WithTenants(20), telemetry.WithSpans())
			adaptertest.Allocations(t, 1, service(tt.ctx, nil), service(tt.ctx, o))
			e := event(tt.ctx, "/v1/routes/:id")
			adaptertest.Allocations(t, 0, func() {}, func() { o.Observe(e) })
		})
	}
}

// service is a request to a gated service, as a function.
func service(ctx context.Context, o gate.Observer) func() {
	g := gate.Must(gate.New(gate.Config{Name: "api", Observer: o, Limiters: []gate.Limiter{
		gate.RequestRate{Name: "client", Limit: limit.PerSecond(1_000_000)}}}))
	h := httpgate.Middleware(g)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	w, r := discard{}, httptest.NewRequestWithContext(ctx, "GET", "/v1/text", nil)
	return func() {
		clear(w)
		h.ServeHTTP(w, r)
	}
}

type discard http.Header

func (d discard) Header() http.Header         { return http.Header(d) }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

func event(ctx context.Context, route string) gate.Event {
	return gate.Event{Kind: gate.Decided, Context: ctx, Gate: "api", Route: route, Start: time.Now(), Duration: 2 * time.Microsecond,
		StoreDuration: time.Microsecond, Decisions: []gate.Decision{{Gate: "api", Policy: "client", LimitType: "request_rate", Limit: 500,
			Remaining: 3, Cost: 1, Rule: limit.PerSecond(100)}}}
}

// BenchmarkObserve is what an allowed request pays without a sampled span. "request" is what it waits for: measurements are
// held back, and what a collection hands over is not in it. "all" is with that, and with "none" there is no SDK.
// "direct" is what three measurements through the SDK cost with attributes made beforehand.
func BenchmarkObserve(b *testing.B) {
	observer := func(b *testing.B, meters metric.MeterProvider) (*telemetry.Observer, gate.Event) {
		b.ReportAllocs()
		o := telemetry.NewObserver(telemetry.WithMeterProvider(meters), telemetry.WithTenants(20))
		for _, route := range []string{"/a", "/b", "/c/:id", "/d", "/e/:id", "/f"} { // a small service's routes
			o.Observe(event(context.Background(), route))
		}
		return o, event(context.Background(), "/c/:id")
	}
	const interval = 1000 // requests between two collections: fewer than are handed over without one
	b.Run("request", func(b *testing.B) {
		t := newBench(b)
		o, e := observer(b, t.meters)
		for left := b.N; left > 0; left -= interval {
			for range min(left, interval) {
				o.Observe(e)
			}
			b.StopTimer()
			t.collect()
			b.StartTimer()
		}
	})
	b.Run("all", func(b *testing.B) {
		t := newBench(b)
		o, e := observer(b, t.meters)
		for left := b.N; left > 0; left -= interval {
			for range min(left, interval) {
				o.Observe(e)
			}
			t.collect()
		}
	})
	b.Run("none", func(b *testing.B) {
		o, e := observer(b, noop.NewMeterProvider())
		for b.Loop() {
			o.Observe(e)
		}
	})
	b.Run("direct", func(b *testing.B) {
		b.ReportAllocs()
		m := newBench(b).meters.Meter("direct")
		decisions, _ := m.Int64Counter("decisions")
		cost, _ := m.Int64Counter("cost")
		duration, _ := m.Float64Histogram("duration")
		many := []metric.AddOption{attributeSet("gate", "policy", "limit_type", "outcome", "mode", "route")}
		two := []metric.AddOption{attributeSet("policy", "outcome")}
		one := []metric.RecordOption{attributeSet("outcome")}
		ctx := context.Background()
		for b.Loop() {
			decisions.Add(ctx, 1, many...)
			cost.Add(ctx, 1, two...)
			duration.Record(ctx, 2e-6, one...)
		}
	})
}

// BenchmarkServe is a whole request through net/http with and without an observer: the difference has the gate's own part in
// it, which reads the clock and lists the decisions.
func BenchmarkServe(b *testing.B) {
	for _, tt := range []struct {
		name     string
		observer gate.Observer
	}{
		{"unobserved", nil},
		{"observed", newBench(b, telemetry.WithTenants(20)).observer},
		{"ignored", ignore{}},
	} {
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			request := service(context.Background(), tt.observer)
			for b.Loop() {
				request()
			}
		})
	}
}

// ignore is an observer that does nothing.
type ignore struct{}

func (ignore) Observe(gate.Event) {}
