// Tracing is the route-planning API with its limits in OpenTelemetry: on every request's span what was decided, and metrics of
// who is refused where by which limiter. One limiter is dark: it refuses nobody, and shows whom it would refuse.
//
// Without anything else, it sends itself a few requests and prints their spans and the metrics:
//
//	go run ./examples/tracing -print
//
// With Docker, a collector, Prometheus with the alerts, Grafana with the dashboard, Jaeger and Redis:
//
//	docker compose -f examples/tracing/compose.yaml up -d
//	go run ./examples/tracing -redis redis://localhost:6379
//	curl -i -H 'X-Api-Key: key-bumper' -d '{"stops":[{"lat":52.52,"lng":13.40},{"lat":48.14,"lng":11.58}]}' localhost:8080/v1/routes
//
// The dashboard is at http://localhost:3000/d/headgate, traces are at http://localhost:16686. Where signals go can be changed
// with the variables that every OpenTelemetry SDK knows, OTEL_EXPORTER_OTLP_ENDPOINT for example.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/telemetry"

	"github.com/headgate-go/headgate/examples/internal/stores"
	"github.com/headgate-go/headgate/examples/routesapi/planner"
)

func main() {
	show := flag.Bool("print", false, "send a few requests, print what became of them, and end")
	listen := flag.String("listen", ":8080", "address to listen on")
	redis := flag.String("redis", "", "keep the limits in Redis at this address, redis://...; empty: in this process")
	client := flag.String("client", "goredis", "Redis client, "+stores.Clients)
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := start(ctx, *show, *listen, *client, *redis); err != nil {
		stop()
		log.Fatal(err)
	}
}

func start(ctx context.Context, show bool, listen, client, redis string) error {
	if show {
		return demo(ctx, os.Stdout)
	}
	var store driver.Store
	if redis != "" {
		opened, end, err := stores.Open(ctx, client, redis)
		if err != nil {
			return err
		}
		defer end()
		store = opened
	}
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	s, err := overOTLP(ctx)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	log.Printf("listening on %s", ln.Addr())
	return serve(ctx, ln, store, s)
}

// serve answers requests on ln until ctx ends. Requests in flight are finished first, then the gates are closed, and what is
// left of the signals is sent.
func serve(ctx context.Context, ln net.Listener, store driver.Store, s *signals) error {
	observer := telemetry.NewObserver(
		telemetry.WithMeterProvider(s.meters), telemetry.WithTracerProvider(s.tracers),
		telemetry.WithSpans(), telemetry.WithTenants(10), telemetry.WithTenantName(tenantName))
	gates, err := newGates(store, observer)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	server := &http.Server{Handler: newHandler(gates, s), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	select {
	case err = <-served: // the listener failed
	case <-ctx.Done():
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), (planner.MaxSeconds+5)*time.Second)
	defer cancel()
	return errors.Join(err, server.Shutdown(patience), gates.Close(patience), s.shutdown(patience))
}
