package fibergate_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/recover"
	"github.com/gofiber/fiber/v2/middleware/timeout"

	"github.com/headgate-go/headgate/adapters/fibergate"
	"github.com/headgate-go/headgate/conformance/adaptertest"
)

func TestConformance(t *testing.T) { adaptertest.Run(t, newSite) }

func newSite(tb testing.TB, s adaptertest.Site) string {
	config := fiber.Config{DisableStartupMessage: true, BodyLimit: 32 << 20}
	if !s.DefaultErrors {
		config.ErrorHandler = func(c *fiber.Ctx, err error) error {
			e := fiber.ErrInternalServerError
			errors.As(err, &e)
			return s.Failed(response(c), e.Code, err)
		}
	}
	app := fiber.New(config)
	app.Use(limitTime, recover.New(), keep(s, adaptertest.TenantHeader, adaptertest.TenantValue))
	for _, h := range adaptertest.Mount(s.App, fibergate.Middleware) {
		app.Use(h)
	}
	app.Use(keep(s, adaptertest.UserHeader, adaptertest.UserValue))
	group := app.Group(adaptertest.GroupPrefix, adaptertest.Mount(s.Group, fibergate.Middleware)...)
	for _, route := range s.Routes {
		pattern, in := route.InGroup()
		map[bool]fiber.Router{true: group, false: app}[in].Add(route.Method, pattern,
			append(adaptertest.Mount(s.Route, fibergate.Middleware), handler(s, route.Do))...)
	}
	ln := s.Listen(tb)
	go func() { _ = app.Listener(ln) }()
	return "http://" + ln.Addr().String()
}

// limitTime is Fiber's own middleware for timeouts: it ends the request's context, and waits for the handler.
func limitTime(c *fiber.Ctx) error {
	if c.Get(adaptertest.TimeoutHeader) == "" {
		return c.Next()
	}
	return timeout.NewWithContext((*fiber.Ctx).Next, adaptertest.TimeLimit)(c)
}

func keep(s adaptertest.Site, field, name string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if c.Locals(name, c.Get(field)); !s.Known(name, c.Get(field)) {
			return fiber.ErrUnauthorized
		}
		return c.Next()
	}
}

func handler(s adaptertest.Site, do adaptertest.Behaviour) fiber.Handler {
	return func(c *fiber.Ctx) error {
		return s.Handle(do, adaptertest.Native{Response: response(c), Admission: fibergate.Admission(c), Context: c.UserContext(),
			Error: fiber.NewError(503, "busy"), WrappedError: fmt.Errorf("%w: %w", adaptertest.ErrHandler, fiber.NewError(503, "busy")),
			Body: c.Body, Others: map[adaptertest.Behaviour]func() error{
				adaptertest.File: func() error { return c.SendFile(s.File()) },
				adaptertest.Hijack: func() error {
					c.Context().HijackSetNoResponse(true)
					c.Context().Hijack(adaptertest.SwitchAndEcho)
					return nil
				},
				adaptertest.Stream:  func() error { return stream(c, s.Stream) },
				adaptertest.Endless: func() error { return stream(c, s.Endless) },
				adaptertest.TimedOut: func() error {
					return timeout.NewWithContext(func(c *fiber.Ctx) error {
						<-c.UserContext().Done()
						return c.UserContext().Err()
					}, adaptertest.TimeLimit)(c)
				},
			}})
	}
}

func stream(c *fiber.Ctx, write func(w io.Writer, flush func() error)) error {
	c.Set(fiber.HeaderContentType, adaptertest.StreamType)
	c.Context().SetBodyStreamWriter(func(w *bufio.Writer) { write(w, w.Flush) })
	return nil
}

func response(c *fiber.Ctx) adaptertest.Response {
	return adaptertest.Response{Set: c.Set, Send: func(status int, body []byte) error { return c.Status(status).Send(body) }}
}
