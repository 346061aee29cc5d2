package gate_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
)

// clock is a script's time.
type clock struct{ at time.Time }

func newClock() *clock                   { return &clock{at: time.Unix(1_800_000_000, 0)} }
func (c *clock) now() time.Time          { return c.at }
func (c *clock) advance(d time.Duration) { c.at = c.at.Add(d) }

// newGate makes a gate that is closed with the test.
func newGate(t testing.TB, c gate.Config) *gate.Gate {
	t.Helper()
	g, err := gate.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return g
}

// brokenStore fails every call.
type brokenStore struct{ err error }

func (s brokenStore) Decide(context.Context, time.Time, []driver.Entry) error { return s.err }
func (s brokenStore) Apply(context.Context, time.Time, []driver.Change) error { return s.err }
func (s brokenStore) Close() error                                            { return nil }

var errDown = &driver.Error{Class: driver.ClassTimeout, Err: errors.New("no answer")}

// events collects what an observer is told.
type events struct {
	mu   sync.Mutex
	list []gate.Event
}

func (e *events) Observe(ev gate.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, ev)
}

func (e *events) last(t testing.TB) gate.Event {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.list) == 0 {
		t.Fatal("nothing was observed")
	}
	return e.list[len(e.list)-1]
}

// lines is a logger that keeps what was written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// call is a request with values.
func call(operation, addr string, pairs ...any) gate.Call {
	c := gate.Call{Operation: operation, Addr: addr, Values: map[string]any{}}
	for i := 0; i < len(pairs); i += 2 {
		c.Values[pairs[i].(string)] = pairs[i+1]
	}
	return c
}

// admitted asks n times and counts the admissions.
func admitted(g *gate.Gate, r gate.Request, n int) (allowed int) {
	for range n {
		a := g.Admit(context.Background(), r)
		if a.Allowed() {
			allowed++
		}
		a.Done(nil)
	}
	return allowed
}
