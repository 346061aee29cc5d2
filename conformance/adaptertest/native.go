package adaptertest

import (
	"context"
	"net/http"
	"strings"

	"github.com/headgate-go/headgate/core/gate"
)

// Response is how a site writes a response with its framework's own means.
type Response struct {
	// Set sets a header field, before Send. Content-Type is one of them.
	Set func(name, value string)
	// Send sends status and body; a nil body is none, for statuses that have none.
	Send func(status int, body []byte) error
}

func (r Response) write(a answer) error {
	for _, f := range a.fields {
		r.Set(f[0], f[1])
	}
	return r.Send(a.status, a.body)
}

// Native is one request in the terms of its framework, for [Site.Handle]. A site makes it in its handler.
type Native struct {
	Response Response
	// Admission is what the adapter's Admission function finds, Context the request's context.
	Admission *gate.Admission
	Context   context.Context
	// Error and WrappedError are what a handler returns for the behaviours of that name; see there. Both nil where
	// handlers return nothing.
	Error, WrappedError error
	// Writer and Request are there in frameworks that are built on net/http.
	Writer  http.ResponseWriter
	Request *http.Request
	// Body returns the request's body where there is no Request.
	Body func() []byte
	// Others are behaviours that the framework has its own way of.
	Others map[Behaviour]func() error
}

// Handle is a site's handler: it counts the call, does what is asked for, and returns the error that the framework's
// handler is to return, or to report with the status do.Fails() where it returns none.
func (s Site) Handle(do Behaviour, n Native) error {
	defer s.probe.begin()()
	s.probe.sees.Store(n.Request != nil) // net/http tells; Fiber's contexts are those of the application
	if do == Hold && !s.probe.wait(n.Context.Done()) {
		s.probe.fault("nobody let the handler go")
	}
	if a, ok := do.answer(); ok {
		return n.Response.write(a)
	}
	if f, ok := n.Others[do]; ok {
		return f()
	}
	switch {
	case do == Panic:
		panic(ErrPanic)
	case do == PanicNil:
		var none any
		panic(none)
	case do == Report:
		return n.Response.write(report(n.Admission, gate.FromContext(n.Context)))
	case do == Error && n.Error != nil:
		return n.Error
	case do == WrappedError && n.Error != nil:
		return n.WrappedError
	case do == PlainError && n.Error != nil:
		return ErrHandler
	case do == ReadBody && n.Body != nil:
		return n.Response.write(text(200, string(n.Body())))
	case n.Writer != nil:
		s.serveHTTP(n.Writer, n.Request, do)
		return nil
	}
	return n.Response.write(unavailable())
}

// Failed answers an error or a panic of a handler, or a request without a route. err is what the error handler was
// given; nil if nothing.
func (s Site) Failed(r Response, status int, err error) error {
	s.probe.mu.Lock()
	s.probe.failures = append(s.probe.failures, err)
	s.probe.mu.Unlock()
	return r.write(failure(status))
}

// Known is asked by both of the site's own middlewares about what they are going to store, under name. False: nobody of
// that name is known, and the answer is a failure with status 401.
func (s Site) Known(name, value string) bool {
	if name == UserValue {
		s.probe.behind.Add(1) // it stands behind the application's gates
	}
	return value != "wrong"
}

// Mount makes the middleware of gates: Mount(s.App, gingate.Middleware).
func Mount[M any](gates []*gate.Gate, middleware func(*gate.Gate) M) []M {
	list := make([]M, len(gates))
	for i, g := range gates {
		list[i] = middleware(g)
	}
	return list
}

// InGroup says whether the route belongs to the group, and returns its pattern there; otherwise the whole pattern.
func (r Route) InGroup() (pattern string, ok bool) { return strings.CutPrefix(r.Pattern, GroupPrefix) }
