package main

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// result is what a run has to show.
type result struct {
	tenants []*tenant
	// dead are those whose state was on the primary that died.
	dead map[string]bool
	// before is what was counted until then, final in all, and late in the last seconds.
	before, final map[string]account
	late          map[string]count
	slowest       time.Duration
	took          time.Duration // from before the first request until the last was let in
	promoted      time.Time     // when the replica had taken over
	held          []string      // tenants whose slots did not all come back
}

// backWithin is how long after a new primary is there the limit may still not hold.
const backWithin = 5 * time.Second

// most is how many of a tenant's requests its rate allows in the whole run. A failover to a replica may forget what was taken in the
// moments before, since replicas are told afterwards. At worst that makes its bucket a full one: one burst more.
func (r *result) most(t *tenant) int {
	most := burst + int(rate*r.took.Seconds()) + 1 // the servers' clock may be a little faster
	if r.dead[t.name] {
		most += burst
	}
	return most
}

// mostInFlight is the same of slots.
func (r *result) mostInFlight(t *tenant) int {
	if r.dead[t.name] {
		return 2 * slots
	}
	return slots
}

func (r *result) check() error {
	var errs []error
	expect := func(ok bool, format string, args ...any) {
		verdict, promise := "ok   ", strings.TrimSpace(fmt.Sprintf(format, args...))
		if !ok {
			verdict = "BROKEN"
			errs = append(errs, errors.New(promise))
		}
		fmt.Printf("  %s %s\n", verdict, promise)
	}
	fmt.Println()
	var all, before, theirs, others count // theirs: of the dead primary's tenants
	var lastOpen time.Time
	limited, lateOpen := false, 0
	for _, t := range r.tenants {
		a := r.final[t.name]
		all.add(a.count)
		before.add(r.before[t.name].count)
		if a.lastOpen.After(lastOpen) {
			lastOpen = a.lastOpen
		}
		lateOpen += r.late[t.name].open
		if !r.dead[t.name] {
			others.add(a.count)
			continue
		}
		theirs.add(a.count)
		limited = limited || t.kind == hot && r.late[t.name].refused > 0
	}
	expect(all.errors == 0, "of %d requests nobody was answered with anything but 204 or 429: %d", all.total(), all.errors)
	expect(r.slowest < time.Second, "and nobody waited for the store: %v at most", r.slowest.Round(time.Millisecond))
	var starved []string
	for _, t := range r.tenants {
		a := r.final[t.name]
		fits := a.allowed <= r.most(t) && a.most <= r.mostInFlight(t)
		if t.kind != modest || !fits {
			expect(fits, "%s: %d let in by its limit, of at most %d; %d in flight, of at most %d", t.name, a.allowed, r.most(t),
				a.most, r.mostInFlight(t))
		}
		// With room for a machine that is busy with something else.
		if t.kind == hot && float64(a.allowed+a.open) < 0.6*rate*r.took.Seconds() {
			starved = append(starved, t.name)
		}
	}
	expect(len(starved) == 0, "and nobody had less than the limit allows %s", strings.Join(starved, ", "))
	// A machine that is busy with something else may make a decision late now and then; a move that fails would be a tenth of all.
	expect(before.open <= before.total()/50, "while slots moved, and until the primary died, %d of %d requests failed open", before.open,
		before.total())
	expect(theirs.open > 0, "without their primary %d requests of its tenants passed, counted as failed open", theirs.open)
	expect(others.open <= others.total()/50, "the other tenants kept their limits: %d of their %d requests failed open", others.open,
		others.total())
	expect(limited && lateOpen == 0, "the limit holds again in the end")
	expect(lastOpen.Sub(r.promoted) <= backWithin, "the last request failed open %v after the new primary was there; promised are %v",
		lastOpen.Sub(r.promoted).Round(time.Millisecond), backWithin)
	expect(len(r.held) == 0, "all slots are free again %s", strings.Join(r.held, "; "))
	return errors.Join(errs...)
}

func (c *count) total() int { return c.allowed + c.refused + c.open + c.errors }
