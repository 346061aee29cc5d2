package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/stores/redisscript"
)

// kind is how a tenant behaves.
type kind struct {
	every time.Duration // between two requests
	work  time.Duration // that each of them takes
}

// Hot tenants send three times their rate. A slow one keeps within it but holds its slots: of the six seconds of work that it
// asks for in a second, four may be in flight. The others send less than they may.
var (
	hot    = kind{time.Second / (3 * rate), 20 * time.Millisecond}
	slow   = kind{time.Second / 6, time.Second}
	modest = kind{time.Second / 8, 20 * time.Millisecond}
)

// tenant is who sends, and where its state is.
type tenant struct {
	name string
	kind kind
	slot int // the hash slot of all its state
}

// eachHas is how many tenants have their state on each primary.
const eachHas = 4

// tenants returns as many on each primary, the first of them hot, and of the first primary one more slow.
func tenants(ctx context.Context, c *cluster, g *gate.Gate) ([]*tenant, error) {
	var list []*tenant
	on := map[int]int{} // how many of a node's there are
	for i := 1; len(list) < primaries*eachHas; i++ {
		t := &tenant{name: fmt.Sprintf("tenant-%d", i), kind: modest}
		t.slot = redisscript.Slot(g.StoreKey("tenant", t.name))
		owner, err := c.owner(ctx, t.slot)
		if err != nil {
			return nil, err
		}
		n := on[owner]
		switch on[owner]++; {
		case n == eachHas:
			on[owner]--
			continue
		case n == 0:
			t.kind = hot
		case n == 1 && owner == 0:
			t.kind = slow
		}
		list = append(list, t)
	}
	return list, nil
}

// load sends every tenant's requests to the services in turn.
type load struct {
	addrs []string
	book  *ledger
	http  *http.Client
}

func newLoad(services []*service, book *ledger) *load {
	l := &load{book: book, http: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 200}}}
	for _, s := range services {
		l.addrs = append(l.addrs, s.addr)
	}
	return l
}

// run sends until ctx ends, and returns when all is answered.
func (l *load) run(ctx context.Context, list []*tenant) {
	var wg sync.WaitGroup
	for _, t := range list {
		wg.Go(func() {
			ticker := time.NewTicker(t.kind.every)
			defer ticker.Stop()
			for i := 0; ; i++ {
				wg.Go(func() { l.send(context.WithoutCancel(ctx), t, l.addrs[i%len(l.addrs)]) })
				select {
				case <-ticker.C:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	wg.Wait()
	l.http.CloseIdleConnections()
}

// send sends a request and notes what became of it.
func (l *load) send(ctx context.Context, t *tenant, addr string) {
	start := time.Now()
	status, outcome, err := l.ask(ctx, t, addr)
	l.book.answered(t.name, status, outcome, time.Since(start)-t.kind.work, err)
}

func (l *load) ask(ctx context.Context, t *tenant, addr string) (status int, outcome string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/", nil)
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("X-Api-Key", t.name)
	req.Header.Set("X-Work", t.kind.work.String())
	resp, err := l.http.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Header.Get("X-Outcome"), err
}
