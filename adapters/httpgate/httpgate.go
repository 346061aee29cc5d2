// Package httpgate puts a gate in front of net/http handlers, and of everything that is one: http.ServeMux, chi.
package httpgate

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/headgate-go/headgate/core/gate"
)

// Middleware returns the gate as middleware: httpgate.Middleware(g)(mux). It panics when mounted if g is nil.
func Middleware(g *gate.Gate) func(http.Handler) http.Handler {
	if g == nil {
		panic("httpgate: Middleware(nil): make the gate with gate.New and check its error")
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if Admission(r).Met(g) {
				next.ServeHTTP(w, r)
				return
			}
			x := &exchange{writer: writer{ResponseWriter: w}, r: r, next: next}
			_ = g.Serve(x) // a handler has no error to return, and a failed write has no reader
		})
	}
}

// Admission returns what was decided about the request; nil, on which every method works, where no limiter was asked.
func Admission(r *http.Request) *gate.Admission { return gate.FromContext(r.Context()) }

// From returns the request behind r, in a limiter's function. False if r did not come through this adapter.
func From(r gate.Request) (*http.Request, bool) {
	if x, ok := r.(*exchange); ok {
		return x.r, true
	}
	return nil, false
}

// exchange is one request and its response. It is not pooled: handlers may keep the writer.
type exchange struct {
	writer writer
	r      *http.Request
	next   http.Handler
	fields gate.Fields
	room   gate.Admission
}

func (x *exchange) Context() context.Context   { return x.r.Context() }
func (x *exchange) Method() string             { return x.r.Method }
func (x *exchange) Path() string               { return x.r.URL.Path }
func (x *exchange) RemoteAddr() string         { return x.r.RemoteAddr }
func (x *exchange) Value(name string) any      { return gate.ContextValue(x.r.Context(), name) }
func (x *exchange) Room() *gate.Admission      { return &x.room }
func (x *exchange) Admission() *gate.Admission { return gate.FromContext(x.r.Context()) }

func (x *exchange) Header(name string) string {
	return gate.FieldValue(x.r.Header, x.r.Host, name)
}

func (x *exchange) HeaderValues(name string) []string {
	return gate.FieldValues(x.r.Header, x.r.Host, name)
}

func (x *exchange) Attach(a *gate.Admission) {
	x.r = x.r.WithContext(gate.NewContext(x.r.Context(), a))
}

func (x *exchange) SetHeader(name, value string) {
	x.fields.Set(x.writer.ResponseWriter.Header(), name, value)
}

func (x *exchange) Reject(status int, contentType string, body []byte) error {
	x.SetHeader("Content-Type", contentType)
	x.SetHeader("Content-Length", strconv.Itoa(len(body)))
	x.writer.ResponseWriter.WriteHeader(status)
	_, err := x.writer.ResponseWriter.Write(body)
	return err
}

func (x *exchange) Next() (gate.Result, error) {
	x.next.ServeHTTP(&x.writer, x.r)
	status := cmp.Or(x.writer.status, http.StatusOK) // what net/http sends for a handler that wrote nothing
	return gate.Result{Status: status, Final: x.writer.status != 0, Hijacked: x.writer.hijacked}, nil
}

// Route returns the pattern that a ServeMux behind the gate matched, without its method and host.
func (x *exchange) Route() string {
	if slash := strings.IndexByte(x.r.Pattern, '/'); slash >= 0 {
		return x.r.Pattern[slash:]
	}
	return ""
}
