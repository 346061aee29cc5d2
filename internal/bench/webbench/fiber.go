package webbench

import (
	"net"
	"net/http"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/limiter"
	"github.com/valyala/fasthttp"

	"github.com/headgate-go/headgate/adapters/fibergate"
	"github.com/headgate-go/headgate/core/gate"
)

const onFiber = "fiber"

// fiberEntries are the entries of Fiber.
func fiberEntries() []entry {
	handler := func(c *fiber.Ctx) error { return c.Send(body) }
	serve := func(handlers ...fiber.Handler) site {
		app := fiber.New()
		app.Get(path, handlers...)
		return overFastHTTP(app.Handler())
	}
	mount := func(g *gate.Gate, times int) site {
		if times == 1 {
			return serve(fibergate.Middleware(g), handler)
		}
		return serve(fibergate.Middleware(g), fibergate.Middleware(g), func(c *fiber.Ctx) error {
			if !fibergate.Admission(c).Allowed() {
				return fiber.ErrTooManyRequests
			}
			return handler(c)
		})
	}
	return append([]entry{
		{onFiber, bare, most, func(int) site { return serve(handler) }},
		{onFiber, own, most, func(limit int) site {
			return serve(limiter.New(limiter.Config{Max: limit, Expiration: time.Hour}), handler)
		}},
	}, gates(onFiber, mount)...)
}

// overFastHTTP serves requests as fasthttp's server does: a context each connection, cleared for the next request.
func overFastHTTP(h fasthttp.RequestHandler) site {
	contexts := make([]fasthttp.RequestCtx, clients)
	for n := range contexts {
		address, err := net.ResolveTCPAddr("tcp", addressOf(n))
		if err != nil {
			panic(err) // the address is a constant
		}
		contexts[n].Init(&fasthttp.Request{}, address, nil)
	}
	return func(n int) int {
		ctx := &contexts[n]
		ctx.ResetUserValues()
		ctx.Response.Reset()
		ctx.Request.Header.SetMethod(http.MethodGet)
		ctx.Request.SetRequestURI(path)
		h(ctx)
		return ctx.Response.StatusCode()
	}
}
