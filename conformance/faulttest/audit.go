package faulttest

import (
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
)

// audit checks, at the end of a case, that what was seen agrees with what happened: every request is one event, every
// request that the store did not decide is counted as such, and the log has told it without flooding anybody.
func (sv *service) audit(limiters int) {
	asked := int(sv.asked.Load())
	if _, ok := until(patience, func() bool { return sv.watch.count() >= asked }); !ok || sv.watch.count() != asked {
		sv.failf("the observer saw %d events of %d requests", sv.watch.count(), asked)
	}
	outcomes := sv.watch.outcomes()
	if got, want := outcomes[gate.OutcomeFailOpen], limiters*(asked-int(sv.decided.Load())); got != want {
		sv.failf("%d decisions are counted as fail_open; %d were let through undecided", got, want)
	}
	for _, e := range sv.watch.since(0) {
		for _, d := range e.decisions {
			if (d.Outcome == gate.OutcomeFailOpen) != (d.Err != nil) || d.Err != nil && driver.ClassOf(d.Err) == "" {
				sv.failf("outcome %v with error %v", d.Outcome, d.Err)
			}
		}
	}
	sv.auditLog()
}

// auditLog checks the log's rate, kind by kind, and that nothing in it tells a key.
func (sv *service) auditLog() {
	seconds := int(time.Since(sv.began)/time.Second) + 2
	for kind, lines := range sv.logs.byKind() {
		if len(lines) > seconds {
			sv.failf("the log has %d lines of kind %q in %d s", len(lines), kind, seconds)
		}
		for _, line := range lines {
			if strings.Contains(line.text, secret) {
				sv.failf("the log tells a key: %s", line.text)
			}
		}
	}
}

// during checks the events of a fault, the ones after the first n: each failed, with one of the classes, or with one that
// a stalled machine makes of any fault. The first of them was logged at once.
func (sv *service) during(n int, classes []driver.Class) { sv.duringOf(sv.watch.since(n), classes) }

// duringOf is during for some of the events.
func (sv *service) duringOf(events []seen, classes []driver.Class) {
	allowance := sv.pulse.allowance()
	var first time.Time
	counts := map[driver.Class]int{}
	for _, e := range events {
		class := e.class()
		counts[class]++
		if first.IsZero() {
			first = e.at
		}
	}
	for class, count := range counts {
		if class != driver.ClassOverflow && class != driver.ClassTimeout && !slices.Contains(classes, class) {
			sv.failf("%d failures are of class %q; expected are %q", count, class, classes)
		}
	}
	if counts[classes[0]] == 0 && !slices.Contains(classes, driver.ClassTimeout) {
		sv.failf("no failure is of class %q; the counts are %v", classes[0], counts)
	}
	for kind, lines := range sv.logs.byKind() {
		if strings.HasPrefix(kind, "class ") && lines[0].at.Before(first.Add(time.Second+allowance())) {
			return
		}
	}
	sv.failf("the first failure was not logged within a second; the log:\n%s", sv.tail())
}

// charged returns what the tenant's bucket lost so far, from a reply that tells the rest.
func charged(r *reply, burst int) int {
	remaining, err := strconv.Atoi(r.header.Get("Ratelimit-Remaining"))
	if err != nil {
		return -1
	}
	return burst - remaining
}

// auditCharge checks that no request was charged more than once. It sends a last one, which must be decided.
func (sv *service) auditCharge(tenant string, wiped bool) {
	var r *reply
	if _, ok := until(patience, func() bool { r = sv.get(tenant); return r.decided() && r.status == http.StatusOK }); !ok {
		sv.fatalf("no request is decided any more")
	}
	got, most, least := charged(r, plenty), int(sv.asked.Load()), int(sv.passed.Load())
	if wiped {
		least = 1
	}
	if got < least || got > most {
		sv.failf("%d requests were charged; %d were sent, and %d of them told to be admitted", got, most, least)
	}
}

const (
	// profiled is how often goroutines are counted, which stops them all.
	profiled = 100 * time.Millisecond
	// idle is longer than a store keeps goroutines that have nothing to do.
	idle = 2500 * time.Millisecond
)

// rest is what the services of a scene hold when nothing happens.
type rest struct{ goroutines, connections int }

// atRest closes the idle connections of clients and waits until what the services hold stays the same.
func (sv *service) atRest() rest {
	sv.client.CloseIdleConnections()
	var last rest
	same := 0
	_, _ = poll(profiled, patience, func() bool {
		n, _ := sv.goroutines()
		now := rest{n, sv.connections()}
		if now == last {
			same++
		} else {
			last, same = now, 0
		}
		return same*int(profiled) > int(idle)
	})
	return last
}

// backAt checks that the services hold what they held at the start, soon.
func (sv *service) backAt(start rest, within time.Duration) (rest, time.Duration) {
	sv.client.CloseIdleConnections()
	var now rest
	var stacks string
	took, ok := poll(profiled, within, func() bool {
		now.goroutines, stacks = sv.goroutines()
		now.connections = sv.connections()
		return now.goroutines <= start.goroutines && now.connections <= start.connections
	})
	if !ok {
		sv.failf("%v after the fault there are %d goroutines and %d connections; at the start there were %d and %d\n%s",
			took.Round(time.Second), now.goroutines, now.connections, start.goroutines, start.connections, stacks)
	}
	return now, took
}

// slowest returns the longest of the replies, and the time that the given share of them took at most.
func slowest(replies []*reply, share float64) (longest, most time.Duration) {
	times := make([]time.Duration, len(replies))
	for i, r := range replies {
		times[i] = r.took
	}
	sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
	return times[len(times)-1], times[min(int(share*float64(len(times))), len(times)-1)]
}
