package redisscript

import (
	"context"
	"sync/atomic"
	"time"
)

// job is one caller's request on its way through the queue. While it is on the way it belongs to the queue and to the
// sender that takes it; the caller gets it back through done, or leaves it behind. A job left behind is not used again.
type job struct {
	request  request
	slot     int             // of its keys, in a cluster
	commands [][]string      // of a plain job, which asks for nothing but these
	now      int64           // microseconds; 0 for the server's clock
	ctx      context.Context // for its values
	asked    moment
	deadline moment
	err      error

	state      atomic.Int32
	done       chan outcome // receives once, after the state waiting or taken ended
	prev, next *job         // in the list of waiting or of taken jobs
}

// moment is a time since epoch, cheaper to read and to compare than a time.Time. It may be negative: on the clock of a
// testing/synctest bubble it is the year 2000.
type moment time.Duration

var epoch = time.Now()

func momentOf(t time.Time) moment { return moment(t.Sub(epoch)) }

func now() moment { return moment(time.Since(epoch)) }

// States of a job.
const (
	waiting  = iota // in the queue
	taken           // by a sender
	finished        // err and request are the caller's to read, once it is told
	left            // the caller is gone; in the queue or with a sender
)

// outcome is what a caller is told.
type outcome uint8

const (
	answered   outcome = iota // err and request tell the rest
	overflowed                // the deadline passed in the queue; the job is nobody's
	timedOut                  // the deadline passed with a sender; the job is left to it
)

// newJob returns an empty job. Jobs are pooled by queue, not by process: their channels may belong to a testing/synctest
// bubble.
func (q *queue) newJob(now int64) *job {
	j, ok := q.pool.Get().(*job)
	if !ok {
		j = &job{done: make(chan outcome, 1)}
	}
	j.now = now
	return j
}

// recycle gives a job back whose caller has what it wanted.
func (q *queue) recycle(j *job) {
	j.request.reset()
	j.commands, j.ctx, j.err, j.slot = nil, nil, nil, 0
	j.state.Store(waiting)
	q.pool.Put(j)
}

// plain says that a job is made of commands instead of claims.
func (j *job) plain() bool { return len(j.commands) > 0 }

// key returns one of the keys that a job is about.
func (j *job) key() string {
	if j.plain() {
		return j.commands[0][1]
	}
	return j.request.claims[0].key
}

// deliver hands a job that is over back to its caller, or drops it if there is none.
func (j *job) deliver() {
	if j.state.Load() == finished {
		j.done <- answered
	}
}

// list is a list of jobs.
type list struct{ head, tail *job }

func (l *list) push(j *job) {
	j.prev, j.next = l.tail, nil
	if l.tail == nil {
		l.head = j
	} else {
		l.tail.next = j
	}
	l.tail = j
}

func (l *list) remove(j *job) {
	if j.prev == nil {
		l.head = j.next
	} else {
		j.prev.next = j.next
	}
	if j.next == nil {
		l.tail = j.prev
	} else {
		j.next.prev = j.prev
	}
	j.prev, j.next = nil, nil
}
