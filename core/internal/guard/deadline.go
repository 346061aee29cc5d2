package guard

import (
	"context"
	"sync"
	"time"
)

// withDeadline returns a context with parent's values and the deadline, but without parent's cancellation. Stores that
// keep a deadline themselves ask for Deadline only; for them no timer and no channel is made, which is what most of a
// context.WithTimeout costs. Whoever asks for Done gets both.
func withDeadline(parent context.Context, at time.Time) context.Context {
	return &deadline{Context: parent, at: at}
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
