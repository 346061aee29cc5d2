package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/memory"
)

// demo starts the API on a free loopback port and prints the spans of a few requests, then the metrics. Its store can be
// told to fail.
func demo(ctx context.Context, out io.Writer) (err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s, reader := onTerminal(out)
	store := &fragile{Store: memory.New()}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, ln, store, s) }()

	say := func(text string) { _, _ = fmt.Fprintf(out, "\n# %s\n", text) }
	send := func(key string, stops int) {
		if err == nil {
			err = planRoute(ctx, "http://"+ln.Addr().String(), key, stops)
		}
	}
	say("acme, on the plan Team, plans two routes of three stops.")
	send("key-acme", 3)
	send("key-acme", 3)
	say("bumper, on the plan Free, may have 25 stops at once, and wants 20 three times. The dark limit would allow 12.")
	for range 3 {
		send("key-bumper", 20)
	}
	say("somebody without a key.")
	send("nonsense", 3)
	say("The store fails. acme's requests pass, and it is seen.")
	store.down.Store(true)
	for range 2 {
		send("key-acme", 3)
	}
	store.down.Store(false)
	say("All of it as metrics:")
	err = errors.Join(err, printMetrics(ctx, out, reader))
	stop()
	return errors.Join(err, <-ended)
}

// planRoute asks for a route of some stops. Whatever the answer is, it is in the span.
func planRoute(ctx context.Context, base, key string, stops int) error {
	list := make([]string, stops)
	for i := range list {
		list[i] = fmt.Sprintf(`{"lat":%d,"lng":%d}`, 40+i, i)
	}
	body := strings.NewReader(`{"stops":[` + strings.Join(list, ",") + `]}`)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/routes", body)
	if err != nil {
		return err
	}
	r.Header.Set("X-Api-Key", key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// fragile is a store that fails when it is told to.
type fragile struct {
	driver.Store
	down atomic.Bool
}

// Decide fails while the store is down.
func (s *fragile) Decide(ctx context.Context, now time.Time, batch []driver.Entry) error {
	if s.down.Load() {
		return &driver.Error{Class: driver.ClassTimeout, Err: errors.New("the demo says so")}
	}
	return s.Store.Decide(ctx, now, batch)
}
