package faulttest

import (
	"fmt"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
)

// PauseLength is long enough for a pause to be seen and short enough for every run of the tests.
const PauseLength = 6 * time.Second

// RunPause stops a server's process under load for a while (SIGSTOP, SIGCONT), in front of a gate with three limiters, and
// tells how long what took. [PauseLength] is what tests use; half a minute is for looking at the figures:
//
//	go test -v -run TestPause -faulttest.pause=30s
//
// where the test has a flag of that name.
func RunPause(t *testing.T, newStore NewStore, length time.Duration) {
	runAll(t, []Case{pauseCase(length)}, alone(newStore), together)
}

// pauseCase is the case of RunPause. Between the start and the end of the load lie a second of health, the pause, and what
// it takes to come back.
func pauseCase(length time.Duration) Case {
	return Case{Name: "BR064_BR071_stopped_under_load", Waits: true,
		Why: "a server that hangs makes goroutines, connections and log lines pile up in whoever waits for it, and nobody sees that limits are off",
		run: func(s *scene) {
			limiters := []gate.Limiter{limited("x", plenty), limited("y", plenty), limited("z", plenty)}
			sv := s.serve(s.direct(), gate.Config{Limiters: limiters})
			sv.settled("before the pause", "a", patience)
			sv.warmUp()
			start := sv.atRest()

			var replies []*reply
			stop, ended := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(ended)
				replies = sv.loadUntil(stop)
			}()
			// Load makes the store and the server of HTTP grow, too.
			_, _ = until(time.Second, func() bool { return false })
			n, peak := sv.watch.count(), 0
			s.server.Pause()
			began := time.Now()
			_, _ = poll(500*time.Millisecond, length, func() bool {
				now, _ := sv.goroutines()
				peak = max(peak, now)
				return false
			})
			paused := time.Since(began)
			failures := sv.watch.since(n)
			s.server.Resume()
			took := sv.settled("after the pause", "a", backWithin)
			close(stop)
			<-ended

			sv.allFailed(failures)
			now, left := sv.backAt(start, backWithin)
			sv.auditCharge("a", false)
			sv.audit(len(limiters))
			lines := sv.logs.byKind()
			if len(lines[back]) == 0 || len(lines["class timeout"]) == 0 || lines["class timeout"][0].at.Sub(began) > 2*time.Second {
				sv.failf("the log does not tell the outage at once, or not its end:\n%s", sv.tail())
			}
			longest, most := slowest(replies, 0.99)
			s.notef("stopped for %v at 100 requests/s: %d requests, of them %d during the pause; 99 of 100 answered within %v, all within %v; "+
				"enforced again after %v", paused.Round(time.Millisecond), len(replies), len(failures), most.Round(time.Millisecond),
				longest.Round(time.Millisecond), took.Round(time.Millisecond))
			s.notef("at the start %+v, at most %d goroutines, %v after the end %+v; lines of the log: %s", start, peak,
				left.Round(time.Millisecond), now, countLines(lines))
		}}
}

// loadUntil sends 100 requests a second until stop is closed.
func (sv *service) loadUntil(stop <-chan struct{}) []*reply {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	var mu sync.Mutex
	var replies []*reply
	var running sync.WaitGroup
	for {
		select {
		case <-stop:
			running.Wait()
			return replies
		case <-ticker.C:
			running.Go(func() {
				r := sv.get("a")
				mu.Lock()
				defer mu.Unlock()
				replies = append(replies, r)
			})
		}
	}
}

// allFailed checks events during a pause. The first few may be answers that were under way.
func (sv *service) allFailed(events []seen) {
	open := 0
	for i, e := range events {
		switch class := e.class(); class {
		case driver.ClassTimeout, driver.ClassOverflow:
			open++
		default:
			if i >= 5 {
				sv.failf("during the pause: a failure of class %q", class)
			}
		}
	}
	if open == 0 {
		sv.failf("%d requests during the pause, and none of them failed open", len(events))
	}
}

// countLines tells how many lines of which kind there are.
func countLines(kinds map[string][]logLine) string {
	var list []string
	for kind, lines := range kinds {
		list = append(list, fmt.Sprintf("%d of %q", len(lines), strings.TrimPrefix(kind, "headgate: ")))
	}
	sort.Strings(list)
	return strings.Join(list, ", ")
}
