package httpgate_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-go/headgate/adapters/httpgate"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// fixed is a gate of one limiter whose clock stands still.
func fixed(l gate.RequestRate, o gate.Observer) *gate.Gate {
	return gate.Must(gate.New(gate.Config{Limiters: []gate.Limiter{l}, Observer: o, Clock: func() time.Time { return time.Unix(1e9, 0) }}))
}

func perMinute(n int) gate.RequestRate { return gate.RequestRate{Name: "p", Limit: limit.PerMinute(n)} }

// ask sends requests and counts the statuses.
func ask(h http.Handler, n int, operation string) (statuses string, last *httptest.ResponseRecorder) {
	method, path, _ := strings.Cut(operation, " ")
	counts := map[int]int{}
	for range n {
		last = httptest.NewRecorder()
		h.ServeHTTP(last, httptest.NewRequest(method, path, nil))
		counts[last.Code]++
	}
	return fmt.Sprint(counts), last
}

type events []gate.Event

func (e *events) Observe(ev gate.Event) { *e = append(*e, ev) }

func TestMiddlewareOfNilPanics(t *testing.T) {
	defer func() {
		if v := fmt.Sprint(recover()); !strings.Contains(v, "httpgate: Middleware(nil)") {
			t.Errorf("the panic says %s", v)
		}
	}()
	httpgate.Middleware(nil)
}

// A cost that is known only from the body: the cost function reaches the request, and the handler still has the body.
func TestBR108_CostFromTheBody(t *testing.T) {
	l := perMinute(10)
	l.Cost = func(r gate.Request) int {
		req, ok := httpgate.From(r)
		if !ok {
			t.Error("the request is not one of net/http")
			return 1
		}
		body, _ := io.ReadAll(req.Body)
		req.Body = io.NopCloser(bytes.NewReader(body))
		return len(body)
	}
	h := httpgate.Middleware(fixed(l, nil))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	for i, want := range []string{"200 stops 5", "200 stops 0", "429"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/stops", strings.NewReader("stops")))
		got := fmt.Sprint(w.Code)
		if w.Code == 200 {
			got = fmt.Sprint(w.Code, " ", w.Body, " ", w.Header().Get("RateLimit-Remaining"))
		}
		if got != want {
			t.Errorf("request %d: %s; want %s", i, got, want)
		}
	}
	if _, ok := httpgate.From(gate.Call{}); ok {
		t.Error("a request of another kind is one of net/http")
	}
}

// In front of a ServeMux a gate is asked about everything, the mux's own redirects and 404s among it. The mux tells its
// pattern as the route.
func TestBR103_BR117_InFrontOfServeMux(t *testing.T) {
	for _, c := range []struct{ operation, want, label string }{
		{"GET /text", "map[200:10 429:10]", "/text"},
		{"GET /users/17", "map[200:10 429:10]", "/users/{id}"},
		{"GET /unknown", "map[404:10 429:10]", ""},
		{"POST /text", "map[405:10 429:10]", ""},
		{"GET /text/", "map[404:10 429:10]", ""},           // another path to a mux
		{"GET /tree", "map[307:10 429:10]", "/tree/"},      // redirected to the pattern /tree/
		{"GET //a/../text", "map[307:10 429:10]", "/text"}, // redirected to the clean path
	} {
		var seen events
		mux := http.NewServeMux()
		for _, pattern := range []string{"GET /text", "GET /users/{id}", "/tree/"} {
			mux.HandleFunc(pattern, func(http.ResponseWriter, *http.Request) {})
		}
		got, _ := ask(httpgate.Middleware(fixed(perMinute(10), &seen))(mux), 20, c.operation)
		if got != c.want || seen[0].Route != c.label {
			t.Errorf("%s: %s, label %q; want %s, %q", c.operation, got, seen[0].Route, c.want, c.label)
		}
	}
}

// A gate that is made per request starts full each time and limits nothing; it must at least leave nothing behind.
func TestBR050_GatePerRequest(t *testing.T) {
	before := runtime.NumGoroutine()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpgate.Middleware(gate.PerClient(limit.PerMinute(1)))(http.NotFoundHandler()).ServeHTTP(w, r)
	})
	if got, _ := ask(h, 100, "GET /"); got != "map[404:100]" {
		t.Errorf("%s; want 100 times 404: nothing is limited", got)
	}
	if after := runtime.NumGoroutine(); after > before+2 {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

// http.TimeoutHandler lets the handler go on after the response: inside the gate and outside of it, under the race
// detector, with writers that are used late.
func TestBR116_TimeoutHandler(t *testing.T) {
	seen := make(chan gate.Event, 100)
	g := fixed(perMinute(1000), observerFunc(func(e gate.Event) { seen <- e }))
	late := make(chan struct{})
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		<-late
		_, _ = io.WriteString(w, httpgate.Admission(r).Decisions()[0].Policy)
	})
	for name, h := range map[string]http.Handler{
		"inside":  httpgate.Middleware(g)(http.TimeoutHandler(slow, time.Millisecond, "slow")),
		"outside": http.TimeoutHandler(httpgate.Middleware(g)(slow), time.Millisecond, "slow"),
	} {
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest("GET", "/slow", nil))
				if w.Code != http.StatusServiceUnavailable || w.Body.String() != "slow" {
					t.Errorf("%s: %d %q; want the timeout's answer", name, w.Code, w.Body)
				}
			})
		}
		group.Wait()
	}
	close(late)
	for range cap(seen) {
		if e := <-seen; e.Panicked || e.Err != nil {
			t.Errorf("the observer saw %+v", e)
		}
	}
}

type observerFunc func(gate.Event)

func (f observerFunc) Observe(e gate.Event) { f(e) }

// What the writer notes is what the client got: 1xx is on the way, a flush commits, a hijacked connection has no status.
func TestWriterNotesTheResult(t *testing.T) {
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		want   gate.Result
	}{
		"nothing":     {func(http.ResponseWriter, *http.Request) {}, gate.Result{Status: 200}},
		"early hints": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(201) }, gate.Result{Status: 201, Final: true}},
		"flush":       {func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush(); w.WriteHeader(500) }, gate.Result{Status: 200, Final: true}},
		"copy":        {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, strings.NewReader("x")) }, gate.Result{Status: 200, Final: true}},
		"teapot":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(418) }, gate.Result{Status: 418, Final: true}},
		"hijack": {func(w http.ResponseWriter, _ *http.Request) {
			if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_ = conn.Close()
			}
		}, gate.Result{Status: 200, Hijacked: true}},
		"push": {func(w http.ResponseWriter, _ *http.Request) {
			if err := w.(http.Pusher).Push("/x", nil); err != http.ErrNotSupported {
				t.Errorf("Push over HTTP/1.1: %v", err)
			}
		}, gate.Result{Status: 200}},
	} {
		seen := make(chan gate.Event, 1)
		srv := httptest.NewUnstartedServer(httpgate.Middleware(fixed(perMinute(10), observerFunc(func(e gate.Event) { seen <- e })))(c.handle))
		srv.Config.ErrorLog = log.New(io.Discard, "", 0) // "flush" sets a status too late on purpose
		srv.Start()
		if res, err := srv.Client().Get(srv.URL); err == nil {
			_ = res.Body.Close()
		}
		if e := <-seen; e.Result != c.want {
			t.Errorf("%s: %+v; want %+v", name, e.Result, c.want)
		}
		srv.Close()
	}
}
