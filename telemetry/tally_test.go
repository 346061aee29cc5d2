package telemetry

import (
	"context"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// A burst that is faster than what is handed over waits for it, keeps no more than its bound, and loses nothing.
func TestValuesAreBounded(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	m := meter{sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")}
	l := &ledger{}
	v := l.newValues(m.histogram(leaseDuration))
	v.sending.Lock() // somebody is slow
	for range mostValues - 1 {
		v.record(context.Background(), false, 1)
	}
	done := make(chan struct{})
	go func() {
		v.record(context.Background(), false, 1)
		close(done)
	}()
	select {
	case <-done:
		t.Error("the value beyond the bound did not wait")
	default:
	}
	v.sending.Unlock()
	<-done
	l.flush()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	if n := all.ScopeMetrics[0].Metrics[0].Data.(metricdata.Histogram[float64]).DataPoints[0].Count; n != mostValues {
		t.Errorf("%d values of %d", n, mostValues)
	}
	if cap(v.held) > 2*mostValues || cap(v.spare) > 2*mostValues {
		t.Errorf("room for %d and %d values is kept", cap(v.held), cap(v.spare))
	}
}

// Where nobody collects, counts are handed over now and then, in both directions.
func TestCountsAreBounded(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	m := meter{sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")}
	c := (&ledger{}).newCount(m.upDownCounter(leasesActive))
	for _, n := range []int64{1, -1} {
		for range 10*mostHeld + 1 {
			c.add(context.Background(), false, n)
		}
		if held := c.held.Load(); held >= mostHeld || held <= -mostHeld {
			t.Errorf("%d are held back", held)
		}
	}
	c.flush()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	if n := all.ScopeMetrics[0].Metrics[0].Data.(metricdata.Sum[int64]).DataPoints[0].Value; n != 0 {
		t.Errorf("%d are left of as many taken as given back", n)
	}
}
