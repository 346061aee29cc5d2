package echogate_test

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

	"github.com/labstack/echo/v4"

	"github.com/headgate-go/headgate/adapters/echogate"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// fixed is a gate of limiters whose clock stands still.
func fixed(o gate.Observer, limiters ...gate.Limiter) *gate.Gate {
	return gate.Must(gate.New(gate.Config{Limiters: limiters, Observer: o, Clock: func() time.Time { return time.Unix(1e9, 0) }}))
}

func perMinute(name string, n int) gate.RequestRate {
	return gate.RequestRate{Name: name, Limit: limit.PerMinute(n)}
}

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

func ok(c echo.Context) error { return c.String(200, "ok") }

func TestMiddlewareOfNilPanics(t *testing.T) {
	defer func() {
		if v := fmt.Sprint(recover()); !strings.Contains(v, "echogate: Middleware(nil)") {
			t.Errorf("the panic says %s", v)
		}
	}()
	echogate.Middleware(nil)
}

// A cost that is known only from the body: the cost function reaches Echo's context, and the handler still has the body.
func TestBR108_CostFromTheBody(t *testing.T) {
	l := perMinute("p", 10)
	l.Cost = func(r gate.Request) int {
		c, ok := echogate.From(r)
		if !ok {
			t.Error("the request has no Echo context")
			return 1
		}
		body, _ := io.ReadAll(c.Request().Body)
		c.Request().Body = io.NopCloser(bytes.NewReader(body))
		return len(body)
	}
	e := echo.New()
	e.POST("/stops", func(c echo.Context) error {
		body, _ := io.ReadAll(c.Request().Body)
		return c.String(200, string(body))
	}, echogate.Middleware(fixed(nil, l)))
	for i, want := range []string{"200 stops 5", "200 stops 0", "429"} {
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest("POST", "/stops", strings.NewReader("stops")))
		got := fmt.Sprint(w.Code)
		if w.Code == 200 {
			got = fmt.Sprint(w.Code, " ", w.Body, " ", w.Header().Get("RateLimit-Remaining"))
		}
		if got != want {
			t.Errorf("request %d: %s; want %s", i, got, want)
		}
	}
	if _, ok := echogate.From(gate.Call{}); ok {
		t.Error("a request of another kind has an Echo context")
	}
}

// Before the router Echo knows no route. Core matches the path, so limiters by route work there as well.
func TestBR107_PreAndUse(t *testing.T) {
	users, orders := perMinute("users", 5), perMinute("orders", 5)
	users.Match, orders.Match = gate.Route("GET", "/users/:id"), gate.Route("GET", "/orders/:id")
	for name, mount := range map[string]func(*echo.Echo, echo.MiddlewareFunc){
		"Pre": func(e *echo.Echo, m echo.MiddlewareFunc) { e.Pre(m) },
		"Use": func(e *echo.Echo, m echo.MiddlewareFunc) { e.Use(m) },
	} {
		var seen events
		e := echo.New()
		mount(e, echogate.Middleware(fixed(&seen, users, orders)))
		e.GET("/users/:id", ok)
		e.GET("/orders/:id", ok)
		for _, path := range []string{"/users/1", "/orders/1"} {
			if got, _ := ask(e, 10, "GET "+path); got != "map[200:5 429:5]" {
				t.Errorf("%s: %s: %s; want 5 of each", name, path, got)
			}
		}
		if label := seen[0].Route; label != "/users/:id" {
			t.Errorf("%s: the route label after the handler is %q", name, label)
		}
	}
}

func TestNestedGroups(t *testing.T) {
	outer, inner, e := fixed(nil, perMinute("outer", 10)), fixed(nil, perMinute("inner", 5)), echo.New()
	v1 := e.Group("/v1", echogate.Middleware(outer))
	admin := v1.Group("/admin", echogate.Middleware(outer), echogate.Middleware(inner))
	deep := admin.Group("/deep", echogate.Middleware(inner))
	deep.GET("/x", func(c echo.Context) error {
		text := ""
		for _, d := range echogate.Admission(c).Decisions() {
			text += fmt.Sprintf("%s %d/%d ", d.Policy, d.Remaining, d.Limit)
		}
		return c.String(200, text)
	})
	if _, w := ask(e, 1, "GET /v1/admin/deep/x"); w.Body.String() != "outer 9/10 inner 4/5 " {
		t.Errorf("the handler found %q", w.Body)
	}
}

// What Echo runs middleware for: the table of the documentation. Application: all. Group: all below its
// prefix, where Echo answers a wrong method with 404 once the group has middleware.
func TestBR103_UnmatchedRoutes(t *testing.T) {
	for _, c := range []struct{ mounted, operation, want string }{
		{"application", "GET /v1/unknown", "map[404:10 429:10]"},
		{"application", "POST /v1/text", "map[405:10 429:10]"},
		{"group", "GET /v1/unknown", "map[404:10 429:10]"},
		{"group", "POST /v1/text", "map[404:10 429:10]"},
	} {
		e, g := echo.New(), echogate.Middleware(fixed(nil, perMinute("p", 10)))
		group := e.Group("/v1")
		if c.mounted == "group" {
			group.Use(g)
		} else {
			e.Use(g)
		}
		group.GET("/text", ok)
		if got, _ := ask(e, 20, c.operation); got != c.want {
			t.Errorf("%s, %s: %s; want %s", c.mounted, c.operation, got, c.want)
		}
	}
}

// To Echo the slash variant of a route is another path: a 404, charged.
func TestBR117_SlashVariant(t *testing.T) {
	e, handled := echo.New(), 0
	e.Use(echogate.Middleware(fixed(nil, perMinute("p", 10))))
	e.GET("/x", func(echo.Context) error { handled++; return nil })
	if got, _ := ask(e, 1000, "GET /x/"); got != "map[404:10 429:990]" || handled != 0 {
		t.Errorf("%s and %d handled", got, handled)
	}
}

// The status that Echo's default error handler will send, for every form of an error that it knows.
func TestBR112_FormsOfErrors(t *testing.T) {
	teapot := echo.NewHTTPError(418, "short and stout")
	for i, err := range []error{
		teapot,
		echo.NewHTTPError(500).SetInternal(teapot),
		echo.NewHTTPError(503).SetInternal(errors.New("inside")),
		fmt.Errorf("wrapped: %w", teapot), // which the handler does not look through
		errors.New("plain"),
		echo.ErrNotFound,
	} {
		var seen events
		e := echo.New()
		e.Use(echogate.Middleware(fixed(&seen, perMinute("p", 10))))
		e.GET("/x", func(echo.Context) error { return err })
		_, w := ask(e, 1, "GET /x")
		if got := seen[0].Result; got.Status != w.Code || got.Final || !errors.Is(seen[0].Err, err) {
			t.Errorf("form %d: the observer saw %+v and %v; the client %d", i, got, seen[0].Err, w.Code)
		}
	}
}

// An error after the response is on its way changes the status no more, and is a failure all the same.
func TestBR112_ErrorAfterTheResponse(t *testing.T) {
	var seen events
	late := errors.New("late")
	e := echo.New()
	e.Use(echogate.Middleware(fixed(&seen, perMinute("p", 10))))
	e.GET("/x", func(c echo.Context) error { return errors.Join(c.String(200, "ok"), late) })
	_, w := ask(e, 1, "GET /x")
	if got := seen[0]; w.Code != 200 || w.Body.String() != "ok" || got.Result != (gate.Result{Status: 200, Final: true}) || !errors.Is(got.Err, late) {
		t.Errorf("the client got %d %q, the observer %+v and %v", w.Code, w.Body, got.Result, got.Err)
	}
}
