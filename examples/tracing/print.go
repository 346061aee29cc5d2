package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// onTerminal prints spans as they end; metrics are read with printMetrics.
func onTerminal(out io.Writer) (*signals, sdkmetric.Reader) {
	reader := sdkmetric.NewManualReader()
	return &signals{
		tracers: sdktrace.NewTracerProvider(sdktrace.WithSyncer(printer{out})),
		meters:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
	}, reader
}

// printer is an exporter that writes a line for each span and one for each of its events.
type printer struct{ out io.Writer }

// ExportSpans prints; an error of the terminal ends nothing.
func (p printer) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	for _, s := range spans {
		_, _ = fmt.Fprintf(p.out, "span %s, %v, status %v: %s\n", s.Name(), s.EndTime().Sub(s.StartTime()).Round(time.Microsecond),
			s.Status().Code, text(s.Attributes()))
		for _, e := range s.Events() {
			_, _ = fmt.Fprintf(p.out, "  event %s: %s\n", e.Name, text(e.Attributes))
		}
	}
	return nil
}

// Shutdown does nothing: the terminal stays.
func (printer) Shutdown(context.Context) error { return nil }

// text writes the attributes that are about limits and the answer.
func text(list []attribute.KeyValue) string {
	var parts []string
	for _, a := range list {
		name := string(a.Key)
		if strings.HasPrefix(name, "headgate.") || name == "http.route" || name == "http.response.status_code" || name == "error.type" {
			parts = append(parts, name+"="+a.Value.String())
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// printMetrics collects once and writes a line for each time series.
func printMetrics(ctx context.Context, out io.Writer, reader sdkmetric.Reader) error {
	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		return err
	}
	var lines []string
	line := func(name string, set attribute.Set, value string) {
		lines = append(lines, fmt.Sprintf("metric %s{%s} %s", name, text(set.ToSlice()), value))
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if !strings.HasPrefix(m.Name, "headgate.") {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					line(m.Name, p.Attributes, fmt.Sprint(p.Value))
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					line(m.Name, p.Attributes, fmt.Sprint(p.Value))
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					mean := time.Duration(p.Sum / float64(p.Count) * float64(time.Second))
					line(m.Name, p.Attributes, fmt.Sprintf("%d times, %v on average", p.Count, mean.Round(time.Microsecond)))
				}
			}
		}
	}
	slices.SortFunc(lines, cmp.Compare[string])
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}
