package adaptertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/memory"
)

// clock is the time of a case's gates: it moves when the case says so.
type clock struct{ passed atomic.Int64 }

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (c *clock) now() time.Time          { return epoch.Add(time.Duration(c.passed.Load())) }
func (c *clock) advance(d time.Duration) { c.passed.Add(int64(d)) }

// seen is what an observer keeps of an event. The event's own request is the framework's again when Observe returns, so
// the path is copied; decisions and route may be kept, and are looked at later, when buffers have been used again.
type seen struct {
	path, route string
	decisions   []gate.Decision
	refused     int // the refusal's status; 0 where the request passed
	result      gate.Result
	err         error
	panicked    bool
}

// outcomes is "policy outcome", or "policy outcome (reason)", joined by ", ".
func (s seen) outcomes() string {
	var list []string
	for _, d := range s.decisions {
		text := d.Policy + " " + d.Outcome.String()
		if reason := d.Reason.String(); reason != "" {
			text += " (" + reason + ")"
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// keys are the digests of the keys, joined by ", ".
func (s seen) keys() string {
	var list []string
	for _, d := range s.decisions {
		list = append(list, d.KeyDigest())
	}
	return strings.Join(list, ", ")
}

// failed says what gate.Result says of failure.
func (s seen) failed() bool { return s.panicked || s.err != nil || s.result.Status >= 400 }

// watcher is the observer of a case's gates.
type watcher struct {
	mu     sync.Mutex
	events []seen
	more   chan struct{} // closed, and replaced, at every event
	held   int           // slots, by the events of leases
	least  int           // the lowest that held ever was
	ends   map[string]int
}

func newWatcher() *watcher { return &watcher{more: make(chan struct{}), ends: map[string]int{}} }

func (w *watcher) Observe(e gate.Event) {
	switch e.Kind {
	case gate.LeaseStarted:
		w.lease(1, "")
		return
	case gate.LeaseEnded:
		w.lease(-1, e.End.String())
		return
	case gate.Decided:
	default:
		return
	}
	s := seen{path: strings.Clone(e.Request.Path()), route: e.Route, decisions: e.Decisions, result: e.Result, err: e.Err, panicked: e.Panicked}
	if e.Refusal != nil {
		s.refused = e.Refusal.Status
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, s)
	w.changed()
}

func (w *watcher) lease(change int, end string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held += change
	w.least = min(w.least, w.held)
	if end != "" {
		w.ends[end]++
	}
	w.changed()
}

// changed wakes who waits; w.mu is held.
func (w *watcher) changed() {
	close(w.more)
	w.more = make(chan struct{})
}

// await returns the events so far when there are at least n: a handler's end may come after its response.
func (w *watcher) await(n int, patience time.Duration) (list []seen) {
	w.until(patience, func() bool {
		list = w.events[:len(w.events):len(w.events)]
		return len(list) >= n
	})
	return list
}

// settled returns how many slots are held, 0 if that is so soon, and the lowest that this number ever was.
func (w *watcher) settled(patience time.Duration) (held, least int) {
	w.until(patience, func() bool {
		held, least = w.held, w.least
		return held == 0
	})
	return held, least
}

// until calls done, with w.mu held, at every event until it says so.
func (w *watcher) until(patience time.Duration, done func() bool) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		w.mu.Lock()
		enough, more := done(), w.more
		w.mu.Unlock()
		if enough {
			return
		}
		select {
		case <-more:
		case <-timer.C:
			return
		}
	}
}

// logBuffer keeps what gates log.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// switchStore is an in-process store that can be out of order.
type switchStore struct {
	driver.Store
	broken atomic.Bool
}

func newSwitchStore(broken bool) *switchStore {
	s := &switchStore{Store: memory.New()}
	s.broken.Store(broken)
	return s
}

var errDown = errors.New("adaptertest: the store is down on purpose")

func (s *switchStore) Decide(ctx context.Context, now time.Time, batch []driver.Entry) error {
	if s.broken.Load() {
		return fmt.Errorf("decide: %w", errDown)
	}
	return s.Store.Decide(ctx, now, batch)
}
