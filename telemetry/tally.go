package telemetry

import (
	"context"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"
)

// A measurement through an SDK costs a few hundred nanoseconds, most of it for looking up what never changes: its
// attributes. So measurements of requests whose span is not sampled are held back here, for nanoseconds each, and handed
// over when somebody collects, in the same collection. Those of sampled requests go straight through with the request's
// context, for their exemplars.

// How much is held back where nobody collects: then measurements are late, not lost.
const (
	mostHeld   = 1024
	mostValues = 8 * mostHeld
)

// count is one attribute set of a counter.
type count struct {
	to         adder
	attributes []metric.AddOption
	held       atomic.Int64
}

func (c *count) add(ctx context.Context, sampled bool, n int64) {
	if sampled {
		c.to.Add(ctx, n, c.attributes...)
		return
	}
	if held := c.held.Add(n); held >= mostHeld || held <= -mostHeld {
		c.flush()
	}
}

func (c *count) flush() {
	if n := c.held.Swap(0); n != 0 {
		c.to.Add(context.Background(), n, c.attributes...)
	}
}

// values is one attribute set of a histogram.
type values struct {
	to         metric.Float64Histogram
	attributes []metric.RecordOption

	mu      sync.Mutex
	held    []float64
	sending sync.Mutex // held while values are handed over, so that a collection waits for those on their way
	spare   []float64  // guarded by sending
}

func (v *values) record(ctx context.Context, sampled bool, x float64) {
	if sampled {
		v.to.Record(ctx, x, v.attributes...)
		return
	}
	v.mu.Lock()
	v.held = append(v.held, x)
	n := len(v.held)
	v.mu.Unlock()
	switch {
	case n == mostHeld:
		go v.flush() // not on the request's path
	case n >= mostValues: // that has not come to run
		v.flush()
	}
}

func (v *values) flush() {
	v.sending.Lock()
	defer v.sending.Unlock()
	v.mu.Lock()
	full := v.held
	v.held = v.spare[:0]
	v.mu.Unlock()
	for _, x := range full {
		v.to.Record(context.Background(), x, v.attributes...)
	}
	v.spare = full
}
