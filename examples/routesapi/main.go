// Routesapi is a route-planning API with limits, on a framework of your choice:
//
//	go run ./examples/routesapi -framework gin -listen :8080
//	curl -i -H 'X-Api-Key: key-acme' -d '{"stops":[{"lat":52.52,"lng":13.40},{"lat":48.14,"lng":11.58}]}' localhost:8080/v1/routes
//
// With "seconds":20 behind the stops it searches on for as long; acme may have four such solves at a time.
//
// With -redis redis://localhost:6379 -client goredis|rueidis its limits are shared by all processes that say the same. The
// folder demo shows it under load.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/headgate-go/headgate/core/gate"

	"github.com/headgate-go/headgate/examples/internal/stores"
	"github.com/headgate-go/headgate/examples/routesapi/limits"
	"github.com/headgate-go/headgate/examples/routesapi/mount"
	"github.com/headgate-go/headgate/examples/routesapi/planner"
	"github.com/headgate-go/headgate/examples/routesapi/service"
	"github.com/headgate-go/headgate/examples/routesapi/tenants"
)

func main() {
	framework := flag.String("framework", "gin", "one of "+strings.Join(mount.Frameworks(), ", "))
	listen := flag.String("listen", ":8080", "address to listen on")
	proxied := flag.Bool("proxied", false, "believe X-Forwarded-For from private networks: we are behind our own load balancer")
	redis := flag.String("redis", "", "keep the limits in Redis at this address, redis://...; empty: in this process")
	client := flag.String("client", "goredis", "Redis client, "+stores.Clients)
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ln, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	var c limits.Config
	if *proxied {
		c.Trusted = gate.PrivateNetworks()
	}
	if *redis != "" {
		store, end, err := stores.Open(ctx, *client, *redis)
		if err != nil {
			log.Fatal(err)
		}
		defer end()
		c.Store = store
	}
	log.Printf("listening on %s (%s)", ln.Addr(), *framework)
	if err := run(ctx, ln, *framework, c); err != nil {
		log.Print(err) // not Fatal: the store is still to be closed
	}
}

// run serves the API on ln until ctx ends. Requests in flight are finished first, then the gates are closed.
func run(ctx context.Context, ln net.Listener, framework string, c limits.Config) error {
	table := tenants.Sample()
	gates, err := limits.New(table, c)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	server, err := mount.On(framework, service.New(table), gates)
	if err != nil {
		return errors.Join(err, gates.Close(ctx), ln.Close())
	}

	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	select {
	case err = <-served: // the listener failed
	case <-ctx.Done():
	}
	longest := (planner.MaxSeconds + 5) * time.Second
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest)
	defer cancel()
	return errors.Join(err, server.Shutdown(patience), gates.Close(patience))
}
