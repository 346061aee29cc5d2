package faulttest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/adapters/httpgate"
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// service is an HTTP service behind a gate over the store, and a client of it.
type service struct {
	*scene
	gate   *gate.Gate
	store  driver.Store
	watch  *watcher
	logs   *logs
	base   string
	client *http.Client
	began  time.Time

	asked   atomic.Int64 // requests that were sent and answered
	decided atomic.Int64 // of them, with rate-limit fields
	passed  atomic.Int64 // of those, with status 200
	handled atomic.Int64 // runs of the handler
}

// tenants is a limiter by tenant. Its rule gives no token back within a test.
func tenants(burst int) gate.RequestRate {
	return gate.RequestRate{Name: "tenant", Limit: limit.PerDay(1).WithBurst(burst), Key: gate.Header(tenantHeader)}
}

// plenty is a burst that no test uses up.
const plenty = 1_000_000

// steady is a deadline that no machine misses: for cases about something else.
const steady = patience

// serve starts a service on a store of its own at addr.
func (s *scene) serve(addr string, c gate.Config) *service { return s.serveOn([]string{addr}, c) }

// serveOn is serve where the store has several addresses.
func (s *scene) serveOn(addrs []string, c gate.Config) *service {
	sv := &service{scene: s, watch: &watcher{}, logs: &logs{}, began: time.Now()}
	s.inService(func() {
		sv.store = s.newStore(s.tb, addrs)
		s.tb.Cleanup(func() { _ = sv.store.Close() })
		c.Store, c.Logger, c.Observer = sv.store, slog.New(sv.logs), sv.watch
		g, err := gate.New(c)
		if err != nil {
			s.fatalf("the case's gate: %v", err)
		}
		sv.gate = g
		s.tb.Cleanup(func() { _ = g.Close(context.Background()) })
		sv.listen()
	})
	return sv
}

func (sv *service) listen() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		sv.fatalf("listen: %v", err)
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sv.handled.Add(1)
		_, _ = io.WriteString(w, "served")
	})
	server := &http.Server{Handler: httpgate.Middleware(sv.gate)(handler), ErrorLog: slog.NewLogLogger(sv.logs, slog.LevelError)}
	go func() { _ = server.Serve(l) }()
	sv.base = "http://" + l.Addr().String()
	sv.client = &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 256, MaxConnsPerHost: 512}}
	sv.tb.Cleanup(func() {
		_ = server.Close()
		sv.client.CloseIdleConnections()
	})
}

// reply is what a client of the service saw.
type reply struct {
	status int
	header http.Header
	body   string
	took   time.Duration
	err    error
}

// decided says whether the reply tells a limit, and so that the store was asked and answered.
func (r *reply) decided() bool { return r.header.Get("Ratelimit-Limit") != "" }

// get sends a request for a tenant. That it is answered, and soon, is checked here, for every request of every case.
func (sv *service) get(tenant string) *reply {
	allowance := sv.pulse.allowance()
	r := sv.try(tenant, "/")
	switch {
	case r.err != nil:
		sv.failf("a request got no answer: %v", r.err)
	case r.took > answered+allowance():
		sv.failf("a request was answered after %v", r.took)
	case r.status != http.StatusOK && r.status != http.StatusTooManyRequests:
		sv.failf("a request was answered with status %d", r.status)
	case r.status == http.StatusOK && r.body != "served":
		sv.failf("a request that passed was answered with %q", r.body)
	case !r.decided():
		for name := range r.header {
			if strings.HasPrefix(name, "Ratelimit") || strings.HasPrefix(name, "X-Ratelimit") || name == "Retry-After" {
				sv.failf("a request that nobody decided was answered with %s: %s", name, r.header.Get(name))
			}
		}
	}
	return r
}

// try is get without checks.
func (sv *service) try(tenant, path string) *reply {
	req, err := http.NewRequest("GET", sv.base+path, nil)
	if err != nil {
		sv.fatalf("%v", err)
	}
	req.Header.Set(tenantHeader, secret+tenant)
	start := time.Now()
	res, err := sv.client.Do(req)
	r := &reply{err: err}
	if err == nil {
		var body []byte
		body, r.err = io.ReadAll(res.Body)
		_ = res.Body.Close()
		r.status, r.header, r.body = res.StatusCode, res.Header, string(body)
		sv.asked.Add(1)
		if r.decided() {
			sv.decided.Add(1)
			if r.status == http.StatusOK {
				sv.passed.Add(1)
			}
		}
	}
	r.took = time.Since(start)
	return r
}

// load sends n requests at a rate, whether or not the ones before are answered, and returns the replies.
func (sv *service) load(n, perSecond int, tenant string) []*reply {
	ticker := time.NewTicker(time.Second / time.Duration(perSecond))
	defer ticker.Stop()
	replies := make([]*reply, n)
	var running sync.WaitGroup
	for i := range replies {
		<-ticker.C
		running.Go(func() { replies[i] = sv.get(tenant) })
	}
	running.Wait()
	return replies
}

// settled waits until limits are enforced, by sending requests, and returns how long it took.
func (sv *service) settled(when, tenant string, within time.Duration) time.Duration {
	start, allowance := time.Now(), sv.pulse.allowance()
	decided := false
	took, _ := until(within+time.Minute, func() bool {
		decided = sv.get(tenant).decided()
		return decided || time.Since(start) > within+allowance()
	})
	if !decided {
		sv.fatalf("%s: limits are not enforced after %v; the breaker: %q; the log:\n%s", when, took, sv.watch.changes(), sv.tail())
	}
	return took
}

// tail returns the last lines of the log.
func (sv *service) tail() string {
	var text strings.Builder
	all := sv.logs.all()
	for _, line := range all[max(0, len(all)-5):] {
		_, _ = fmt.Fprintf(&text, "%s %s\n", line.at.Format("05.000"), line.text)
	}
	return text.String()
}

// call is a request without HTTP, where HTTP adds nothing.
func call(tenant string) gate.Call {
	return gate.Call{Operation: "GET /", Values: map[string]any{tenantHeader: secret + tenant}}
}

// admit asks the gate without HTTP.
func (sv *service) admit(tenant string) gate.Decision {
	a := sv.gate.Admit(context.Background(), call(tenant))
	d, ok := a.Decision("tenant")
	if !ok {
		sv.failf("the limiter was not asked")
	}
	sv.asked.Add(1)
	return d
}
