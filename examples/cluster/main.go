// Cluster shows limits in a Redis Cluster whose slots move and one of whose primaries dies, under load:
//
//	go run ./examples/cluster [-client goredis|rueidis]
//
// It starts a cluster of six redis-servers, and two replicas of a small service, one through each client unless told otherwise. It
// ends by itself after some 25 seconds, and with an error if a promise was broken.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
)

func main() {
	client := flag.String("client", "both", "Redis client of the services: goredis, rueidis, or both (one each)")
	flag.Parse()
	// Also after Ctrl-C nothing is left running.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := demo(ctx, *client, acts{healthy: 4 * time.Second, half: time.Second, moved: 2 * time.Second, back: 8 * time.Second}); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// acts are how long the parts of the demo last.
type acts struct {
	healthy time.Duration // nothing happens
	half    time.Duration // each slot that moves is half here, half there
	moved   time.Duration // after the last of them
	back    time.Duration // after the new primary is there
}

func demo(ctx context.Context, client string, a acts) error {
	clients := []string{client, client}
	if client == "both" {
		clients = []string{"goredis", "rueidis"}
	}
	fmt.Println("Starting three primaries and three replicas ...")
	c, err := newCluster(ctx)
	if err != nil {
		return err
	}
	defer c.stop()
	s := &stage{cluster: c, book: newLedger(), acts: a, events: make(chan string)}
	for _, client := range clients {
		service, err := startService(client, c.addrs(), s.book)
		if err != nil {
			return err
		}
		defer service.stop()
		s.services = append(s.services, service)
	}
	if s.tenants, err = tenants(ctx, c, s.services[0].gate); err != nil {
		return err
	}
	fmt.Printf("Each of %d tenants may send %d requests a second, with a burst of %d, and have %d in flight. On each primary are %d.\n"+
		"%s are hot: they send %d a second. %s is slow: it wants six in flight. The others keep within their limits.\n"+
		"Two services (%s) take the requests in turn.\n\n", len(s.tenants), rate, burst, slots, eachHas,
		names(s.tenants, hot), 3*rate, names(s.tenants, slow), strings.Join(clients, ", "))
	r, err := s.play(ctx)
	if err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return err
	}
	fmt.Print(`
All state of a tenant is in one hash slot, so a request is one script call on one node, whatever becomes of the others. A slot
that moves takes its keys along, and clients follow. When a primary dies its tenants are let in and counted as failed
open, until its replica has taken over. The replica may not have heard of the last moments: what was admitted in them may be
admitted once more, at most one burst (and as many slots) per tenant.
`)
	return nil
}

// names lists the tenants of a kind.
func names(list []*tenant, k kind) string {
	var of []string
	for _, t := range list {
		if t.kind == k {
			of = append(of, t.name)
		}
	}
	return strings.Join(of, ", ")
}
