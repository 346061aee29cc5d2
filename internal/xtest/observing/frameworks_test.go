package observing_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/contrib/otelfiber/v2"
	"github.com/gofiber/fiber/v2"
	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/labstack/echo/otelecho"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/headgate-go/headgate/adapters/echogate"
	"github.com/headgate-go/headgate/adapters/fibergate"
	"github.com/headgate-go/headgate/adapters/gingate"
	"github.com/headgate-go/headgate/adapters/httpgate"
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
	"github.com/headgate-go/headgate/telemetry"
)

// app is one route, /v1/routes/:id, on a framework: its OpenTelemetry middleware, then the gate, then a handler.
type app func(g *gate.Gate, tracers trace.TracerProvider, handler func(context.Context)) func(*http.Request) *http.Response

var (
	propagator = propagation.TraceContext{}
	frameworks = map[string]app{
		"gin": func(g *gate.Gate, tracers trace.TracerProvider, handler func(context.Context)) func(*http.Request) *http.Response {
			gin.SetMode(gin.ReleaseMode)
			r := gin.New()
			r.Use(otelgin.Middleware("test", otelgin.WithTracerProvider(tracers), otelgin.WithPropagators(propagator),
				otelgin.WithMeterProvider(noop.NewMeterProvider())), gingate.Middleware(g))
			r.GET("/v1/routes/:id", func(c *gin.Context) { handler(c.Request.Context()) })
			return recorded(r)
		},
		"echo": func(g *gate.Gate, tracers trace.TracerProvider, handler func(context.Context)) func(*http.Request) *http.Response {
			e := echo.New()
			e.Use(otelecho.Middleware("test", otelecho.WithTracerProvider(tracers), otelecho.WithPropagators(propagator),
				otelecho.WithMeterProvider(noop.NewMeterProvider())), echogate.Middleware(g))
			e.GET("/v1/routes/:id", func(c echo.Context) error {
				handler(c.Request().Context())
				return nil
			})
			return recorded(e)
		},
		"fiber": func(g *gate.Gate, tracers trace.TracerProvider, handler func(context.Context)) func(*http.Request) *http.Response {
			f := fiber.New()
			f.Use(otelfiber.Middleware(otelfiber.WithTracerProvider(tracers), otelfiber.WithPropagators(propagator),
				otelfiber.WithMeterProvider(noop.NewMeterProvider())), fibergate.Middleware(g))
			f.Get("/v1/routes/:id", func(c *fiber.Ctx) error {
				handler(c.UserContext())
				return nil
			})
			return func(r *http.Request) *http.Response {
				resp, err := f.Test(r, -1)
				if err != nil {
					panic(err)
				}
				return resp
			}
		},
		"net/http": func(g *gate.Gate, tracers trace.TracerProvider, handler func(context.Context)) func(*http.Request) *http.Response {
			mux := http.NewServeMux()
			mux.HandleFunc("GET /v1/routes/{id}", func(_ http.ResponseWriter, r *http.Request) { handler(r.Context()) })
			return recorded(otelhttp.NewHandler(httpgate.Middleware(g)(mux), "server", otelhttp.WithTracerProvider(tracers),
				otelhttp.WithPropagators(propagator), otelhttp.WithMeterProvider(noop.NewMeterProvider())))
		},
	}
)

func recorded(h http.Handler) func(*http.Request) *http.Response {
	return func(r *http.Request) *http.Response {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
}

// BR-169: behind the OpenTelemetry middleware of each framework, decisions appear on the request's own span; a 429 leaves
// its status unset and a 503 does not; the handler is in the trace; a metric's exemplar names it.
func TestBR169_BehindTheMiddlewareOfEachFramework(t *testing.T) {
	rate := func(onError gate.OnStoreError, mode gate.Mode) gate.RequestRate {
		return gate.RequestRate{Name: "tenant", Key: gate.Header("X-Api-Key"), Limit: limit.PerDay(1).WithBurst(1), OnStoreError: onError, Mode: mode}
	}
	cases := []struct {
		name     string
		limiter  gate.RequestRate
		store    driver.Store
		requests int
		status   int
		code     codes.Code
		want     string // attributes of the span, "headgate." left out
		event    string // attributes of its event
	}{
		{"allowed", rate(gate.FailOpen, gate.Enforce), nil, 1, 200, codes.Unset, "outcome=allowed", ""},
		{"denied", rate(gate.FailOpen, gate.Enforce), nil, 2, 429, codes.Unset, "outcome=denied policy=tenant retry_after=86400",
			"gate=api policy=tenant limit_type=request_rate outcome=denied mode=enforce reason=limit"},
		{"shadow", rate(gate.FailOpen, gate.Shadow), nil, 2, 200, codes.Unset, "outcome=would_deny",
			"gate=api policy=tenant limit_type=request_rate outcome=would_deny mode=shadow reason=limit"},
		{"fail open", rate(gate.FailOpen, gate.Enforce), unreachable{}, 1, 200, codes.Unset, "outcome=fail_open",
			"gate=api policy=tenant limit_type=request_rate outcome=fail_open mode=enforce error.type=timeout"},
		{"refused with 503", rate(gate.FailClosed, gate.Enforce), unreachable{}, 1, 503, codes.Error,
			"outcome=fail_closed policy=tenant retry_after=1",
			"gate=api policy=tenant limit_type=request_rate outcome=fail_closed mode=enforce error.type=timeout"},
	}
	for framework, mount := range frameworks {
		for _, tt := range cases {
			t.Run(framework+", "+tt.name, func(t *testing.T) {
				spans, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
				tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
				c := gate.Config{Name: "api", Store: tt.store, Logger: slog.New(slog.DiscardHandler), Limiters: []gate.Limiter{tt.limiter},
					Routes:   []string{"/v1/routes/:id"}, // the template of refusals, where the framework routes behind us
					Observer: telemetry.NewObserver(telemetry.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))}
				if tt.store == nil {
					c.Clock = func() time.Time { return time.Unix(1_900_000_000, 0) }
				}
				g := gate.Must(gate.New(c))
				t.Cleanup(func() { _ = g.Close(context.Background()) })
				var inHandler trace.SpanContext
				ask := mount(g, tracers, func(ctx context.Context) {
					_, span := tracers.Tracer("handler").Start(ctx, "work")
					span.End()
					inHandler = trace.SpanContextFromContext(ctx)
				})
				var resp *http.Response
				var id string
				for n := range tt.requests {
					id = fmt.Sprintf("%032x", n+1)
					r := httptest.NewRequest("GET", "/v1/routes/4711", nil)
					r.Header.Set("X-Api-Key", "s3cr3t")
					r.Header.Set("traceparent", "00-"+id+"-0123456789abcdef-01")
					inHandler = trace.SpanContext{}
					resp = ask(r)
					_ = resp.Body.Close()
				}
				if resp.StatusCode != tt.status {
					t.Fatalf("status %d, want %d", resp.StatusCode, tt.status)
				}

				server := last(spans.Ended(), func(s sdktrace.ReadOnlySpan) bool { return s.SpanKind() == trace.SpanKindServer })
				if server.SpanContext().TraceID().String() != id {
					t.Error("the span is of another trace")
				}
				if server.Status().Code != tt.code {
					t.Errorf("span status %v, want %v", server.Status(), tt.code)
				}
				if got := ours(server.Attributes()); got != tt.want {
					t.Errorf("the span says %q, want %q", got, tt.want)
				}
				var event string
				for _, e := range server.Events() {
					if e.Name == "headgate.decision" {
						event += ours(e.Attributes)
					}
				}
				if !strings.HasPrefix(event, tt.event) || tt.event == "" && event != "" {
					t.Errorf("the event says %q, want %q", event, tt.event)
				}
				if tt.status == http.StatusOK && !inHandler.Equal(server.SpanContext()) {
					t.Error("the handler is not in the request's span")
				}
				outcome, _, _ := strings.Cut(tt.want, " ")
				if got := exemplars(t, reader, outcome); !slices.Equal(got, []string{id + " /v1/routes/:id"}) && !slices.Equal(got, []string{id + " /v1/routes/{id}"}) {
					t.Errorf("exemplars and their route: %q, want trace %s", got, id)
				}
			})
		}
	}
}

func last(list []sdktrace.ReadOnlySpan, which func(sdktrace.ReadOnlySpan) bool) (found sdktrace.ReadOnlySpan) {
	for _, s := range list {
		if which(s) {
			found = s
		}
	}
	return found
}

// ours writes our attributes, without those that time or the key decide.
func ours(list []attribute.KeyValue) string {
	var text []string
	for _, a := range list {
		name, found := strings.CutPrefix(string(a.Key), "headgate.")
		if found && name != "store.duration" && name != "tenant" || a.Key == "error.type" && len(text) > 0 {
			text = append(text, name+"="+a.Value.String())
		}
	}
	return strings.Join(text, " ")
}

// exemplars returns the traces of the decisions with an outcome, and their route.
func exemplars(t *testing.T, reader sdkmetric.Reader, outcome string) (found []string) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if m.Name != "headgate.decisions" {
			continue
		}
		for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
			if word, _ := p.Attributes.Value("headgate.outcome"); "outcome="+word.AsString() == outcome {
				route, _ := p.Attributes.Value("http.route")
				for _, e := range p.Exemplars {
					found = append(found, fmt.Sprintf("%x %s", e.TraceID, route.AsString()))
				}
			}
		}
	}
	return found
}
