package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/headgate-go/headgate/adapters/httpgate"
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/telemetry"
)

// bench is an SDK to look into, and an observer that reports to it.
type bench struct {
	t        testing.TB
	reader   *sdkmetric.ManualReader
	meters   *sdkmetric.MeterProvider
	spans    *tracetest.SpanRecorder
	tracers  *sdktrace.TracerProvider
	observer *telemetry.Observer
}

func newBench(t testing.TB, opts ...telemetry.Option) *bench {
	b := &bench{t: t, reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	b.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(b.reader))
	b.tracers = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(b.spans))
	b.observer = telemetry.NewObserver(append([]telemetry.Option{
		telemetry.WithMeterProvider(b.meters), telemetry.WithTracerProvider(b.tracers)}, opts...)...)
	return b
}

// gate makes a gate that the observer watches.
func (b *bench) gate(c gate.Config) *gate.Gate {
	b.t.Helper()
	c.Observer, c.Logger = b.observer, quiet
	g, err := gate.New(c)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = g.Close(context.Background()) })
	return g
}

// collect reads all instruments, by name.
func (b *bench) collect() map[string]metricdata.Metrics {
	b.t.Helper()
	var all metricdata.ResourceMetrics
	if err := b.reader.Collect(context.Background(), &all); err != nil {
		b.t.Fatal(err)
	}
	found := map[string]metricdata.Metrics{}
	for _, scope := range all.ScopeMetrics {
		if scope.Scope.Name != telemetry.ScopeName || scope.Scope.Version != telemetry.Version {
			b.t.Errorf("scope %+v", scope.Scope)
		}
		for _, m := range scope.Metrics {
			found[m.Name] = m
		}
	}
	return found
}

// point is a data point of any kind: the value, or how many values were recorded.
type point struct {
	attributes attribute.Set
	value      int64
	traces     []string // of its exemplars
}

func points(t testing.TB, m metricdata.Metrics) (list []point) {
	t.Helper()
	switch data := m.Data.(type) {
	case nil:
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			list = append(list, point{p.Attributes, p.Value, traces(p.Exemplars)})
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			list = append(list, point{p.Attributes, p.Value, traces(p.Exemplars)})
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			list = append(list, point{p.Attributes, int64(p.Count), traces(p.Exemplars)})
		}
	default:
		t.Fatalf("%s is a %T", m.Name, data)
	}
	return list
}

func traces[N int64 | float64](exemplars []metricdata.Exemplar[N]) (ids []string) {
	for _, e := range exemplars {
		ids = append(ids, fmt.Sprintf("%x", e.TraceID))
	}
	return ids
}

// sum adds up the points of an instrument that have all these attributes: "headgate.outcome=denied".
func (b *bench) sum(name string, want ...string) int64 {
	b.t.Helper()
	return sum(b.t, b.collect()[name], want...)
}

func sum(t testing.TB, m metricdata.Metrics, want ...string) (total int64) {
	t.Helper()
	for _, p := range points(t, m) {
		if has(p.attributes, want...) {
			total += p.value
		}
	}
	return total
}

func has(set attribute.Set, want ...string) bool {
	for _, pair := range want {
		key, value, _ := strings.Cut(pair, "=")
		if got, ok := set.Value(attribute.Key(key)); !ok || got.AsString() != value {
			return false
		}
	}
	return true
}

// request starts a span as a server's middleware does, sampled, and returns its context.
func (b *bench) request() (context.Context, trace.Span) {
	return b.tracers.Tracer("server").Start(context.Background(), "GET", trace.WithSpanKind(trace.SpanKindServer))
}

// ended ends a span and returns what was written to it.
func (b *bench) ended(span trace.Span) sdktrace.ReadOnlySpan {
	b.t.Helper()
	span.End()
	for _, s := range b.spans.Ended() {
		if s.SpanContext().Equal(span.SpanContext()) {
			return s
		}
	}
	b.t.Fatal("the span was not recorded")
	return nil
}

// attributes writes a span's or an event's attributes as "key=value", without those that time decides.
func attributes(list []attribute.KeyValue) string {
	var text []string
	for _, a := range list {
		if a.Key != "headgate.store.duration" {
			text = append(text, string(a.Key)+"="+a.Value.String())
		}
	}
	return strings.Join(text, " ")
}

// failing is a store that is not there.
type failing struct{ class driver.Class }

func (s failing) Decide(context.Context, time.Time, []driver.Entry) error {
	return &driver.Error{Class: s.class, Err: errors.New("dial tcp 192.0.2.9: s3cr3t")}
}
func (s failing) Apply(context.Context, time.Time, []driver.Change) error { return nil }
func (failing) Close() error                                              { return nil }

// quiet is for gates whose store is to fail.
var quiet = slog.New(slog.DiscardHandler)

// clock is a script's time.
func clock() time.Time { return time.Unix(1_900_000_000, 0) }

// serve answers one request through net/http, with a ServeMux behind the gates, the outermost first.
func serve(ctx context.Context, mux http.Handler, method, path string, headers map[string]string, gates ...*gate.Gate) *httptest.ResponseRecorder {
	h := mux
	for i := len(gates) - 1; i >= 0; i-- {
		h = httpgate.Middleware(gates[i])(h)
	}
	r := httptest.NewRequestWithContext(ctx, method, path, nil)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// attributeSet makes attributes with these keys.
func attributeSet(keys ...string) metric.MeasurementOption {
	var list []attribute.KeyValue
	for _, key := range keys {
		list = append(list, attribute.String("headgate."+key, "value"))
	}
	return metric.WithAttributeSet(attribute.NewSet(list...))
}
