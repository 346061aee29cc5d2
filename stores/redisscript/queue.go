package redisscript

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// queue is where decisions wait for a sender.
//
// A sender is a goroutine that makes calls: a caller must be able to leave at its deadline although a client may not
// come back for seconds. The first job gets one at once, later ones get another when as much waits as each busy sender has, up
// to a few (see due). Otherwise a job waits for the first that becomes free, which takes everything that waits then: that is
// what makes packs. More senders start when a whole pack waits, or a job waits for long, since calls may be slow or stuck;
// never more than most.
type queue struct {
	store *Store
	most  int       // senders
	pack  int       // claims that may share a call; a sender takes up to packClaims at a time, and pipelines the calls
	pool  sync.Pool // of *job

	mu      sync.Mutex
	closed  bool
	waits   list
	claims  int  // of the jobs that wait
	taken   list // what senders hold, until their call came back
	busy    int  // senders that have something to send
	sent    int  // claims of the jobs that they hold
	senders []*sender
	idle    []*sender // those of them without work, the last that worked at the end
	took    moment    // how long calls take, averaged
	running sync.WaitGroup
	watch   watch
}

const (
	// eager is how many senders are busy before jobs wait for one: with one, every call would be waited for in full.
	eager = 2
	// eagerPipelines is the same where calls are small and go in pipelines: there is less to gain from waiting. Measured
	// with 16 and 64 callers, between 2 and 12.
	eagerPipelines = 4
	// patience is how long a job waits before it gets another sender: longer than a call takes on a near network. Where
	// calls take longer it is one and a half of them, up to a bound that leaves a call its time within the deadline:
	// with less, every job would ask for a sender of its own and packs would scatter over connections that are not there.
	patience        = 2 * time.Millisecond
	longestPatience = 10 * time.Millisecond
)

// eager is how many senders of the queue are busy before jobs wait for one. In a cluster each lane has some.
func (q *queue) eager() int {
	if q.pack < packClaims && !q.store.cluster {
		return eagerPipelines
	}
	return eager
}

// due says whether what waits, which is something, is worth another sender; q.mu is held. Callers that were answered together
// come back together: a sender that goes with the first of them makes a small call, and the rest wait for the next one. The
// server decides one after another, so nothing is lost by waiting until a call is as large as those under way. Commands share
// no call.
func (q *queue) due() bool {
	return q.claims >= packClaims || q.busy < q.eager() && (q.claims*q.busy >= q.sent || q.waits.head.plain())
}

// patience is how long a job waits for one of the busy senders; q.mu is held.
func (q *queue) patience() moment {
	return min(max(q.took+q.took/2, moment(patience)), moment(longestPatience))
}

// wait waits until a job was done. After an error the job is not to be touched any more.
func (q *queue) wait(ctx context.Context, j *job) error {
	if _, ok := driver.DeadlineOnly(ctx); ok || ctx.Done() == nil {
		return j.outcome(<-j.done) // the watch keeps the deadline
	}
	select {
	case o := <-j.done:
		return j.outcome(o)
	case <-ctx.Done():
		return q.leave(j, ctx.Err())
	}
}

func (j *job) outcome(o outcome) error {
	switch o {
	case overflowed:
		return errOverflow
	case timedOut:
		return errTimeout
	}
	return j.err
}

var (
	errOverflow = &driver.Error{Class: driver.ClassOverflow, Err: fmt.Errorf("no sender was free: %w", context.DeadlineExceeded)}
	errTimeout  = &driver.Error{Class: driver.ClassTimeout, Err: fmt.Errorf("no answer in time: %w", context.DeadlineExceeded)}
)

// open returns an error once the queue is closed.
func (q *queue) open() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return driver.ErrClosed
	}
	return nil
}

// submit puts a job into the queue, and finds a sender if it is one's turn. After an error the job is nobody's.
func (q *queue) submit(j *job) error {
	if j.asked >= j.deadline {
		return errOverflow
	}
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return driver.ErrClosed
	}
	q.waits.push(j)
	q.claims += len(j.request.claims)
	var s *sender
	if q.due() {
		s = q.find(j.asked)
	}
	q.arm()
	q.mu.Unlock()
	if s != nil {
		s.wake <- struct{}{}
	}
	return nil
}

// find gives what waits to an idle sender or to a new one, which is then to be woken; nil if there are enough.
func (q *queue) find(now moment) *sender {
	var s *sender
	switch n := len(q.idle); {
	case n > 0: // the one that worked last, so that the others can end
		s, q.idle = q.idle[n-1], q.idle[:n-1]
	case len(q.senders) < q.most:
		s = newSender(q)
		q.senders = append(q.senders, s)
		q.running.Go(s.run)
	default:
		return nil
	}
	q.busy++
	s.began = now
	q.take(s, now)
	return s
}

// take gives a sender the first job that waits, and those that can share a call with it. There may be none: some may be too
// late. A plain job has a call to itself; decisions behind it need not wait for that.
func (q *queue) take(s *sender, now moment) {
	claims := 0
	for j, next := q.waits.head, (*job)(nil); j != nil; j = next {
		next = j.next
		if now >= j.deadline {
			q.expire(j)
			continue
		}
		n := len(j.request.claims)
		if len(s.given) > 0 {
			if j.plain() {
				continue
			}
			if s.given[0].plain() || claims+n > packClaims || j.now != s.given[0].now {
				break
			}
		}
		q.waits.remove(j)
		q.claims -= n
		claims += n
		q.sent += n
		q.taken.push(j)
		j.state.CompareAndSwap(waiting, taken)
		s.given = append(s.given, j)
	}
}

// expire takes a job that is too late from the queue.
func (q *queue) expire(j *job) {
	q.waits.remove(j)
	q.claims -= len(j.request.claims)
	if j.state.CompareAndSwap(waiting, finished) {
		j.done <- overflowed
	}
}

// next takes the jobs of a call that came back from a sender and gives it what waits, or makes it idle: then it is to
// wait for its wake. end ends it.
func (q *queue) next(s *sender) (again, end bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := now()
	q.over(s.jobs, at)
	q.took += (at - s.began - q.took) / 8
	q.busy--
	if head := q.waits.head; head != nil && (q.due() || at-head.asked >= q.patience() || q.closed) {
		q.busy++
		s.began = at
		q.take(s, at)
		return true, false
	}
	if q.closed {
		q.drop(s)
		return false, true
	}
	s.parked = at
	q.idle = append(q.idle, s)
	return false, false
}

// over ends the jobs of a call that came back. Slots that were taken for callers who left are given back, by a job that nobody
// waits for: its callers were told that the store failed.
func (q *queue) over(jobs []*job, at moment) {
	var list leaseList
	var ctx context.Context
	for _, j := range jobs {
		q.taken.remove(j)
		q.sent -= len(j.request.claims)
		if !j.state.CompareAndSwap(taken, finished) {
			j.request.forsaken(j.err, &list)
			ctx = j.ctx
		}
	}
	if len(list.commands) == 0 {
		return
	}
	j := &job{commands: list.commands, ctx: ctx, asked: at, deadline: at + moment(q.store.timeout)}
	j.state.Store(left)
	q.waits.push(j)
	q.arm()
}

// drop forgets a sender that ends.
func (q *queue) drop(s *sender) {
	for i, other := range q.senders {
		if other == s {
			last := len(q.senders) - 1
			q.senders[i], q.senders[last] = q.senders[last], nil
			q.senders = q.senders[:last]
			return
		}
	}
}

// leave is how a caller goes away without an answer, or with one that came in the same moment.
func (q *queue) leave(j *job, cause error) error {
	canceled := errors.Is(cause, context.Canceled)
	q.mu.Lock()
	inQueue := j.state.Load() == waiting
	switch {
	case inQueue && canceled:
		j.state.Store(left) // it is decided, and counted, all the same
	case inQueue:
		q.waits.remove(j)
		q.claims -= len(j.request.claims)
	}
	q.mu.Unlock()
	switch {
	case !inQueue && !j.state.CompareAndSwap(taken, left):
		return j.outcome(<-j.done)
	case canceled:
		return &driver.Error{Class: driver.ClassOther, Err: cause}
	case inQueue:
		return errOverflow
	}
	q.store.late(j.key())
	return errTimeout
}

func (q *queue) close() {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		q.end(len(q.idle))
	}
	q.mu.Unlock()
	q.running.Wait()
	q.mu.Lock()
	q.watch.stop()
	q.mu.Unlock()
}

// end ends the first n idle senders: those that have been idle for longest.
func (q *queue) end(n int) {
	for _, s := range q.idle[:n] {
		close(s.wake)
		q.drop(s)
	}
	rest := copy(q.idle, q.idle[n:])
	clear(q.idle[rest:])
	q.idle = q.idle[:rest]
}
