package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
	"github.com/headgate-go/headgate/telemetry"
)

// BR-164: scanners with a new key and a new path each time make no time series of their own, and nobody can read a key, an
// address or a path out of what is exported.
func TestBR164_UniqueKeysAndPaths(t *testing.T) {
	b := newBench(t, telemetry.WithTenants(20), telemetry.WithSpans())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/routes/{id}", func(http.ResponseWriter, *http.Request) {})
	flood := func(from, to int) {
		g := b.gate(gate.Config{Name: "api", Limiters: []gate.Limiter{
			// Every other request is refused for its cost.
			gate.RequestRate{Name: "key", Key: gate.Header("X-Api-Key"), Limit: limit.PerSecond(1), Cost: func(r gate.Request) int {
				return len(r.Header("X-Dear"))
			}},
			gate.RequestRate{Name: "next", Mode: gate.Shadow, Key: gate.Header("X-Api-Key"), Limit: limit.PerSecond(1).WithBurst(1),
				Cost: func(gate.Request) int { return 2 }},
		}})
		for i := from; i < to; i++ {
			ctx := context.Background()
			headers := map[string]string{"X-Api-Key": fmt.Sprintf("unique-%d", i), "X-Dear": strings.Repeat("x", i%2*9)}
			path := fmt.Sprintf("/scanned/%d", i)
			if i%3 == 0 {
				path = fmt.Sprintf("/v1/routes/scanned-%d", i)
			}
			if i%500 == 0 { // some of them with a sampled span
				sampled, span := b.request()
				serve(sampled, mux, "GET", path, headers, g)
				span.End()
				continue
			}
			serve(ctx, mux, "GET", path, headers, g)
		}
		if err := g.Close(context.Background()); err != nil { // with its keys
			t.Error(err)
		}
	}
	const requests = 50_000
	flood(0, requests/2)
	b.collect()
	before := heap()
	flood(requests/2, requests)
	found := b.collect()
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("%d bytes are kept of 25,000 keys and paths", grown)
	}

	const policies, outcomes, modes, routes = 2, 3, 2, 2 // outcomes: allowed, denied, would_deny; routes: one, and unmatched
	for name, m := range found {
		list := points(t, m)
		if len(list) > policies*outcomes*modes*routes {
			t.Errorf("%s has %d points", name, len(list))
		}
		for _, p := range list {
			secretless(t, name, fmt.Sprint(p.attributes.ToSlice()))
		}
	}
	if n := b.sum("headgate.decisions", "headgate.policy=key"); n != requests {
		t.Errorf("%d decisions of %d requests", n, requests)
	}
	if n := b.sum("headgate.tenant.refusals", "headgate.tenant=other", "headgate.mode=enforce"); n < requests/2-20 {
		t.Errorf("%d refusals of nobody in particular; each key was refused once", n)
	}
	for _, span := range b.spans.Ended() {
		text := fmt.Sprint(span.Name(), span.Status())
		text += attributes(span.Attributes())
		for _, e := range span.Events() {
			text += e.Name + attributes(e.Attributes)
		}
		secretless(t, "a span", text)
	}
}

func secretless(t *testing.T, what, text string) {
	t.Helper()
	for _, secret := range []string{"unique", "scanned", "192.0.2.", "s3cr3t"} {
		if strings.Contains(text, secret) {
			t.Errorf("%s says %q: %s", what, secret, text)
		}
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // what finalizers held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BR-168: telemetry that is missing, does nothing or has ended harms nobody, and many gates share a meter in peace.
func TestBR168_ProvidersOfAllKinds(t *testing.T) {
	var mu sync.Mutex
	var complaints []string
	complain := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		complaints = append(complaints, text)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { complain(err.Error()) }))
	otel.SetLogger(funcr.New(func(_, args string) { complain(args) }, funcr.Options{Verbosity: 1})) // warnings

	work := func(t *testing.T, o *telemetry.Observer, name string) {
		t.Helper()
		g := gate.Must(gate.New(gate.Config{Name: name, Observer: o, Limiters: []gate.Limiter{
			gate.RequestRate{Name: "p", Limit: limit.PerDay(2).WithBurst(2)},
		}}))
		broken := gate.Must(gate.New(gate.Config{Name: name, Observer: o, Logger: quiet, Store: failing{driver.ClassTimeout}, Limiters: []gate.Limiter{
			gate.RequestRate{Name: "q", Limit: limit.PerDay(2).WithBurst(2)},
		}}))
		for range 3 {
			g.Admit(context.Background(), gate.Call{Operation: "GET /x", Addr: "192.0.2.1"})
		}
		for range 20 {
			broken.Admit(context.Background(), gate.Call{Operation: "GET /x", Addr: "192.0.2.1"})
		}
		if err := g.SetMode(gate.All, gate.Off); err != nil {
			t.Error(err)
		}
		o.Observe(gate.Event{Kind: gate.Sampled, Context: context.Background()})
		o.Observe(gate.Event{Kind: gate.LeaseStarted, Context: context.Background(), Decisions: []gate.Decision{{Policy: "p"}}})
		o.Observe(gate.Event{Kind: gate.LeaseEnded, Context: context.Background(), Decisions: []gate.Decision{{Policy: "p"}}})
		_ = g.Close(context.Background())
		_ = broken.Close(context.Background())
		g.Admit(context.Background(), gate.Call{Operation: "GET /x", Addr: "192.0.2.1"}) // after Close
	}
	t.Run("nil", func(t *testing.T) {
		work(t, telemetry.NewObserver(telemetry.WithMeterProvider(nil), telemetry.WithTracerProvider(nil), telemetry.WithSpans(),
			telemetry.WithTenants(0), telemetry.WithTenantName(nil)), "g")
	})
	t.Run("none", func(t *testing.T) { work(t, telemetry.NewObserver(), "g") })
	t.Run("no-op", func(t *testing.T) {
		work(t, telemetry.NewObserver(telemetry.WithMeterProvider(noopmetric.NewMeterProvider()), telemetry.WithSpans(),
			telemetry.WithTracerProvider(nooptrace.NewTracerProvider()), telemetry.WithTenants(-1)), "g")
	})
	t.Run("shut down first", func(t *testing.T) {
		b := newBench(t, telemetry.WithSpans(), telemetry.WithTenants(5))
		ctx, span := b.request()
		if err := b.meters.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := b.tracers.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
		work(t, b.observer, "g")
		g := b.gate(gate.Config{Limiters: []gate.Limiter{gate.RequestRate{Name: "p", Limit: limit.PerDay(1)}}})
		g.Admit(ctx, gate.Call{Operation: "GET /x", Addr: "192.0.2.1"})
		span.End()
		if err := b.observer.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("a hundred gates, an observer each", func(t *testing.T) {
		b := newBench(t)
		for i := range 100 {
			work(t, telemetry.NewObserver(telemetry.WithMeterProvider(b.meters), telemetry.WithTenants(5)), fmt.Sprintf("g%d", i))
		}
		found := b.collect()
		for i := range 100 {
			if n := sum(t, found["headgate.decisions"], fmt.Sprintf("headgate.gate=g%d", i), "headgate.outcome=denied"); n != 1 {
				t.Fatalf("gate %d: %d refusals, want 1", i, n)
			}
			if n := sum(t, found["headgate.store.breaker"], fmt.Sprintf("headgate.gate=g%d", i), "headgate.state=open"); n != 1 {
				t.Fatalf("gate %d: its open breaker counts %d", i, n)
			}
		}
		if n := b.sum("headgate.tenant.refusals"); n != 100 {
			t.Errorf("%d refusals of tenants, want 100", n)
		}
	})
	t.Run("a hundred gates, one observer", func(t *testing.T) {
		b := newBench(t)
		for i := range 100 {
			work(t, b.observer, fmt.Sprintf("g%d", i))
		}
		found := b.collect()
		for i := range 100 {
			if n := sum(t, found["headgate.decisions"], fmt.Sprintf("headgate.gate=g%d", i), "headgate.outcome=denied"); n != 1 {
				t.Fatalf("gate %d: %d refusals, want 1", i, n)
			}
		}
	})
	if len(complaints) > 0 {
		t.Errorf("OpenTelemetry complained %d times: %q", len(complaints), complaints[:min(3, len(complaints))])
	}

	// The trap works: two instruments of one name that differ are complained about, and so is a meter that makes none.
	b := newBench(t)
	if _, err := b.meters.Meter(telemetry.ScopeName, metric.WithInstrumentationVersion(telemetry.Version)).Int64Gauge("headgate.decisions"); err != nil {
		t.Error(err)
	}
	if len(complaints) == 0 {
		t.Error("nobody complains of a gauge with the name of a counter")
	}
	complaints = nil
	o := telemetry.NewObserver(telemetry.WithMeterProvider(useless{}), telemetry.WithTenants(1))
	if want := 8; len(complaints) != want { // the instruments, and the callback
		t.Errorf("%d complaints about a meter that makes nothing, want %d: %q", len(complaints), want, complaints)
	}
	work(t, o, "g")
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

// useless is a provider whose meter makes nothing.
type useless struct{ noopmetric.MeterProvider }

type uselessMeter struct{ noopmetric.Meter }

var errUseless = errors.New("not made")

func (useless) Meter(string, ...metric.MeterOption) metric.Meter { return uselessMeter{} }

func (uselessMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, errUseless
}

func (uselessMeter) Int64UpDownCounter(string, ...metric.Int64UpDownCounterOption) (metric.Int64UpDownCounter, error) {
	return nil, errUseless
}

func (uselessMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return nil, errUseless
}

func (uselessMeter) Int64ObservableGauge(string, ...metric.Int64ObservableGaugeOption) (metric.Int64ObservableGauge, error) {
	return nil, errUseless
}

func (uselessMeter) Int64ObservableCounter(string, ...metric.Int64ObservableCounterOption) (metric.Int64ObservableCounter, error) {
	return nil, errUseless
}

func (uselessMeter) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	return nil, errUseless
}

// BR-168: after Close the meter asks nothing of the observer any more, and has all that was observed before.
func TestBR168_Close(t *testing.T) {
	b := newBench(t)
	for i := range 2 {
		o := telemetry.NewObserver(telemetry.WithMeterProvider(b.meters), telemetry.WithTenants(3))
		g := gate.Must(gate.New(gate.Config{Observer: o, Logger: quiet, Store: failing{driver.ClassTimeout}, Limiters: []gate.Limiter{
			gate.RequestRate{Name: "p", Limit: limit.PerDay(2).WithBurst(2)},
		}}))
		for range 10 {
			g.Admit(context.Background(), gate.Call{Operation: "GET /x", Addr: "192.0.2.1"})
		}
		if err := g.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if n := b.sum("headgate.store.breaker", "headgate.state=open"); n != 1 {
			t.Errorf("%d breakers are open, want 1", n)
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
		if n := len(points(t, b.collect()["headgate.store.breaker"])); n != 0 {
			t.Errorf("a closed observer reports %d points", n)
		}
		if n := b.sum("headgate.decisions", "headgate.outcome=fail_open"); n != int64(10*(i+1)) {
			t.Errorf("%d decisions", n)
		}
	}
}

// BR-163: what a limiter in Shadow would have refused is never among the refusals, and a switch shows at once.
func TestBR163_ModesToldApart(t *testing.T) {
	b := newBench(t, telemetry.WithTenants(5))
	g := b.gate(gate.Config{Name: "api", Clock: clock, Limiters: []gate.Limiter{
		gate.RequestRate{Name: "a", Mode: gate.Shadow, Limit: limit.PerDay(1).WithBurst(1)},
		gate.RequestRate{Name: "b", Limit: limit.PerDay(1).WithBurst(1)},
	}})
	ask := func() string {
		ctx, span := b.request()
		g.Admit(ctx, gate.Call{Operation: "GET /x", Addr: "192.0.2.1"})
		var text []string
		for _, e := range b.ended(span).Events() {
			for _, a := range e.Attributes {
				if a.Key == "headgate.policy" || a.Key == "headgate.outcome" || a.Key == "headgate.mode" {
					text = append(text, a.Value.AsString())
				}
			}
		}
		return strings.Join(text, " ")
	}
	count := func(policy, outcome, mode string) int64 {
		return b.sum("headgate.decisions", "headgate.policy="+policy, "headgate.outcome="+outcome, "headgate.mode="+mode)
	}
	ask()
	if got, want := ask(), "a would_deny shadow b denied enforce"; got != want {
		t.Errorf("the span says %q, want %q", got, want)
	}
	if count("a", "would_deny", "shadow") != 1 || count("b", "denied", "enforce") != 1 || b.sum("headgate.decisions", "headgate.outcome=denied") != 1 {
		t.Error("a request that both refuse is not one refusal of b and one would-be refusal of a")
	}
	if err := g.SetMode("a", gate.Enforce); err != nil {
		t.Fatal(err)
	}
	if got, want := ask(), "a denied enforce b denied enforce"; got != want {
		t.Errorf("after the switch the span says %q, want %q", got, want)
	}
	if count("a", "would_deny", "shadow") != 1 || count("a", "denied", "enforce") != 1 || count("b", "denied", "enforce") != 2 {
		t.Error("the switch does not show")
	}
	for mode, want := range map[string]int64{"shadow": 1, "enforce": 3} {
		if n := b.sum("headgate.tenant.refusals", "headgate.mode="+mode); n != want {
			t.Errorf("%s: %d refusals of tenants, want %d", mode, n, want)
		}
	}
	if err := g.SetMode("a", gate.Off); err != nil {
		t.Fatal(err)
	}
	if got, want := ask(), "b denied enforce"; got != want {
		t.Errorf("off, the span says %q, want %q", got, want)
	}
}

// Exemplars: a point of a metric leads to the trace of a request that is in it.
func TestExemplars(t *testing.T) {
	b := newBench(t)
	g := b.gate(gate.Config{Name: "api", Clock: clock, Limiters: []gate.Limiter{gate.RequestRate{Name: "p", Limit: limit.PerDay(1).WithBurst(1)}}})
	ask := func(ctx context.Context) {
		g.Admit(ctx, gate.Call{Operation: "GET /x", Addr: "192.0.2.1"})
	}
	ask(context.Background())
	ctx, span := b.request()
	ask(ctx)
	span.End()
	want := span.SpanContext().TraceID().String()
	found := b.collect()
	for _, name := range []string{"headgate.decisions", "headgate.cost", "headgate.decision.duration"} {
		for _, p := range points(t, found[name]) {
			if has(p.attributes, "headgate.outcome=denied") != (len(p.traces) == 1 && p.traces[0] == want) {
				t.Errorf("%s %v: traces %q; the refused request's is %s", name, p.attributes.ToSlice(), p.traces, want)
			}
		}
	}
	if data, ok := found["headgate.decisions"].Data.(metricdata.Sum[int64]); !ok || !data.IsMonotonic {
		t.Error("headgate.decisions is no counter")
	}
}
