package fibergate_test

import (
	"net"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/headgate-go/headgate/adapters/fibergate"
	"github.com/headgate-go/headgate/conformance/adaptertest"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// TestAllocations mounts one gate on the application and on a group, with the three fields and the way back.
func TestAllocations(t *testing.T) {
	handler := func(c *fiber.Ctx) error {
		if !fibergate.Admission(c).Allowed() {
			t.Error("refused")
		}
		return c.SendString("ok")
	}
	bare, gated, g := fiber.New(), fiber.New(), fibergate.Middleware(gate.PerClient(limit.PerSecond(1e6)))
	bare.Group("/v1").Get("/text", handler)
	gated.Use(g)
	gated.Group("/v1", g).Get("/text", handler)
	ctx := &fasthttp.RequestCtx{}
	ctx.Init(&fasthttp.Request{}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1234}, nil)
	serve := func(app *fiber.App) func() {
		h := app.Handler()
		return func() {
			ctx.ResetUserValues()
			ctx.Response.Reset()
			ctx.Request.Header.SetMethod("GET")
			ctx.Request.SetRequestURI("/v1/text")
			h(ctx)
		}
	}
	adaptertest.Allocations(t, 1, serve(bare), serve(gated))
	if serve(gated)(); len(ctx.Response.Header.Peek("RateLimit-Remaining")) == 0 {
		t.Error("no fields were sent")
	}
}
