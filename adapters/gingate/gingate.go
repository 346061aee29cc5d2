// Package gingate puts a gate in front of Gin handlers. It sees paths as Gin's router does by default: with
// Engine.UseRawPath or RemoveExtraSlash the router sees others, so do not tell paths apart (Match, Exempt) there.
package gingate

import (
	"context"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/headgate-go/headgate/core/gate"
)

// Middleware returns the gate as middleware: r.Use(gingate.Middleware(g)). It panics when mounted if g is nil.
func Middleware(g *gate.Gate) gin.HandlerFunc {
	if g == nil {
		panic("gingate: Middleware(nil): make the gate with gate.New and check its error")
	}
	return func(c *gin.Context) {
		if Admission(c).Met(g) {
			return // Gin goes on by itself
		}
		if err := g.Serve(&exchange{c: c}); err != nil && len(c.Errors) == 0 {
			_ = c.Error(err) // a refusal that could not be written
		}
	}
}

// Admission returns what was decided about the request; nil, on which every method works, where no limiter was asked.
func Admission(c *gin.Context) *gate.Admission { return gate.FromContext(c.Request.Context()) }

// From returns Gin's context behind r, in a limiter's function. False if r did not come through this adapter.
func From(r gate.Request) (*gin.Context, bool) {
	if x, ok := r.(*exchange); ok {
		return x.c, true
	}
	return nil, false
}

type exchange struct {
	c      *gin.Context
	fields gate.Fields
	room   gate.Admission
}

func (x *exchange) Context() context.Context   { return x.c.Request.Context() }
func (x *exchange) Method() string             { return x.c.Request.Method }
func (x *exchange) Path() string               { return x.c.Request.URL.Path }
func (x *exchange) RemoteAddr() string         { return x.c.Request.RemoteAddr }
func (x *exchange) Route() string              { return x.c.FullPath() }
func (x *exchange) Room() *gate.Admission      { return &x.room }
func (x *exchange) Admission() *gate.Admission { return Admission(x.c) }

func (x *exchange) Value(name string) any {
	v, _ := x.c.Get(name)
	return v
}

func (x *exchange) Header(name string) string {
	return gate.FieldValue(x.c.Request.Header, x.c.Request.Host, name)
}

func (x *exchange) HeaderValues(name string) []string {
	return gate.FieldValues(x.c.Request.Header, x.c.Request.Host, name)
}

func (x *exchange) Attach(a *gate.Admission) { // not c.Set: HandleContext clears the keys
	x.c.Request = x.c.Request.WithContext(gate.NewContext(x.c.Request.Context(), a))
}

func (x *exchange) SetHeader(name, value string) { x.fields.Set(x.c.Writer.Header(), name, value) }

func (x *exchange) Reject(status int, contentType string, body []byte) error {
	x.c.Abort()
	x.SetHeader("Content-Type", contentType)
	x.SetHeader("Content-Length", strconv.Itoa(len(body)))
	x.c.Writer.WriteHeader(status)
	_, err := x.c.Writer.Write(body)
	return err
}

func (x *exchange) Next() (gate.Result, error) {
	before := len(x.c.Errors)
	x.c.Next()
	res := gate.Result{Status: x.c.Writer.Status(), Final: x.c.Writer.Written()}
	if len(x.c.Errors) > before {
		return res, x.c.Errors.Last().Err
	}
	return res, nil
}
