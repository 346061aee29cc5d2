// Shared shows one limit over three processes on one Redis, and what users see when Redis is stopped in the middle:
//
//	go run ./examples/shared [-client rueidis]
//
// It starts a redis-server of its own, three copies of a small service, and a tenant that sends five times its limit. It
// ends by itself after 14 seconds, and with an error if a promise was broken.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/headgate-go/headgate/core/limit"

	"github.com/headgate-go/headgate/examples/internal/stores"
)

// The limit of the tenant, whichever process it reaches, and what it sends.
const (
	rate      = 20
	burst     = 40
	processes = 3
	offered   = 100 // requests a second, to the processes in turn
)

func tenantLimit() limit.Rule { return limit.PerSecond(rate).WithBurst(burst) }

func main() {
	client := flag.String("client", "goredis", "Redis client, "+stores.Clients)
	worker := flag.String("worker", "", "internal: serve with the Redis at this address")
	flag.Parse()
	run := func(ctx context.Context) error { return demo(ctx, *client) }
	if *worker != "" {
		run = func(ctx context.Context) error { return serve(ctx, *client, *worker) }
	}
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "shared:", err)
		os.Exit(1)
	}
}

// The acts of the demo, by the second at which they end.
const (
	healthyUntil = 5
	stoppedUntil = 9
	backUntil    = 14
)

func demo(ctx context.Context, client string) error {
	server, err := newRedis()
	if err != nil {
		return err
	}
	defer server.stop()
	if err := server.start(); err != nil {
		return err
	}
	fleet, err := startFleet(ctx, client, server.url())
	if err != nil {
		return err
	}
	defer fleet.stop()

	fmt.Printf("One tenant, %d requests a second with a burst of %d, over %d processes on one Redis (%s).\nIt sends %d a second, to each in turn.\n\n",
		rate, burst, processes, client, offered)
	fmt.Println(" second   let in by each process      in all   refused   failed open   other   slowest")
	var t tally
	for second := range backUntil {
		switch second {
		case healthyUntil:
			server.stop()
			fmt.Println("          --- Redis is stopped: every process lets pass, at once, and says so in its log")
		case stoppedUntil:
			if err := server.start(); err != nil {
				return err
			}
			fmt.Println("          --- Redis is back, empty: the limit holds again within seconds")
		}
		row, err := fleet.second(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("%7d   %-26s %7d %9d %13d %7d   %7s\n", second+1, fmt.Sprint(row.by), row.allowed, row.refused, row.open, row.other,
			row.slowest.Round(time.Millisecond))
		t.add(second, row)
	}
	return t.check()
}

// startable finds the program, or says how to get it.
func startable(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is not installed; on Debian: apt-get install redis-server, on macOS: brew install redis", name)
	}
	return path, nil
}
