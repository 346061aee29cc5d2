package faulttest

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
)

// tenantHeader carries the key of a request. The names of tenants all contain secret, which no log line may.
const (
	tenantHeader = "X-Tenant"
	secret       = "secret-"
)

// seen is what is kept of an event: the rest is only valid while it is observed.
type seen struct {
	at        time.Time
	tenant    string
	decisions []gate.Decision
	refused   bool
	store     time.Duration // spent there
}

// class returns the class of the store's failure that limiters let the request through, or refused it, for.
func (e *seen) class() driver.Class {
	for _, d := range e.decisions {
		if d.Err != nil {
			return driver.ClassOf(d.Err)
		}
	}
	return ""
}

// watcher is an observer that remembers.
type watcher struct {
	mu      sync.Mutex
	events  []seen
	forget  bool     // decisions are not kept: there are too many
	breaker []string // the states it changed to
	opened  time.Time
}

// Observe implements gate.Observer.
func (w *watcher) Observe(e gate.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Kind {
	case gate.Decided:
		if w.forget {
			return
		}
		w.events = append(w.events, seen{at: time.Now(), tenant: e.Request.Header(tenantHeader), decisions: e.Decisions,
			refused: e.Refusal != nil, store: e.StoreDuration})
	case gate.BreakerChanged:
		if len(w.breaker) == 0 && e.Breaker == "closed" {
			return // how it begins, and no change
		}
		w.breaker = append(w.breaker, e.Breaker)
		if e.Breaker == "open" && w.opened.IsZero() {
			w.opened = time.Now()
		}
	}
}

// since returns the events after the first n.
func (w *watcher) since(n int) []seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]seen(nil), w.events[n:]...)
}

func (w *watcher) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.events)
}

// outcomes counts decisions by outcome, in all events.
func (w *watcher) outcomes() map[gate.Outcome]int {
	counts := map[gate.Outcome]int{}
	for _, e := range w.since(0) {
		for _, d := range e.decisions {
			counts[d.Outcome]++
		}
	}
	return counts
}

// changes returns the states that the breaker changed to.
func (w *watcher) changes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.breaker...)
}

// logLine is a line of a gate's log. Its kind is the class of the failure, or the message.
type logLine struct {
	at         time.Time
	kind, text string
}

// logs is a slog.Handler that keeps lines.
type logs struct {
	mu    sync.Mutex
	lines []logLine
}

// Enabled implements slog.Handler.
func (l *logs) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler; gates do not use it.
func (l *logs) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler; gates do not use it.
func (l *logs) WithGroup(string) slog.Handler { return l }

// Handle implements slog.Handler.
func (l *logs) Handle(_ context.Context, r slog.Record) error {
	line := logLine{at: time.Now(), kind: r.Message, text: r.Message}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "class" {
			line.kind = "class " + a.Value.String()
		}
		line.text += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return nil
}

// back is the kind of the line that tells a recovery.
const back = "headgate: the store answers again"

// all returns the lines so far.
func (l *logs) all() []logLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]logLine(nil), l.lines...)
}

// byKind returns the lines so far by kind.
func (l *logs) byKind() map[string][]logLine {
	kinds := map[string][]logLine{}
	for _, line := range l.all() {
		kinds[line.kind] = append(kinds[line.kind], line)
	}
	return kinds
}
