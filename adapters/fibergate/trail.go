package fibergate

import (
	"errors"
	"io"
	"runtime"
	"sync"

	"github.com/valyala/fasthttp"
)

// Trail implements gate.Trailing: a stream is written, and a hijacked connection served, when the handler has returned.
func (x exchange) Trail(closer io.Closer) bool {
	ctx := x.c.Context()
	if !goesOn(ctx) {
		return false
	}
	t, ok := ctx.UserValue(trailKey{}).(*trail)
	if !ok {
		t = newTrail()
		ctx.SetUserValue(trailKey{}, t)
	}
	t.add(closer)
	return true
}

// goesOn says whether fasthttp will close what is kept with ctx, later than now. It does not where nothing numbers the
// requests of a connection: the application is then driven without fasthttp's server, as by adaptor.FiberApp. Nor where
// the response is a timeout's: the server has let go of ctx.
func goesOn(ctx *fasthttp.RequestCtx) bool {
	return (ctx.Response.IsBodyStream() || ctx.Hijacked()) && ctx.ConnRequestNum() > 0 && ctx.LastTimeoutErrorResponse() == nil
}

// trailKey is where a request's trail is kept. There is one for all gates, because fasthttp drops the first io.Closer
// when a user value is set twice.
type trailKey struct{}

// trail closes what waits for the end of a request. fasthttp calls Close when it resets the request's values: after the
// response with its stream, after the hijacked connection, or when the client is gone.
type trail struct{ *closers }

type closers struct {
	list []io.Closer
	once sync.Once
}

// newTrail makes a trail that is closed at the latest when nobody has it any more: fasthttp forgets a request that was to
// be hijacked when it cannot write the response, for the client is gone.
func newTrail() *trail {
	t := &trail{new(closers)}
	runtime.AddCleanup(t, func(c *closers) { _ = c.Close() }, t.closers)
	return t
}

func (c *closers) add(closer io.Closer) { c.list = append(c.list, closer) }

// Close closes all, once.
func (c *closers) Close() (err error) {
	c.once.Do(func() {
		for _, closer := range c.list {
			err = errors.Join(err, closer.Close())
		}
		c.list = nil
	})
	return err
}
