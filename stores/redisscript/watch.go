package redisscript

import "time"

// watch keeps the deadlines of a queue: one timer that ticks while there is something to watch, instead of two timers
// started and stopped for every decision.
type watch struct {
	timer *time.Timer
	armed bool
	slow  bool // armed for a long time: there are idle senders only
}

const (
	// tick is how late a deadline may be noticed.
	tick = time.Millisecond
	// idleTime is how long a sender stays without work.
	idleTime = 2 * time.Second
)

// arm makes sure that the watch ticks; q.mu is held.
func (q *queue) arm() {
	w := &q.watch
	if w.armed && !w.slow {
		return
	}
	w.armed, w.slow = true, false
	if w.timer == nil {
		w.timer = time.AfterFunc(tick, q.look)
	} else {
		w.timer.Reset(tick)
	}
}

// look does what is due: jobs that are too late, jobs that wait for long, calls that are too late, senders to end.
func (q *queue) look() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.watch.armed {
		return // stopped in the same moment
	}
	at := now()
	for j := q.waits.head; j != nil; {
		next := j.next
		if at >= j.deadline {
			q.expire(j)
		}
		j = next
	}
	for j := q.taken.head; j != nil; j = j.next {
		if at >= j.deadline && j.state.CompareAndSwap(taken, left) {
			j.done <- timedOut
			q.store.late(j.key())
		}
	}
	for q.waits.head != nil && at-q.waits.head.asked >= q.patience() {
		s := q.find(at)
		if s == nil {
			break
		}
		s.wake <- struct{}{}
	}
	for _, s := range q.senders {
		s.alarm(at)
	}
	n := 0
	for n < len(q.idle) && at-q.idle[n].parked >= moment(idleTime) {
		n++
	}
	q.end(n)
	w := &q.watch
	switch {
	case q.waits.head != nil || q.taken.head != nil:
		w.timer.Reset(tick)
	case len(q.idle) > 0:
		w.slow = true
		w.timer.Reset(idleTime - time.Duration(at-q.idle[0].parked))
	default:
		w.armed = false
	}
}

func (w *watch) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
	w.armed = false
}
