package adaptertest_test

import (
	"context"
	"io"
	"slices"
)

// lazy is no fault: the adapter of a lazy frame.
const lazy fault = "lazy"

// lazy says whether the fault is one of an adapter of a lazy frame.
func (f fault) lazy() bool {
	return slices.Contains([]fault{lazy, trailOver, trailLost, trailOne, trailAlways, trailOfStreams, trailOfTheGone}, f)
}

// lazyExchange is the adapter for a lazy frame.
type lazyExchange struct{ *exchange }

func (x lazyExchange) Trail(closer io.Closer) bool {
	switch {
	case x.c.late == nil && x.f == trailAlways:
	case x.c.late == nil, x.f == trailOver, x.f == trailOfStreams && x.c.socket:
		return false
	case x.f == trailLost:
	case x.f == trailOfTheGone:
		x.c.closers = append(x.c.closers, closerOfThePresent{closer, x.c.r.Context()})
	case x.f == trailOne:
		x.c.closers = []io.Closer{closer}
	default:
		x.c.closers = append(x.c.closers, closer)
	}
	return true
}

// closerOfThePresent does nothing for a client that is gone.
type closerOfThePresent struct {
	io.Closer
	ctx context.Context
}

func (c closerOfThePresent) Close() error {
	if c.ctx.Err() != nil {
		return nil
	}
	return c.Closer.Close()
}
