package fibergate_test

import (
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/headgate-go/headgate/adapters/fibergate"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// fixed is a gate of limiters whose clock stands still. The address of app.Test's requests is 0.0.0.0.
func fixed(o gate.Observer, limiters ...gate.Limiter) *gate.Gate {
	return gate.Must(gate.New(gate.Config{Limiters: limiters, Observer: o, Clock: func() time.Time { return time.Unix(1e9, 0) }}))
}

func perMinute(name string, n int) gate.RequestRate {
	return gate.RequestRate{Name: name, Limit: limit.PerMinute(n)}
}

// answer is what came back.
type answer struct {
	status    int
	remaining string
	body      string
}

// ask sends requests and counts the statuses.
func ask(t *testing.T, app *fiber.App, n int, operation, body string) (statuses string, last answer) {
	t.Helper()
	method, path, _ := strings.Cut(operation, " ")
	counts := map[int]int{}
	for range n {
		res, err := app.Test(httptest.NewRequest(method, path, strings.NewReader(body)), -1)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		last = answer{res.StatusCode, res.Header.Get("RateLimit-Remaining"), string(text)}
		counts[last.status]++
	}
	return fmt.Sprint(counts), last
}

// events keeps of each event what outlives it.
type events []gate.Event

func (e *events) Observe(ev gate.Event) {
	ev.Route, ev.Request = strings.Clone(ev.Route), nil
	*e = append(*e, ev)
}

func ok(c *fiber.Ctx) error { return c.SendString("ok") }

func TestMiddlewareOfNilPanics(t *testing.T) {
	defer func() {
		if v := fmt.Sprint(recover()); !strings.Contains(v, "fibergate: Middleware(nil)") {
			t.Errorf("the panic says %s", v)
		}
	}()
	fibergate.Middleware(nil)
}

// A cost that is known only from the body: the cost function reaches Fiber's context, and the handler still has the body.
func TestBR108_CostFromTheBody(t *testing.T) {
	l := perMinute("p", 10)
	l.Cost = func(r gate.Request) int {
		c, ok := fibergate.From(r)
		if !ok {
			t.Error("the request has no Fiber context")
			return 1
		}
		return len(c.Body())
	}
	app := fiber.New()
	app.Post("/stops", fibergate.Middleware(fixed(nil, l)), func(c *fiber.Ctx) error { return c.Send(c.Body()) })
	for i, want := range []answer{{200, "5", "stops"}, {200, "0", "stops"}} {
		if _, got := ask(t, app, 1, "POST /stops", "stops"); got != want {
			t.Errorf("request %d: %v; want %v", i, got, want)
		}
	}
	if got, _ := ask(t, app, 1, "POST /stops", "stops"); got != "map[429:1]" {
		t.Errorf("request 2: %s; want 429", got)
	}
	if _, ok := fibergate.From(gate.Call{}); ok {
		t.Error("a request of another kind has a Fiber context")
	}
}

// Fiber's route is that of the middleware until the handler has run. Core matches the path, so limiters by route have
// buckets of their own wherever the gate is mounted, and the label, read afterwards, is the template.
func TestBR106_RoutesWhereverMounted(t *testing.T) {
	users, orders := perMinute("users", 5), perMinute("orders", 5)
	users.Match, orders.Match = gate.Route("GET", "/api/users/:id"), gate.Route("GET", "/api/orders/:id")
	for name, build := range map[string]func(g fiber.Handler) *fiber.App{
		"application": func(g fiber.Handler) *fiber.App {
			app := fiber.New()
			app.Use(g)
			app.Get("/api/users/:id", ok)
			app.Get("/api/orders/:id", ok)
			return app
		},
		"group": func(g fiber.Handler) *fiber.App {
			app := fiber.New()
			group := app.Group("/api", g)
			group.Get("/users/:id", ok)
			group.Get("/orders/:id", ok)
			return app
		},
		"route": func(g fiber.Handler) *fiber.App {
			app := fiber.New()
			app.Get("/api/users/:id", g, ok)
			app.Get("/api/orders/:id", g, ok)
			return app
		},
		"mounted application": func(g fiber.Handler) *fiber.App {
			app, api := fiber.New(), fiber.New()
			api.Use(g)
			api.Get("/users/:id", ok)
			api.Get("/orders/:id", ok)
			app.Mount("/api", api)
			return app
		},
	} {
		var seen events
		app := build(fibergate.Middleware(fixed(&seen, users, orders)))
		for _, path := range []string{"/api/users/1", "/API/Orders/1/"} { // Fiber serves that spelling too
			if got, _ := ask(t, app, 10, "GET "+path, ""); got != "map[200:5 429:5]" {
				t.Errorf("%s: %s: %s; want 5 of each", name, path, got)
			}
		}
		if label := seen[0].Route; label != "/api/users/:id" {
			t.Errorf("%s: the route label after the handler is %q", name, label)
		}
	}
}

func TestNestedGroups(t *testing.T) {
	outer, inner, app := fixed(nil, perMinute("outer", 10)), fixed(nil, perMinute("inner", 5)), fiber.New()
	v1 := app.Group("/v1", fibergate.Middleware(outer))
	admin := v1.Group("/admin", fibergate.Middleware(outer), fibergate.Middleware(inner))
	deep := admin.Group("/deep", fibergate.Middleware(inner))
	deep.Get("/x", func(c *fiber.Ctx) error {
		text := ""
		for _, d := range fibergate.Admission(c).Decisions() {
			text += fmt.Sprintf("%s %d/%d ", d.Policy, d.Remaining, d.Limit)
		}
		return c.SendString(text)
	})
	if _, got := ask(t, app, 1, "GET /v1/admin/deep/x", ""); got.body != "outer 9/10 inner 4/5 " {
		t.Errorf("the handler found %q", got.body)
	}
}

// What Fiber runs middleware for: the table of the documentation. Application and group: everything below their prefix.
func TestBR103_UnmatchedRoutes(t *testing.T) {
	for _, c := range []struct{ mounted, operation, want string }{
		{"application", "GET /v1/unknown", "map[404:10 429:10]"},
		{"application", "POST /v1/text", "map[405:10 429:10]"},
		{"group", "GET /v1/unknown", "map[404:10 429:10]"},
		{"group", "POST /v1/text", "map[405:10 429:10]"},
	} {
		app, g := fiber.New(), fibergate.Middleware(fixed(nil, perMinute("p", 10)))
		group := app.Group("/v1")
		if c.mounted == "group" {
			group.Use(g)
		} else {
			app.Use(g)
		}
		group.Get("/text", ok)
		if got, _ := ask(t, app, 20, c.operation, ""); got != c.want {
			t.Errorf("%s, %s: %s; want %s", c.mounted, c.operation, got, c.want)
		}
	}
}

// Fiber serves the slash variant of a route from the same handler, charged; with StrictRouting it is a 404, charged too.
func TestBR117_SlashVariant(t *testing.T) {
	for strict, want := range map[bool]string{false: "map[200:10 429:990]", true: "map[404:10 429:990]"} {
		app := fiber.New(fiber.Config{StrictRouting: strict})
		app.Use(fibergate.Middleware(fixed(nil, perMinute("p", 10))))
		app.Get("/x", ok)
		if got, _ := ask(t, app, 1000, "GET /x/", ""); got != want {
			t.Errorf("strict %t: %s; want %s", strict, got, want)
		}
	}
}

// The status that Fiber's default error handler will send, for every form of an error that it knows.
func TestBR112_FormsOfErrors(t *testing.T) {
	teapot := fiber.NewError(418, "short and stout")
	for i, err := range []error{teapot, fmt.Errorf("wrapped: %w", teapot), errors.New("plain"), fiber.ErrNotFound} {
		var seen events
		app := fiber.New()
		app.Use(fibergate.Middleware(fixed(&seen, perMinute("p", 10))))
		app.Get("/x", func(*fiber.Ctx) error { return err })
		_, got := ask(t, app, 1, "GET /x", "")
		if seen[0].Result.Status != got.status || !errors.Is(seen[0].Err, err) {
			t.Errorf("form %d: the observer saw %+v and %v; the client %d", i, seen[0].Result, seen[0].Err, got.status)
		}
	}
}

// RestartRouting runs the chain again for the same request.
func TestBR101_RestartRoutingChargesOnce(t *testing.T) {
	var seen events
	app := fiber.New()
	app.Use(fibergate.Middleware(fixed(&seen, perMinute("p", 3))))
	app.Get("/new", func(c *fiber.Ctx) error {
		d, _ := fibergate.Admission(c).Decision("p")
		return c.SendString(fmt.Sprint(d.Remaining, " left"))
	})
	app.Get("/old", func(c *fiber.Ctx) error {
		c.Path("/new")
		return c.RestartRouting()
	})
	for want := 2; want >= 0; want-- {
		if _, got := ask(t, app, 1, "GET /old", ""); got != (answer{200, fmt.Sprint(want), fmt.Sprint(want, " left")}) {
			t.Errorf("%+v; want %d left", got, want)
		}
	}
	if got, _ := ask(t, app, 1, "GET /old", ""); got != "map[429:1]" || len(seen) != 4 {
		t.Errorf("%s and %d events; want one 429 and 4", got, len(seen))
	}
}
