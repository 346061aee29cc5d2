package driver

import (
	"context"
	"sync"
	"time"
)

// WithDeadlineOnly returns a context with the values of parent that ends at a time and by nothing else: parent's
// cancellation does not reach it. For a store that keeps deadlines itself (see [DeadlineOnly]) no timer and no channel is
// made, which is most of what a context.WithTimeout costs; whoever asks for Done gets both.
func WithDeadlineOnly(parent context.Context, at time.Time) context.Context {
	return &deadline{Context: parent, at: at}
}

// DeadlineOnly returns when ctx ends if that is all that can end it: a store that keeps the deadline need not wait for
// Done then.
func DeadlineOnly(ctx context.Context) (at time.Time, ok bool) {
	if d, ok := ctx.(*deadline); ok {
		return d.at, true
	}
	return time.Time{}, false
}

type deadline struct {
	context.Context // for values
	at              time.Time
	once            sync.Once
	done            chan struct{}
}

func (d *deadline) Deadline() (time.Time, bool) { return d.at, true }

func (d *deadline) Done() <-chan struct{} {
	d.once.Do(func() {
		d.done = make(chan struct{})
		time.AfterFunc(time.Until(d.at), func() { close(d.done) })
	})
	return d.done
}

func (d *deadline) Err() error {
	if time.Now().Before(d.at) {
		return nil
	}
	return context.DeadlineExceeded
}
