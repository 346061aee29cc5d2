// Package fibergate puts a gate in front of Fiber v2 handlers.
package fibergate

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"github.com/gofiber/fiber/v2"

	"github.com/headgate-go/headgate/core/gate"
)

// Middleware returns the gate as middleware: app.Use(fibergate.Middleware(g)). It panics when mounted if g is nil.
func Middleware(g *gate.Gate) fiber.Handler {
	if g == nil {
		panic("fibergate: Middleware(nil): make the gate with gate.New and check its error")
	}
	return func(c *fiber.Ctx) error { return g.Serve(exchange{c}) }
}

// Admission returns what was decided about the request; nil, on which every method works, where no limiter was asked.
func Admission(c *fiber.Ctx) *gate.Admission { return gate.FromContext(c.UserContext()) }

// From returns Fiber's context behind r, in a limiter's function. False if r did not come through this adapter.
func From(r gate.Request) (*fiber.Ctx, bool) {
	x, ok := r.(exchange)
	return x.c, ok
}

// exchange is one pointer wide, so making one costs nothing.
type exchange struct{ c *fiber.Ctx }

func (x exchange) Context() context.Context   { return x.c.UserContext() }
func (x exchange) Method() string             { return x.c.Method() }
func (x exchange) Path() string               { return x.c.Path() }
func (x exchange) Header(name string) string  { return x.c.Get(name) }
func (x exchange) RemoteAddr() string         { return x.c.Context().RemoteAddr().String() }
func (x exchange) Value(name string) any      { return x.c.Locals(name) }
func (x exchange) Admission() *gate.Admission { return Admission(x.c) }

func (x exchange) HeaderValues(name string) []string {
	lines := x.c.Request().Header.PeekAll(name)
	values := make([]string, len(lines))
	for i, line := range lines {
		values[i] = string(line)
	}
	return values
}

// RemoteAddrPort spares the text of an address that only its bytes are needed of. A unix socket has none.
func (x exchange) RemoteAddrPort() netip.AddrPort {
	addr, ok := x.c.Context().RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	return addr.AddrPort()
}

func (x exchange) Attach(a *gate.Admission) {
	x.c.SetUserContext(gate.NewContext(x.c.UserContext(), a))
}

func (x exchange) SetHeader(name, value string) {
	if value == "" {
		x.c.Response().Header.Del(name)
		return
	}
	x.c.Set(name, value)
}

func (x exchange) Reject(status int, contentType string, body []byte) error {
	x.c.Set(fiber.HeaderContentType, contentType)
	return x.c.Status(status).Send(body) // only buffers: it never fails
}

// Next reads a returned error as Fiber's default error handler will, which writes it after us.
func (x exchange) Next() (gate.Result, error) {
	err := x.c.Next()
	if err == nil {
		return gate.Result{Status: x.c.Response().StatusCode()}, nil
	}
	res := gate.Result{Status: fiber.StatusInternalServerError}
	if e := (*fiber.Error)(nil); errors.As(err, &e) {
		res.Status = e.Code
	}
	return res, err
}

// Route returns the matched template. Fiber reports the path of a middleware, "/", where no route matched.
func (x exchange) Route() string {
	if r := x.c.Route(); r != nil && r.Path != "/" {
		return r.Path
	}
	return ""
}
