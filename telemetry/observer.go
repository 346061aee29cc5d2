package telemetry

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"

	"github.com/headgate-go/headgate/core/gate"
)

// Observer tells OpenTelemetry what gates decide. Make it with [NewObserver]; one serves any number of gates. Its methods
// are safe for concurrent use.
type Observer struct {
	ledger  ledger
	tenants *tenants     // nil without WithTenants
	tracer  trace.Tracer // nil without WithSpans
	name    func(gate.Request, gate.Decision) string

	registration metric.Registration

	mu       sync.Mutex
	breakers map[string]string // state by gate, where it changed once
}

var _ gate.Observer = (*Observer)(nil)

// NewObserver makes an observer. Without options it records metrics with the global meter provider and writes to the
// request's own span. It never fails: an instrument that the meter refuses is reported to OpenTelemetry's error handler, and
// is missing. Any number of observers may use one meter.
func NewObserver(opts ...Option) *Observer {
	c := newConfig(opts)
	m := meter{c.meters.Meter(ScopeName, metric.WithInstrumentationVersion(Version))}
	o := &Observer{name: c.name, breakers: map[string]string{}}
	o.ledger = ledger{
		decisions: m.counter(decisions), cost: m.counter(cost), active: m.upDownCounter(leasesActive),
		decisionDuration: m.histogram(decisionDuration), leaseDuration: m.histogram(leaseDuration),
		costs: map[costKey]*count{},
	}
	o.ledger.places.Store(&map[placeKey]*place{})
	if c.spans {
		o.tracer = c.tracers.Tracer(ScopeName, trace.WithInstrumentationVersion(Version))
	}
	breaker := m.gauge(storeBreaker)
	observed := []metric.Observable{breaker}
	var refusals metric.Int64ObservableCounter
	if c.tenants > 0 {
		o.tenants = newTenants(c.tenants)
		refusals = m.observableCounter(tenantRefusals)
		observed = append(observed, refusals)
	}
	o.registration = m.callback(func(_ context.Context, to metric.Observer) error {
		o.ledger.flush()
		o.observeBreakers(breaker, to)
		if o.tenants != nil {
			o.tenants.observe(refusals, to)
		}
		return nil
	}, observed)
	return o
}

// Close hands over what was not collected yet, and lets the meter forget the observer. Gates that are closed with the
// program need it not; it is for those that come and go. Events after it are recorded late, or not at all.
func (o *Observer) Close() error {
	o.ledger.flush()
	return o.registration.Unregister()
}

// Observe records an event. Gates call it.
func (o *Observer) Observe(e gate.Event) {
	switch e.Kind {
	case gate.Decided:
		o.decided(&e)
	case gate.LeaseStarted:
		for i := range e.Decisions {
			o.ledger.lease(e.Decisions[i].Policy).add(e.Context, sampled(e.Context), 1)
		}
	case gate.LeaseEnded:
		sampled := sampled(e.Context)
		for i := range e.Decisions {
			policy := e.Decisions[i].Policy
			o.ledger.lease(policy).add(e.Context, sampled, -1)
			o.ledger.end(policy, e.End).record(e.Context, sampled, e.Duration.Seconds())
		}
	case gate.BreakerChanged:
		o.mu.Lock()
		o.breakers[e.Gate] = e.Breaker
		o.mu.Unlock()
	}
}

func (o *Observer) decided(e *gate.Event) {
	span := trace.SpanFromContext(e.Context)
	sampled := span.SpanContext().IsSampled()
	place := o.ledger.place(e.Gate, e.Route)
	outcome, class := gate.OutcomeSkipped, class(0)
	for i := range e.Decisions {
		d := &e.Decisions[i]
		failure := classOf(d.Err)
		cell := o.ledger.cell(place, d, failure)
		cell.decisions.add(e.Context, sampled, 1)
		if d.Cost > 0 && asksTokens(d) && !e.InnerRefused {
			cell.cost.add(e.Context, sampled, int64(d.Cost))
		}
		if o.tenants != nil && ownLimit(d) {
			o.tenants.refused(o.tenant(e, d), d.Mode, e.Start)
		}
		if rank(d.Outcome) > rank(outcome) {
			outcome = d.Outcome
		}
		class = max(class, failure)
	}
	o.ledger.duration(e.Store, outcome, class).record(e.Context, sampled, e.Duration.Seconds())
	if span.IsRecording() {
		o.trace(span, e, outcome)
	}
	if o.tracer != nil && sampled && e.StoreDuration > 0 {
		o.take(e, outcome, class)
	}
}

func (o *Observer) observeBreakers(gauge metric.Int64Observable, to metric.Observer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, current := range o.breakers {
		for _, state := range breakerStates {
			var is int64
			if state == current {
				is = 1
			}
			to.ObserveInt64(gauge, is, metric.WithAttributes(keyGate.String(name), keyState.String(state)))
		}
	}
}

func sampled(ctx context.Context) bool { return trace.SpanContextFromContext(ctx).IsSampled() }

// meter makes instruments as the table says, and stand-ins for those that cannot be made.
type meter struct{ metric.Meter }

func (m meter) counter(i instrument) metric.Int64Counter {
	made, err := m.Int64Counter(i.name, metric.WithUnit(i.unit), metric.WithDescription(i.about))
	return orElse(made, err, metric.Int64Counter(noop.Int64Counter{}))
}

func (m meter) upDownCounter(i instrument) metric.Int64UpDownCounter {
	made, err := m.Int64UpDownCounter(i.name, metric.WithUnit(i.unit), metric.WithDescription(i.about))
	return orElse(made, err, metric.Int64UpDownCounter(noop.Int64UpDownCounter{}))
}

func (m meter) histogram(i instrument) metric.Float64Histogram {
	made, err := m.Float64Histogram(i.name, metric.WithUnit(i.unit), metric.WithDescription(i.about),
		metric.WithExplicitBucketBoundaries(i.buckets...))
	return orElse(made, err, metric.Float64Histogram(noop.Float64Histogram{}))
}

func (m meter) gauge(i instrument) metric.Int64ObservableGauge {
	made, err := m.Int64ObservableGauge(i.name, metric.WithUnit(i.unit), metric.WithDescription(i.about))
	return orElse(made, err, metric.Int64ObservableGauge(noop.Int64ObservableGauge{}))
}

func (m meter) observableCounter(i instrument) metric.Int64ObservableCounter {
	made, err := m.Int64ObservableCounter(i.name, metric.WithUnit(i.unit), metric.WithDescription(i.about))
	return orElse(made, err, metric.Int64ObservableCounter(noop.Int64ObservableCounter{}))
}

func (m meter) callback(f metric.Callback, observed []metric.Observable) metric.Registration {
	made, err := m.RegisterCallback(f, observed...)
	return orElse(made, err, metric.Registration(noop.Registration{}))
}

func orElse[T any](made T, err error, none T) T {
	if err != nil {
		otel.Handle(errors.Join(errors.New("headgate telemetry"), err))
		return none
	}
	return made
}
