package fibergate_test

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/recover"

	"github.com/headgate-go/headgate/adapters/fibergate"
	"github.com/headgate-go/headgate/conformance/adaptertest"
	"github.com/headgate-go/headgate/core/gate"
)

func TestConformance(t *testing.T) { adaptertest.Run(t, newSite) }

func newSite(tb testing.TB, s adaptertest.Site) string {
	config := fiber.Config{DisableStartupMessage: true, BodyLimit: 32 << 20}
	if !s.DefaultErrors {
		config.ErrorHandler = func(c *fiber.Ctx, err error) error {
			status := 500
			if e := (*fiber.Error)(nil); errors.As(err, &e) {
				status = e.Code
			}
			return write(c, s.Failure(status, err))
		}
	}
	app := fiber.New(config)
	app.Use(recover.New(), keep(adaptertest.TenantHeader, adaptertest.TenantValue))
	for _, h := range append(mount(s.App), keep(adaptertest.UserHeader, adaptertest.UserValue)) {
		app.Use(h)
	}
	group := app.Group(adaptertest.GroupPrefix, mount(s.Group)...)
	for _, route := range s.Routes {
		chain := append(mount(s.Route), func(c *fiber.Ctx) error { s.Later(); return c.Next() }, handler(s, route.Do))
		if path, ok := strings.CutPrefix(route.Pattern, adaptertest.GroupPrefix); ok {
			group.Add(route.Method, path, chain...)
		} else {
			app.Add(route.Method, route.Pattern, chain...)
		}
	}
	ln := s.Listen(tb)
	go func() { _ = app.Listener(ln) }()
	return "http://" + ln.Addr().String()
}

func keep(field, name string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		value, ok := adaptertest.Authenticate(c.Get(field))
		if c.Locals(name, value); !ok {
			return fiber.NewError(401)
		}
		return c.Next()
	}
}

func mount(gates []*gate.Gate) (list []fiber.Handler) {
	for _, g := range gates {
		list = append(list, fibergate.Middleware(g))
	}
	return list
}

func handler(s adaptertest.Site, do adaptertest.Behaviour) fiber.Handler {
	return func(c *fiber.Ctx) error {
		s.Handled()
		if a, ok := do.Answer(); ok {
			return write(c, a)
		}
		switch do {
		case adaptertest.Error:
			return fiber.NewError(503, "busy")
		case adaptertest.WrappedError:
			return fmt.Errorf("%w: %w", adaptertest.ErrHandler, fiber.NewError(503, "busy"))
		case adaptertest.PlainError:
			return errors.Join(adaptertest.ErrHandler)
		case adaptertest.Panic:
			panic(adaptertest.ErrPanic)
		case adaptertest.PanicNil:
			var none any
			panic(none)
		case adaptertest.Report:
			return write(c, adaptertest.ReportAnswer(fibergate.Admission(c), gate.FromContext(c.UserContext())))
		case adaptertest.ReadBody:
			return write(c, adaptertest.TextAnswer(c.Body()))
		case adaptertest.File:
			return c.SendFile(s.File())
		case adaptertest.Hijack:
			c.Context().HijackSetNoResponse(true)
			c.Context().Hijack(adaptertest.SwitchAndEcho)
			return nil
		case adaptertest.Stream:
			c.Set(fiber.HeaderContentType, "text/event-stream")
			c.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
				s.Stream(func(piece string) error {
					_, err := w.WriteString(piece)
					return errors.Join(err, w.Flush())
				})
			})
			return nil
		}
		return write(c, adaptertest.Unavailable())
	}
}

func write(c *fiber.Ctx, a adaptertest.Answer) error {
	for _, f := range a.Fields {
		c.Set(f[0], f[1])
	}
	if c.Status(a.Status); a.Body == nil {
		return nil
	}
	c.Set(fiber.HeaderContentType, a.ContentType)
	return c.Send(a.Body)
}
