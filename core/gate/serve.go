package gate

import (
	"time"
)

// Serve drives one request through the gate: decision, headers, then the rest of the chain or a refusal. Adapters call it;
// its error is the handler's own, or Reject's. A panic of the handler or of a user's function passes through.
func (g *Gate) Serve(x Exchange) error {
	outer := x.Admission()
	if outer.Met(g) || g.passes(x) {
		_, err := x.Next()
		return err
	}
	start := g.observed()
	a, spent := g.decide(x.Context(), x)
	if a == nil {
		_, err := x.Next()
		return err
	}
	a.outer = outer
	var e Event
	if g.observer != nil {
		e = a.event(x, start, spent)
	}
	x.Attach(a)
	if a.refusal != nil {
		return a.reject(x, e)
	}
	if a.canceled {
		return a.leave(x, e)
	}
	a.setHeaders(x)
	return a.run(x, e)
}

// statusClientGone is what proxies log for a client that closed the connection; nobody reads it.
const statusClientGone = 499

// leave ends a request that nobody waits for.
func (a *Admission) leave(x Exchange, e Event) error {
	if a.gate.observer != nil {
		a.gate.observer.Observe(e)
	}
	return x.Reject(statusClientGone, "", nil)
}

func (a *Admission) reject(x Exchange, e Event) error {
	a.markRefused()
	if a.gate.observer != nil {
		e.Route = a.gate.routeLabel(x)
		a.gate.observer.Observe(e)
	}
	contentType, body := a.gate.body(x, a.refusal) // may add fields
	a.setRefusal(x)
	return x.Reject(a.refusal.Status, contentType, body)
}

// run calls the handler. What follows it is deferred, so that it happens after a panic and runtime.Goexit too; nothing is
// recovered.
func (a *Admission) run(x Exchange, e Event) (err error) {
	e.Panicked = true
	defer func() {
		end := endOf(e, err)
		if a.innerRefused {
			a.giveBack(everyone)
			end = EndCanceled
		} else {
			a.giveBack(skips(end != EndReturned))
		}
		a.finish(x, end)
		if a.gate.observer != nil {
			e.Err, e.InnerRefused = err, a.innerRefused
			e.Route = a.gate.routeLabel(x)
			a.gate.observer.Observe(e)
		}
	}()
	e.Result, err = x.Next()
	e.Panicked = false
	return err
}

// endOf says how the handler came to its end.
func endOf(e Event, err error) LeaseEnd {
	switch {
	case e.Panicked:
		return EndPanic
	case err != nil || e.Result.Status >= statusBadRequest:
		return EndError
	}
	return EndReturned
}

// observed reads the clock if somebody wants to know.
func (g *Gate) observed() time.Time {
	if g.observer == nil {
		return time.Time{}
	}
	return time.Now()
}

func (a *Admission) event(r Request, start time.Time, spent time.Duration) Event {
	return Event{Kind: Decided, Context: r.Context(), Request: r, Gate: a.gate.name, Store: a.gate.storeKind, Start: start,
		Duration: time.Since(start), StoreDuration: spent, Decisions: a.ownDecisions(), Refusal: a.refusal}
}
