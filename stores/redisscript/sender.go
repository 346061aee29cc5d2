package redisscript

import (
	"context"
	"fmt"
	"strconv"
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

	jobs     []*job // of the call under way
	requests []*request
	pack     pack
	args     [2]string
	until    atomic.Int64  // the moment at which the call under way ends, 0 if there is none
	over     chan struct{} // closed then: the Done of its context
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
				j.finish()
				s.jobs[i] = nil
			}
			s.jobs = s.jobs[:0]
			if end {
				return
			}
		}
	}
}

// send makes one call of what it was given, and leaves the jobs in s.jobs with their errors.
func (s *sender) send() {
	s.jobs = append(s.jobs, s.given...)
	clear(s.given)
	s.given = s.given[:0]
	if len(s.jobs) == 0 {
		return
	}
	deadline := s.jobs[0].deadline
	for _, j := range s.jobs {
		s.requests = append(s.requests, &j.request)
		deadline = max(deadline, j.deadline)
	}
	err := s.call(s.jobs[0], deadline)
	alone := len(s.jobs) > 1 && hitsOthers(err)
	for _, j := range s.jobs {
		if j.err = err; alone {
			s.requests = append(s.requests[:0], &j.request)
			j.err = s.call(j, deadline)
		}
	}
	clear(s.requests)
	s.requests = s.requests[:0]
}

// grace is what a call gets beyond the deadline of its callers, who leave all the same. Clients dial and shake hands within
// a call's time and close a connection whose answer is late: with 50 ms for both, a server that is far away, or speaks
// TLS, would never be reached again once its connections were lost.
const grace = moment(time.Second)

// call decides s.requests. An error is of type *driver.Error.
func (s *sender) call(first *job, deadline moment) (err error) {
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
	s.args[0] = s.pack.encode(s.requests)
	args := s.args[:1]
	if first.now != 0 {
		s.args[1] = strconv.FormatInt(first.now, 10)
		args = s.args[:2]
	}
	if s.over == nil {
		s.over = make(chan struct{})
	}
	s.until.Store(int64(deadline))
	ctx := &callContext{Context: first.ctx, deadline: deadline, over: s.over}
	client := s.queue.store.client
	reply, err := client.EvalSHA(ctx, scriptSHA, s.pack.keys, args)
	if err != nil && Classify(err).Class == driver.ClassNoScript {
		// The answer says that nothing was executed, so it may be sent again.
		reply, err = client.Eval(ctx, script, s.pack.keys, args)
	}
	if err != nil {
		return Classify(err)
	}
	return s.pack.decode(reply)
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
