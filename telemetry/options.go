package telemetry

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/headgate-go/headgate/core/gate"
)

// Option changes what [NewObserver] makes.
type Option func(*config)

type config struct {
	meters  metric.MeterProvider
	tracers trace.TracerProvider
	spans   bool
	tenants int // how many are named; 0: there is no instrument for them
	name    func(gate.Request, gate.Decision) string
}

// WithMeterProvider says where metrics go. Nil, and the default: the global provider, also one that is set later.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(c *config) {
		if p != nil {
			c.meters = p
		}
	}
}

// WithTracerProvider says who makes the spans of [WithSpans]. Nil, and the default: the global provider, also one that is
// set later. What is written to the request's own span needs none.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(c *config) {
		if p != nil {
			c.tracers = p
		}
	}
}

// WithSpans adds a span, headgate.take, for the time that a decision spent in the store, below the request's span and only
// where that is sampled.
func WithSpans() Option {
	return func(c *config) { c.spans = true }
}

// WithTenants counts refusals by tenant, in headgate.tenant.refusals: the k tenants with most refusals by name, everybody
// else together. 0 and below: 20. What is kept does not grow with the number of tenants: 50 counters of at most 300 bytes
// each for every tenant to be named, once for limiters in force and once for those in Shadow; 600 KB for 20.
func WithTenants(k int) Option {
	return func(c *config) {
		if c.tenants = k; k <= 0 {
			c.tenants = defaultTenants
		}
	}
}

// WithTenantName says how [WithTenants] and span events name a tenant, where the digest of its key is not telling enough:
//
//	telemetry.WithTenantName(func(r gate.Request, _ gate.Decision) string {
//		tenant, _ := r.Value("tenant").(string)
//		return tenant
//	})
//
// The name goes to everybody who reads metrics and traces, so it must not be a secret or personal. Keys of one name count as
// one tenant. An empty name means the digest; of a long one the first 64 bytes are used. It is called for each refusal, from
// many goroutines at a time, and must not keep the request.
func WithTenantName(name func(r gate.Request, d gate.Decision) string) Option {
	return func(c *config) { c.name = name }
}

func newConfig(opts []Option) config {
	c := config{meters: otel.GetMeterProvider(), tracers: otel.GetTracerProvider()}
	for _, opt := range opts {
		opt(&c)
	}
	return c
}
