package webbench

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// site answers a request of client number n and returns the status. It is for one goroutine.
type site func(n int) int

// entry is a way to mount a limiter, or none, in a framework.
type entry struct {
	framework, name string
	limit           int                  // how many requests of a client pass
	open            func(limit int) site // 1 or most
}

// status is what every answer but a client's first has.
func (e entry) status() int {
	if e.limit == 1 {
		return http.StatusTooManyRequests
	}
	return http.StatusOK
}

// The names of entries that all frameworks have.
const (
	bare    = "bare"
	gated   = "headgate"
	silent  = "headgate without headers"
	twice   = "headgate, mounted twice, its decision read by the handler"
	refused = "headgate, refused"
)

func (e entry) String() string { return e.framework + ": " + e.name }

// clients is how many addresses there are.
const clients = 256

// most is a limit that nobody reaches.
const most = 1_000_000_000

var body = []byte("ok")

// addressOf is the socket's peer of client n.
func addressOf(n int) string { return fmt.Sprintf("198.18.%d.%d:40000", n/16, 1+n%16) }

// newGate limits every address to so many requests.
func newGate(headers gate.HeaderSet, burst int) *gate.Gate {
	rule := limit.PerSecond(1000).WithBurst(burst)
	if burst == 1 {
		rule = limit.PerDay(1) // nobody is let in again while it is measured
	}
	return gate.Must(gate.New(gate.Config{
		Limiters: []gate.Limiter{gate.RequestRate{Name: "client", Limit: rule}},
		Headers:  headers,
		Logger:   slog.New(slog.DiscardHandler),
	}))
}

// gates are the entries of headgate, by the names that frameworks share. Mount makes a site of a gate, mounted so many
// times; with more than one its handler reads the decision.
func gates(framework string, mount func(g *gate.Gate, times int) site) []entry {
	with := func(name string, limit int, headers gate.HeaderSet, times int) entry {
		return entry{framework, name, limit, func(burst int) site { return mount(newGate(headers, burst), times) }}
	}
	list := []entry{with(gated, most, 0, 1), with(twice, most, 0, 2), with(refused, 1, 0, 1)}
	if framework == onEcho { // whose own limiter sends no headers
		list = append(list, with(silent, most, gate.HeadersNone, 1))
	}
	return list
}

// response is an http.ResponseWriter that allocates nothing itself.
type response struct {
	header http.Header
	status int
}

func (w *response) Header() http.Header         { return w.header }
func (w *response) Write(p []byte) (int, error) { return len(p), nil }
func (w *response) WriteHeader(status int)      { w.status = status }

// overHTTP serves requests to whatever is a handler of net/http.
func overHTTP(h http.Handler) site {
	w, requests := &response{header: http.Header{}}, make([]*http.Request, clients)
	for n := range requests {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, path, http.NoBody)
		if err != nil {
			panic(err) // the request is a constant
		}
		r.RemoteAddr, r.RequestURI = addressOf(n), path
		requests[n] = r
	}
	return func(n int) int {
		clear(w.header)
		w.status = http.StatusOK
		h.ServeHTTP(w, requests[n])
		return w.status
	}
}

const path = "/v1/routes"
