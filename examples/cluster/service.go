package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/headgate-go/headgate/adapters/httpgate"
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
	"github.com/headgate-go/headgate/stores/goredisstore"
	"github.com/headgate-go/headgate/stores/rueidisstore"
)

// What every tenant may do, whichever service it reaches and wherever its state is.
const (
	rate  = 20 // requests a second
	burst = 20
	slots = 4 // requests in flight
)

// knowing is how often clients ask who has the slots. Left alone they ask when a call fails, which may be just before the new primary is
// there; and the next call after that may be the breaker's next probe, three seconds later.
const knowing = 500 * time.Millisecond

// service is a replica of an API whose limits are in the cluster.
type service struct {
	gate   *gate.Gate
	server *http.Server
	addr   string
	closes []func()
}

// openStore returns a store on the cluster through a client.
func openStore(client string, addrs []string) (driver.Store, func(), error) {
	switch client {
	case "goredis":
		redis.SetLogger(quiet{})
		rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ContextTimeoutEnabled: true,
			DialerRetries:              1, // by default a dead node is dialed five times, 100 ms apart, and others wait for that
			ClusterStateReloadInterval: knowing,
		})
		return goredisstore.New(rdb), func() { _ = rdb.Close() }, nil
	case "rueidis":
		conn, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addrs, DisableCache: true, AlwaysPipelining: true,
			ClusterOption: rueidis.ClusterOption{ShardsRefreshInterval: knowing},
		})
		if err != nil {
			return nil, nil, err
		}
		return rueidisstore.New(conn), conn.Close, nil
	}
	return nil, nil, fmt.Errorf("client %q is none of goredis, rueidis and both", client)
}

// quiet is the log of go-redis, which has a line for each connection that it could not make. The gate has one a second.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// startService serves through a gate of its own. Services whose gates have the same name share their limits.
func startService(client string, addrs []string, book *ledger) (*service, error) {
	store, closeClient, err := openStore(client, addrs)
	if err != nil {
		return nil, err
	}
	s := &service{closes: []func(){func() { _ = store.Close() }, closeClient}}
	key := gate.Header("X-Api-Key")
	s.gate, err = gate.New(gate.Config{
		Name:  "cluster",
		Store: store,
		Limiters: []gate.Limiter{
			gate.RequestRate{Name: "tenant", Key: key, Limit: limit.PerSecond(rate).WithBurst(burst)},
			gate.ConcurrentRequests{Name: "slots", Key: key, Max: slots, LeaseTime: 10 * time.Second},
		},
		// Six servers, two services and their load share this machine; the default is 50 ms.
		StoreTimeout: 500 * time.Millisecond,
		Logger:       slog.New(slog.NewTextHandler(indented{client}, nil)),
	})
	if err != nil {
		s.stop()
		return nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.stop()
		return nil, err
	}
	s.addr = ln.Addr().String()
	s.server = &http.Server{Handler: httpgate.Middleware(s.gate)(handler(book)), ReadHeaderTimeout: time.Second}
	go func() { _ = s.server.Serve(ln) }() // it ends when it is closed; if it ends before, requests fail and are counted
	return s, nil
}

// indented writes a gate's log lines under the table, shortened to fit it.
type indented struct{ client string }

func (w indented) Write(b []byte) (int, error) {
	line := strings.ReplaceAll(strings.TrimSpace(string(b)), `"`, "")
	if at := strings.Index(line, "headgate:"); at >= 0 {
		line = line[at:]
	}
	if len(line) > 110 {
		line = line[:107] + "..."
	}
	fmt.Printf("          %s: %s\n", w.client, line)
	return len(b), nil
}

// handler works for as long as it is told, and notes whether the limit let the request in or the store's failure did.
func handler(book *ledger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, _ := httpgate.Admission(r).Decision("tenant")
		open := d.Outcome == gate.OutcomeFailOpen
		end := book.enter(r.Header.Get("X-Api-Key"), open)
		defer end()
		work, _ := time.ParseDuration(r.Header.Get("X-Work")) // none: no work
		wait(r.Context(), work)
		if open {
			w.Header().Set("X-Outcome", d.Outcome.String()) // for the table; a client would not be told
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

// free says how many slots a tenant has left.
func (s *service) free(ctx context.Context, tenant string) (int, error) {
	d, err := s.gate.Usage(ctx, "slots", tenant)
	return d.Remaining, err
}

func (s *service) stop() {
	if s.server != nil {
		_ = s.server.Close()
	}
	if s.gate != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = s.gate.Close(ctx) // slots that are still held end with their leases
	}
	for _, f := range s.closes {
		f()
	}
}
