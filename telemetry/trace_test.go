package telemetry_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
	"github.com/headgate-go/headgate/telemetry"
)

// BR-169: what a gate decided stands on the request's own span. A refusal with 429 is the client's doing, and leaves its
// status unset; one with 503 is an error of the server; a request that was let pass is none, whatever happened to the store.
func TestBR169_SpanOfTheRequest(t *testing.T) {
	rate := func(mode gate.Mode, onError gate.OnStoreError) gate.RequestRate {
		return gate.RequestRate{Name: "p", Limit: limit.PerDay(1).WithBurst(1), Mode: mode, OnStoreError: onError, Key: gate.Header("X-Api-Key")}
	}
	down := failing{driver.ClassTimeout}
	const of = " headgate.policy=p"
	const event = "headgate.gate=api headgate.policy=p headgate.limit_type=request_rate headgate.outcome="
	for _, tt := range []struct {
		name    string
		limiter gate.RequestRate
		store   driver.Store
		status  codes.Code
		span    string
		event   string // "" for none; ~ stands for the tenant's digest
	}{
		{"allowed", rate(gate.Enforce, 0), nil, codes.Unset, "headgate.outcome=allowed", ""},
		{"denied", rate(gate.Enforce, 0), nil, codes.Unset, "headgate.outcome=denied" + of + " headgate.retry_after=86400",
			event + "denied headgate.mode=enforce headgate.reason=limit headgate.retry_after=86400 headgate.tenant=~"},
		{"shadow", rate(gate.Shadow, 0), nil, codes.Unset, "headgate.outcome=would_deny",
			event + "would_deny headgate.mode=shadow headgate.reason=limit headgate.retry_after=86400 headgate.tenant=~"},
		{"fail open", rate(gate.Enforce, gate.FailOpen), down, codes.Unset, "headgate.outcome=fail_open",
			event + "fail_open headgate.mode=enforce error.type=timeout headgate.tenant=~"},
		{"fail closed", rate(gate.Enforce, gate.FailClosed), down, codes.Error, "headgate.outcome=fail_closed" + of + " headgate.retry_after=1",
			event + "fail_closed headgate.mode=enforce error.type=timeout headgate.tenant=~"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			c := gate.Config{Name: "api", Store: tt.store, Limiters: []gate.Limiter{tt.limiter}}
			if tt.store == nil {
				c.Clock = clock
			}
			g := b.gate(c)
			mux := http.NewServeMux()
			var inHandler trace.SpanContext
			mux.HandleFunc("GET /x", func(_ http.ResponseWriter, r *http.Request) { inHandler = trace.SpanContextFromContext(r.Context()) })
			headers := map[string]string{"X-Api-Key": "s3cr3t"}
			if tt.event != "" { // the second request is the one that is refused
				serve(context.Background(), mux, "GET", "/x", headers, g)
			}
			ctx, span := b.request()
			inHandler = trace.SpanContext{}
			w := serve(ctx, mux, "GET", "/x", headers, g)
			if w.Code == http.StatusOK && !inHandler.Equal(span.SpanContext()) {
				t.Error("the handler does not know the trace")
			}
			got := b.ended(span)
			if got.Status().Code != tt.status {
				t.Errorf("status %v, want %v", got.Status(), tt.status)
			}
			if text := attributes(got.Attributes()); text != tt.span {
				t.Errorf("the span says\n%s, want\n%s", text, tt.span)
			}
			if d, ok := duration(got); !ok || d <= 0 || d > 60 {
				t.Errorf("the store took %v seconds", d)
			}
			var text string
			for _, e := range got.Events() {
				if e.Name != "headgate.decision" || e.Time.Before(got.StartTime()) || e.Time.After(got.EndTime()) {
					t.Errorf("%s at %v", e.Name, e.Time)
				}
				text += attributes(e.Attributes)
			}
			want := tt.event
			if want != "" {
				want = strings.Replace(want, "~", text[len(text)-22:], 1)
			}
			if text != want {
				t.Errorf("the event says\n%s, want\n%s", text, want)
			}
		})
	}
}

func duration(span sdktrace.ReadOnlySpan) (seconds float64, ok bool) {
	for _, a := range span.Attributes() {
		if a.Key == "headgate.store.duration" {
			return a.Value.AsFloat64(), true
		}
	}
	return 0, false
}

// Of two gates on one request the one that refused is told, though the other is observed last; the time in their stores is
// added up.
func TestTwoGatesOnOneSpan(t *testing.T) {
	for _, tt := range []struct{ outer, inner, want string }{
		{"wide", "narrow", "headgate.outcome=denied headgate.policy=narrow headgate.retry_after=86400"},
		{"narrow", "wide", "headgate.outcome=denied headgate.policy=narrow headgate.retry_after=86400"},
		{"wide", "wider", "headgate.outcome=allowed"},
		{"wide", "dark", "headgate.outcome=would_deny"},
	} {
		b := newBench(t)
		gates := map[string]*gate.Gate{}
		for name, burst := range map[string]int{"wide": 100, "wider": 1000, "narrow": 1, "dark": 1} {
			mode := gate.Enforce
			if name == "dark" {
				mode = gate.Shadow
			}
			gates[name] = b.gate(gate.Config{Name: name, Clock: clock, Limiters: []gate.Limiter{
				gate.RequestRate{Name: name, Mode: mode, Limit: limit.PerDay(1).WithBurst(burst)}}})
		}
		ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
		serve(context.Background(), ok, "GET", "/x", nil, gates[tt.outer], gates[tt.inner])
		ctx, span := b.request()
		serve(ctx, ok, "GET", "/x", nil, gates[tt.outer], gates[tt.inner])
		if text := attributes(b.ended(span).Attributes()); text != tt.want {
			t.Errorf("%s around %s: the span says\n%s, want\n%s", tt.outer, tt.inner, text, tt.want)
		}
	}
	// A span that cannot be read says what the outermost gate says: it comes last.
	b := newBench(t)
	ctx, span := b.request()
	for _, outcome := range []gate.Outcome{gate.OutcomeDenied, gate.OutcomeAllowed} {
		b.observer.Observe(gate.Event{Kind: gate.Decided, Context: trace.ContextWithSpan(ctx, opaque{span}), Decisions: []gate.Decision{{Outcome: outcome}}})
	}
	if text := attributes(b.ended(span).Attributes()); text != "headgate.outcome=allowed" {
		t.Errorf("the span says %s", text)
	}

	ctx, span = b.request()
	for range 2 {
		b.observer.Observe(gate.Event{Kind: gate.Decided, Context: ctx, Duration: time.Second, StoreDuration: time.Second / 4})
	}
	if d, _ := duration(b.ended(span)); d != 0.5 {
		t.Errorf("two stores took a quarter of a second each, %v in all", d)
	}
}

// opaque is a span of somebody else's: it has what the API has.
type opaque struct{ trace.Span }

// WithSpans: the time in the store is a span below the request's, where that is sampled and the store was asked.
func TestWithSpans(t *testing.T) {
	b := newBench(t, telemetry.WithSpans())
	ask := func(ctx context.Context, c gate.Config) {
		c.Name = "api"
		b.gate(c).Admit(ctx, gate.Call{Operation: "GET /x", Addr: "192.0.2.1"})
	}
	good := gate.Config{Limiters: []gate.Limiter{gate.RequestRate{Name: "p", Limit: limit.PerDay(1)}}}
	bad := gate.Config{Store: failing{driver.ClassAuth}, Limiters: good.Limiters}
	keyless := gate.Config{Limiters: []gate.Limiter{gate.RequestRate{Name: "p", Limit: limit.PerDay(1), Key: gate.Value("k"), OnMissingKey: gate.MissingKeyReject}}}

	unsampled := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	never, _ := unsampled.Tracer("server").Start(context.Background(), "GET")
	ask(never, good)
	ask(context.Background(), good)
	ctx, span := b.request()
	ask(ctx, keyless)
	if n := len(b.spans.Ended()); n != 0 {
		t.Errorf("%d spans of requests that are not sampled or asked nothing of a store", n)
	}
	ask(ctx, good)
	ask(ctx, bad)
	span.End()
	ended := b.spans.Ended()
	if len(ended) != 3 {
		t.Fatalf("%d spans", len(ended))
	}
	for i, want := range []struct {
		text   string
		status codes.Code
	}{
		{"headgate.gate=api headgate.outcome=allowed", codes.Unset},
		{"headgate.gate=api headgate.outcome=fail_open error.type=auth", codes.Error},
	} {
		s := ended[i]
		if s.Name() != "headgate.take" || s.SpanKind() != trace.SpanKindInternal || s.Parent().SpanID() != span.SpanContext().SpanID() {
			t.Errorf("span %q of kind %v", s.Name(), s.SpanKind())
		}
		if s.InstrumentationScope().Name != telemetry.ScopeName || s.InstrumentationScope().Version != telemetry.Version {
			t.Errorf("scope %+v", s.InstrumentationScope())
		}
		if text := attributes(s.Attributes()); text != want.text || s.Status().Code != want.status {
			t.Errorf("%q with status %v, want %q with %v", text, s.Status(), want.text, want.status)
		}
		if s.StartTime().Before(ended[2].StartTime()) || !s.EndTime().After(s.StartTime()) || s.EndTime().After(ended[2].EndTime()) {
			t.Errorf("from %v to %v, the request from %v to %v", s.StartTime(), s.EndTime(), ended[2].StartTime(), ended[2].EndTime())
		}
	}
}
