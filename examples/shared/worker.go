package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/headgate-go/headgate/adapters/httpgate"
	"github.com/headgate-go/headgate/core/gate"

	"github.com/headgate-go/headgate/examples/internal/stores"
)

// serve is one of the processes: a service whose limits are in Redis. It writes its address, and serves until it is killed.
func serve(ctx context.Context, client, redis string) error {
	store, end, err := stores.Open(ctx, client, redis)
	if err != nil {
		return err
	}
	defer end()
	g, err := gate.New(gate.Config{
		Name:     "shared",
		Store:    store,
		Limiters: []gate.Limiter{gate.RequestRate{Name: "tenant", Key: gate.Header("X-Api-Key"), Limit: tenantLimit()}},
	})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		if d, _ := httpgate.Admission(r).Decision("tenant"); d.Outcome == gate.OutcomeFailOpen {
			w.Header().Set("X-Outcome", d.Outcome.String()) // for the table; a client would not be told
		}
		fmt.Fprintln(w, "hello")
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, ln.Addr())
	return http.Serve(ln, httpgate.Middleware(g)(mux))
}
