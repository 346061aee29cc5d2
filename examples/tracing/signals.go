package main

import (
	"context"
	"errors"
	"os"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// signals is the OpenTelemetry SDK of this program.
type signals struct {
	tracers *sdktrace.TracerProvider
	meters  *sdkmetric.MeterProvider
}

// endpoint is the variable by which every SDK is told where to send.
const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"

// overOTLP sends everything to a collector, http://localhost:4318 unless the environment says otherwise.
func overOTLP(ctx context.Context) (*signals, error) {
	if _, told := os.LookupEnv(endpoint); !told {
		if err := os.Setenv(endpoint, "http://localhost:4318"); err != nil { // the exporters' own default is https
			return nil, err
		}
	}
	spans, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, err
	}
	metrics, err := otlpmetrichttp.New(ctx)
	if err != nil {
		return nil, errors.Join(err, spans.Shutdown(ctx))
	}
	who, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "routesapi")),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		return nil, errors.Join(err, spans.Shutdown(ctx), metrics.Shutdown(ctx))
	}
	otel.SetTextMapPropagator(propagation.TraceContext{}) // whoever calls us is part of the trace
	return &signals{
		tracers: sdktrace.NewTracerProvider(sdktrace.WithBatcher(spans), sdktrace.WithResource(who)),
		meters: sdkmetric.NewMeterProvider(sdkmetric.WithResource(who),
			sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metrics, sdkmetric.WithInterval(10*time.Second)))),
	}, nil
}

// shutdown sends what is left.
func (s *signals) shutdown(ctx context.Context) error {
	return errors.Join(s.tracers.Shutdown(ctx), s.meters.Shutdown(ctx))
}
