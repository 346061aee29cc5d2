package faulttest

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-go/headgate/conformance/redistest"
)

// scene is one run of a case: what it started, and what it found wrong.
type scene struct {
	tb       *quietTB
	newStore NewStoreOn
	label    string // of the goroutines of its services
	pulse    pulse
	server   *redistest.Server
	nodes    *redistest.Nodes // of a cluster
	proxy    *redistest.Proxy // nil where services talk to the server directly
	line     *line            // the same
	vain     atomic.Bool      // the run says nothing about the store

	mu       sync.Mutex
	failures []string
	notes    []string
}

var sceneCount atomic.Int64

// runs is how often a case is run, at most, until its run says something about the store.
const runs = 3

// conclude runs a case until it can be said what is wrong.
func conclude(tb testing.TB, c Case, newStore NewStoreOn) *scene {
	tb.Helper()
	for range runs - 1 {
		if s := execute(tb, c, newStore); !s.vain.Load() {
			return s
		}
		tb.Logf("%s: the machine stood still; once more", c.Name)
	}
	return execute(tb, c, newStore)
}

// execute runs a case in a goroutine of its own, so that what ends it (a client that cannot be made, a server that does
// not start) ends nothing else.
func execute(tb testing.TB, c Case, newStore NewStoreOn) *scene {
	tb.Helper()
	s := &scene{newStore: newStore, label: strconv.FormatInt(sceneCount.Add(1), 10)}
	s.tb = &quietTB{TB: tb, s: s}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer s.tb.cleanup()
		defer s.pulse.start()()
		defer func() {
			if v := recover(); v != nil {
				s.failf("the case cannot go on: %v", v)
			}
		}()
		c.run(s)
	}()
	<-done
	return s
}

// enough failures tell what is wrong; two hundred requests would say it two hundred times.
const enough = 8

func (s *scene) failf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.failures) < enough {
		s.failures = append(s.failures, fmt.Sprintf(format, args...))
	}
}

// fatalf notes a failure and ends the case.
func (s *scene) fatalf(format string, args ...any) {
	s.failf(format, args...)
	runtime.Goexit()
}

// notef is logged beside the case: figures.
func (s *scene) notef(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// direct starts a server that services talk to without anything between, and returns its address.
func (s *scene) direct() string {
	s.server = redistest.Start(s.tb, redistest.Single)
	return s.server.Addr()
}

// proxied starts a server behind a proxy, and returns the proxy's address.
func (s *scene) proxied() string {
	s.proxy = redistest.StartProxy(s.tb, s.direct())
	return s.proxy.Addr()
}

// do sends a command to the server itself.
func (s *scene) do(args ...string) any { return s.ask(s.server, args...) }

// ask sends a command to one of the servers.
func (s *scene) ask(server *redistest.Server, args ...string) any {
	reply, err := server.Do(args...)
	if err != nil {
		s.fatalf("%q: %v", args, err)
	}
	return reply
}

// scriptCalls returns how many scripts the server was asked to run, and how many of them with their text.
func (s *scene) scriptCalls() (all, withText int64) {
	stats, err := s.server.CommandStats()
	if err != nil {
		s.fatalf("INFO commandstats: %v", err)
	}
	return stats["evalsha"].Calls + stats["eval"].Calls, stats["eval"].Calls
}

// connections returns how many connections the services hold.
func (s *scene) connections() int {
	switch {
	case s.proxy != nil:
		return s.proxy.Open()
	case s.line != nil:
		return int(s.line.open.Load())
	case s.nodes != nil:
		return s.clientsOf(s.nodes.Servers())
	case s.server.Sentinels() != nil:
		return s.clientsOf(append(s.server.Peers(), s.server))
	}
	list, _ := s.do("CLIENT", "LIST").(string)
	return strings.Count(list, "\n") - 1 // our own
}

// clientsOf returns how many clients some servers have.
func (s *scene) clientsOf(servers []*redistest.Server) int {
	n := 0
	for _, server := range servers {
		clients, err := server.Clients()
		if err != nil {
			s.fatalf("the clients of a server: %v", err)
		}
		n += clients
	}
	return n
}

// until asks until ok is true and returns how long that took; false if it was not within the time.
func until(within time.Duration, ok func() bool) (time.Duration, bool) {
	return poll(5*time.Millisecond, within, ok)
}

func poll(every, within time.Duration, ok func() bool) (time.Duration, bool) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for start := time.Now(); ; <-ticker.C {
		if ok() {
			return time.Since(start), true
		}
		if time.Since(start) > within {
			return time.Since(start), false
		}
	}
}

// quietTB collects what servers and factories report, so that [Failures] can return it, and ends them with the case.
type quietTB struct {
	testing.TB
	s        *scene
	mu       sync.Mutex
	cleanups []func()
}

func (q *quietTB) Helper()                   {}
func (q *quietTB) Error(args ...any)         { q.s.failf("%s", fmt.Sprint(args...)) }
func (q *quietTB) Errorf(f string, a ...any) { q.s.failf(f, a...) }
func (q *quietTB) Fail()                     { q.s.failf("the factory failed") }
func (q *quietTB) Log(args ...any)           { q.s.notef("%s", fmt.Sprint(args...)) }
func (q *quietTB) Logf(f string, a ...any)   { q.s.notef(f, a...) }

func (q *quietTB) Failed() bool {
	q.s.mu.Lock()
	defer q.s.mu.Unlock()
	return len(q.s.failures) > 0
}

func (q *quietTB) FailNow() {
	q.Fail()
	runtime.Goexit()
}

func (q *quietTB) Fatal(args ...any) {
	q.Error(args...)
	runtime.Goexit()
}

func (q *quietTB) Fatalf(f string, a ...any) {
	q.Errorf(f, a...)
	runtime.Goexit()
}

// Cleanup runs f at the end of the case.
func (q *quietTB) Cleanup(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.cleanups = append(q.cleanups, f)
}

func (q *quietTB) cleanup() {
	for {
		q.mu.Lock()
		n := len(q.cleanups)
		if n == 0 {
			q.mu.Unlock()
			return
		}
		f := q.cleanups[n-1]
		q.cleanups = q.cleanups[:n-1]
		q.mu.Unlock()
		f()
	}
}
