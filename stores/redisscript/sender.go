package redisscript

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// sender is a goroutine that makes calls, and what it uses for each again.
type sender struct {
	queue  *queue
	wake   chan struct{} // closed to end it
	given  []*job        // by the queue, under its lock or before the wake
	began  moment        // when that was
	parked moment        // of an idle one, when its last call began

	jobs  []*job               // of the calls under way
	calls []*call              // that they were dealt out to
	again []*job               // those that get a call of their own
	wire  []Call               // the calls as the client sees them
	fast  map[[4]uint64]string // arguments of the script's fast path
	until atomic.Int64         // the moment at which the calls under way end, 0 if there are none
	over  chan struct{}        // closed then: the Done of their context
}

func newSender(q *queue) *sender {
	return &sender{queue: q, wake: make(chan struct{}, 1), fast: map[[4]uint64]string{}}
}

func (s *sender) run() {
	for range s.wake {
		for again := true; again; {
			s.send()
			// First back into the queue, then the answers: a caller that comes back at once finds this sender, and the
			// caller's goroutine need not wait until this one is done.
			var end bool
			again, end = s.queue.next(s)
			for i, j := range s.jobs {
				j.deliver()
				s.jobs[i] = nil
			}
			s.jobs = s.jobs[:0]
			if end {
				return
			}
		}
	}
}

// send makes the calls for what it was given, and leaves the jobs in s.jobs with their errors.
func (s *sender) send() {
	s.jobs = append(s.jobs, s.given...)
	clear(s.given)
	s.given = s.given[:0]
	if len(s.jobs) == 0 {
		return
	}
	deadline := s.jobs[0].deadline
	for _, j := range s.jobs {
		deadline = max(deadline, j.deadline)
	}
	s.decide(s.jobs, deadline)
	for i := range s.again {
		s.decide(s.again[i:i+1], deadline)
		s.again[i] = nil
	}
	s.again = s.again[:0]
}

// decide makes the calls for some jobs. Where one request may be to blame for the failure of a call that it shared, they all
// are to be sent again, each for itself: nothing was executed.
func (s *sender) decide(jobs []*job, deadline moment) {
	if first := jobs[0]; first.plain() { // then it is the only one
		first.err = s.within(first, deadline)
		return
	}
	s.deal(jobs)
	err := s.within(jobs[0], deadline)
	for _, c := range s.calls {
		if err != nil {
			c.err = err
		}
		shared := len(c.jobs) > 1 && hitsOthers(c.err)
		for _, j := range c.jobs {
			if j.err = c.err; shared {
				s.again = append(s.again, j)
			}
		}
		c.done()
	}
}

// grace is what a call gets beyond the deadline of its callers, who leave all the same. Clients dial and shake hands within
// a call's time and close a connection whose answer is late: with 50 ms for both, a server that is far away, or speaks
// TLS, would never be reached again once its connections were lost.
const grace = moment(time.Second)

// within lets the client send what there is, a plain job's commands or the calls, until the deadline. What goes wrong with a
// call is noted there; an error, which is of type *driver.Error, concerns everything.
func (s *sender) within(first *job, deadline moment) (err error) {
	deadline += grace
	defer func() {
		if !s.until.CompareAndSwap(int64(deadline), 0) {
			s.over = nil // closed, or about to be
		}
		// A client's hook may panic. On the caller's goroutine its framework would have caught that; here nobody would.
		if p := recover(); p != nil {
			err = &driver.Error{Class: driver.ClassOther, Err: fmt.Errorf("redisscript: the client panicked: %v", p)}
		}
	}()
	if s.over == nil {
		s.over = make(chan struct{})
	}
	s.until.Store(int64(deadline))
	ctx := &callContext{Context: first.ctx, deadline: deadline, over: s.over}
	client := s.queue.store.client
	if !first.plain() {
		s.evaluate(ctx, client)
		return nil
	}
	if err := client.Pipe(ctx, first.commands); err != nil {
		return Classify(err)
	}
	return nil
}

// alarm ends the context of the call under way if its time is over; the watch calls it.
func (s *sender) alarm(at moment) {
	until := s.until.Load()
	if until == 0 || at < moment(until) {
		return
	}
	// Read before the swap: after it the sender may forget the channel.
	if over := s.over; s.until.CompareAndSwap(until, 0) {
		close(over)
	}
}

// callContext is the context of one call: the values of a caller's, a deadline, and no cancellation but by that. The
// standard library's would cost five allocations a call for the same.
type callContext struct {
	context.Context // for its values
	deadline        moment
	over            chan struct{}
}

// Deadline implements context.Context.
func (c *callContext) Deadline() (time.Time, bool) { return epoch.Add(time.Duration(c.deadline)), true }

// Done implements context.Context.
func (c *callContext) Done() <-chan struct{} { return c.over }

// Err implements context.Context.
func (c *callContext) Err() error {
	select {
	case <-c.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
