// Package echogate puts a gate in front of Echo v4 handlers.
package echogate

import (
	"context"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/headgate-go/headgate/core/gate"
)

// Middleware returns the gate as middleware: e.Use(echogate.Middleware(g)). It panics when mounted if g is nil.
func Middleware(g *gate.Gate) echo.MiddlewareFunc {
	if g == nil {
		panic("echogate: Middleware(nil): make the gate with gate.New and check its error")
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if Admission(c).Met(g) {
				return next(c)
			}
			return g.Serve(&exchange{c: c, next: next})
		}
	}
}

// Admission returns what was decided about the request; nil, on which every method works, where no limiter was asked.
func Admission(c echo.Context) *gate.Admission { return gate.FromContext(c.Request().Context()) }

// From returns Echo's context behind r, in a limiter's function. False if r did not come through this adapter.
func From(r gate.Request) (echo.Context, bool) {
	if x, ok := r.(*exchange); ok {
		return x.c, true
	}
	return nil, false
}

type exchange struct {
	c      echo.Context
	next   echo.HandlerFunc
	fields gate.Fields
	room   gate.Admission
}

func (x *exchange) Context() context.Context   { return x.c.Request().Context() }
func (x *exchange) Method() string             { return x.c.Request().Method }
func (x *exchange) Path() string               { return echo.GetPath(x.c.Request()) }
func (x *exchange) RemoteAddr() string         { return x.c.Request().RemoteAddr }
func (x *exchange) Value(name string) any      { return x.c.Get(name) }
func (x *exchange) Route() string              { return x.c.Path() }
func (x *exchange) Room() *gate.Admission      { return &x.room }
func (x *exchange) Admission() *gate.Admission { return Admission(x.c) }

func (x *exchange) Header(name string) string {
	return gate.FieldValue(x.c.Request().Header, x.c.Request().Host, name)
}

func (x *exchange) HeaderValues(name string) []string {
	return gate.FieldValues(x.c.Request().Header, x.c.Request().Host, name)
}

func (x *exchange) Attach(a *gate.Admission) {
	x.c.SetRequest(x.c.Request().WithContext(gate.NewContext(x.Context(), a)))
}

func (x *exchange) SetHeader(name, value string) { x.fields.Set(x.c.Response().Header(), name, value) }

// Reject returns no error: Echo would answer it with a second response.
func (x *exchange) Reject(status int, contentType string, body []byte) error {
	x.SetHeader(echo.HeaderContentType, contentType)
	x.SetHeader(echo.HeaderContentLength, strconv.Itoa(len(body)))
	x.c.Response().WriteHeader(status)
	_, _ = x.c.Response().Write(body)
	return nil
}

// Next reads a returned error as Echo's default error handler will, which writes it after us.
func (x *exchange) Next() (gate.Result, error) {
	err := x.next(x.c)
	res := gate.Result{Status: x.c.Response().Status, Final: x.c.Response().Committed}
	if err == nil || res.Final {
		return res, err
	}
	res.Status = http.StatusInternalServerError
	if e, ok := err.(*echo.HTTPError); ok {
		res.Status = e.Code
		if inner, ok := e.Internal.(*echo.HTTPError); ok {
			res.Status = inner.Code
		}
	}
	return res, err
}
