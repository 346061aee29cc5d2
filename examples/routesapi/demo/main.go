// Demo shows the limits of the route-planning API on a bad morning: it starts the API on a free loopback port, sends it a
// well-behaved tenant, a retry loop without backoff, a nightly batch, one who has many slow solves run at once, a poller and
// somebody who invents API keys, tells what became of each, and checks that it is what the limits say. It ends by itself,
// with exit status 1 if a check fails.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/headgate-go/headgate/core/gate"

	"github.com/headgate-go/headgate/examples/routesapi/limits"
	"github.com/headgate-go/headgate/examples/routesapi/mount"
	"github.com/headgate-go/headgate/examples/routesapi/service"
	"github.com/headgate-go/headgate/examples/routesapi/tenants"
)

// shortest is how long it takes until everybody who will be refused has been.
const shortest = 5 * time.Second

func main() {
	framework := flag.String("framework", "gin", "one of "+strings.Join(mount.Frameworks(), ", "))
	morning := flag.Duration("for", 12*time.Second, "how long the clients send, at least "+shortest.String())
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := demo(ctx, os.Stdout, *framework, *morning); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func demo(ctx context.Context, out io.Writer, framework string, morning time.Duration) (err error) {
	if morning < shortest {
		return fmt.Errorf("-for %v is too short; the shortest is %v", morning, shortest)
	}
	base, end, err := start(framework)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()

	all := clients()
	opening(out, framework, len(all), morning)
	results := make([]*result, len(all))
	begin := time.Now()
	everybody(len(all), func(i int) {
		callers := make([]*caller, max(1, all[i].connections))
		everybody(len(callers), func(n int) {
			callers[n] = newCaller(base, all[i], begin)
			callers[n].send(ctx, morning)
		})
		results[i] = together(callers) // what is reported is the morning, without what follows
		switch limit := all[i].limit; {
		case limit == nil:
		case limit.slots != nil:
			left, most, err := callers[0].afterwards()
			if err != nil {
				results[i].wrong = append(results[i].wrong, err.Error())
			}
			results[i].left, results[i].most = left, most
		default:
			results[i].waited, results[i].admitted = callers[0].waitAsTold(ctx)
		}
		for _, c := range callers {
			c.close()
		}
	})
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	traffic(out, results)
	timing(out, results)
	holding(out, results)
	refusal(out, results)
	return verdict(out, check(results))
}

// start serves the API on a free loopback port; end stops it. The demo plays the load balancer in front, so loopback is
// trusted to say whom a request comes from.
func start(framework string) (base string, end func() error, err error) {
	table := tenants.Sample()
	gates, err := limits.New(table, limits.Config{Trusted: gate.Prefixes("127.0.0.1")})
	if err != nil {
		return "", nil, err
	}
	server, err := mount.On(framework, service.New(table), gates)
	if err != nil {
		return "", nil, errors.Join(err, gates.Close(context.Background()))
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, errors.Join(err, gates.Close(context.Background()))
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	return "http://" + ln.Addr().String(), func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return errors.Join(server.Shutdown(ctx), <-served, gates.Close(ctx))
	}, nil
}

// everybody runs one goroutine for each of so many and waits for all.
func everybody(count int, run func(i int)) {
	var wg sync.WaitGroup
	for i := range count {
		wg.Go(func() { run(i) })
	}
	wg.Wait()
}
