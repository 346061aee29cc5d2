package gingate_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/headgate-go/headgate/adapters/gingate"
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

func ok(c *gin.Context) { c.String(200, "ok") }

func TestMiddlewareOfNilPanics(t *testing.T) {
	defer func() {
		if v := fmt.Sprint(recover()); !strings.Contains(v, "gingate: Middleware(nil)") {
			t.Errorf("the panic says %s", v)
		}
	}()
	gingate.Middleware(nil)
}

// A cost that is known only from the body: the cost function reaches Gin's context, and the handler still has the body.
func TestBR108_CostFromTheBody(t *testing.T) {
	l := perMinute(10)
	l.Cost = func(r gate.Request) int {
		c, ok := gingate.From(r)
		if !ok {
			t.Error("the request has no Gin context")
			return 1
		}
		body, _ := io.ReadAll(c.Request.Body)
		c.Request.Body = io.NopCloser(bytes.NewReader(body))
		return len(body)
	}
	r := gin.New()
	r.POST("/stops", gingate.Middleware(fixed(l, nil)), func(c *gin.Context) {
		body, _ := io.ReadAll(c.Request.Body)
		c.String(200, "%s", body)
	})
	for i, want := range []string{"200 stops 5", "200 stops 0", "429"} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest("POST", "/stops", strings.NewReader("stops")))
		got := fmt.Sprint(w.Code)
		if w.Code == 200 {
			got = fmt.Sprint(w.Code, " ", w.Body, " ", w.Header().Get("RateLimit-Remaining"))
		}
		if got != want {
			t.Errorf("request %d: %s; want %s", i, got, want)
		}
	}
	if _, ok := gingate.From(gate.Call{}); ok {
		t.Error("a request of another kind has a Gin context")
	}
}

// HandleContext runs the chain again for the same request, and forgets what was kept with Set.
func TestBR101_HandleContextChargesOnce(t *testing.T) {
	var seen events
	r, g := gin.New(), fixed(perMinute(3), &seen)
	r.Use(gingate.Middleware(g))
	r.GET("/new", func(c *gin.Context) {
		d, _ := gingate.Admission(c).Decision("p")
		c.String(200, "%d left", d.Remaining)
	})
	r.GET("/old", func(c *gin.Context) {
		c.Request.URL.Path = "/new"
		r.HandleContext(c)
		c.Abort()
	})
	for want := 2; want >= 0; want-- {
		_, w := ask(r, 1, "GET /old")
		if got := w.Body.String(); got != fmt.Sprintf("%d left", want) || len(w.Header().Values("RateLimit-Limit")) != 1 {
			t.Errorf("%q, fields %v; want %d left", got, w.Header(), want)
		}
	}
	if statuses, _ := ask(r, 1, "GET /old"); statuses != "map[429:1]" || len(seen) != 4 {
		t.Errorf("%s and %d events; want one 429 and 4", statuses, len(seen))
	}
}

func TestNestedGroups(t *testing.T) {
	outer, inner, r := fixed(perMinute(10), nil), fixed(gate.RequestRate{Name: "inner", Limit: limit.PerMinute(5)}, nil), gin.New()
	v1 := r.Group("/v1", gingate.Middleware(outer))
	admin := v1.Group("/admin", gingate.Middleware(outer), gingate.Middleware(inner))
	deep := admin.Group("/deep", gingate.Middleware(inner))
	deep.GET("/x", func(c *gin.Context) {
		for _, d := range gingate.Admission(c).Decisions() {
			c.String(200, "%s %d/%d ", d.Policy, d.Remaining, d.Limit)
		}
	})
	if _, w := ask(r, 1, "GET /v1/admin/deep/x"); w.Body.String() != "p 9/10 inner 4/5 " {
		t.Errorf("the handler found %q", w.Body)
	}
}

// What Gin runs middleware for: the table of the documentation. Application: all. Group: matched routes only.
func TestBR103_UnmatchedRoutes(t *testing.T) {
	for _, c := range []struct{ mounted, operation, want string }{
		{"application", "GET /v1/unknown", "map[404:10 429:10]"},
		{"application", "POST /v1/text", "map[405:10 429:10]"},
		{"group", "GET /v1/unknown", "map[404:20]"},
		{"group", "POST /v1/text", "map[405:20]"},
	} {
		r, g := gin.New(), gingate.Middleware(fixed(perMinute(10), nil))
		r.HandleMethodNotAllowed = true
		group := r.Group("/v1")
		if c.mounted == "group" {
			group.Use(g)
		} else {
			r.Use(g)
			group = r.Group("/v1")
		}
		group.GET("/text", ok)
		if got, _ := ask(r, 20, c.operation); got != c.want {
			t.Errorf("%s, %s: %s; want %s", c.mounted, c.operation, got, c.want)
		}
	}
}

// Gin answers the slash variant of a route by itself, without running any middleware: no handler runs, nothing is
// charged. Without RedirectTrailingSlash it is a 404 that is.
func TestBR117_SlashVariant(t *testing.T) {
	for redirect, want := range map[bool]string{true: "map[301:1000]", false: "map[404:10 429:990]"} {
		r, handled := gin.New(), 0
		r.RedirectTrailingSlash = redirect
		r.Use(gingate.Middleware(fixed(perMinute(10), nil)))
		r.GET("/x", func(*gin.Context) { handled++ })
		if got, _ := ask(r, 1000, "GET /x/"); got != want || handled != 0 {
			t.Errorf("redirect %t: %s and %d handled; want %s and none", redirect, got, handled, want)
		}
	}
}

// Errors of Gin's handlers come beside the status. One without a status is a failure all the same.
func TestBR112_ErrorWithoutAStatus(t *testing.T) {
	var seen events
	r, boom := gin.New(), errors.New("boom")
	r.Use(gingate.Middleware(fixed(perMinute(10), &seen)))
	r.GET("/x", func(c *gin.Context) { _ = c.Error(boom) })
	r.GET("/y", func(c *gin.Context) { _ = c.AbortWithError(503, boom) })
	ask(r, 1, "GET /x")
	ask(r, 1, "GET /y")
	if len(seen) != 2 || !errors.Is(seen[0].Err, boom) || !errors.Is(seen[1].Err, boom) || seen[1].Result.Status != 503 || !seen[1].Result.Final {
		t.Errorf("the observer saw %+v", seen)
	}
}
