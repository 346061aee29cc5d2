package gate

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/internal/guard"
	"github.com/headgate-go/headgate/core/internal/lease"
	"github.com/headgate-go/headgate/core/limit"
	"github.com/headgate-go/headgate/core/memory"
)

// fallbackKeys bounds the store behind FailLocal, so that an outage of one thing is not an outage of memory too.
const fallbackKeys = 100_000

// setStore takes the store, and puts a guard in front of one that this process does not hold itself.
func (g *Gate) setStore(c Config) {
	g.started = time.Now()
	g.instances = c.Instances
	if g.store == nil {
		g.store, g.ownsStore = memory.New(), true
		g.countOwnStores()
	}
	g.storeKind, _, _ = strings.Cut(strings.TrimPrefix(fmt.Sprintf("%T", g.store), "*"), ".")
	g.leases = lease.New(lease.Options{
		Apply:   func(changes []driver.Change) error { return g.guarded.Correct(context.Background(), g.now(), changes) },
		Dropped: func(err error) { g.logFailure("a slot could not be given back and ends with its lease", err) },
	})
	if _, ok := g.store.(driver.InProcess); ok {
		g.advise(memoryAdvice(os.Getenv("FIBER_PREFORK_CHILD")))
		return
	}
	g.refusals = guard.NewRefusals()
	g.guarded = guard.New(g.store, guard.Options{Timeout: c.StoreTimeout, Rand: c.Rand, Changed: g.breakerChanged,
		Back:    func() { g.log.warn("back", "the store answers again", "gate", g.name) },
		Dropped: func(err error) { g.logFailure("the store could not take a correction", err) },
	})
	g.breakerChanged(guard.Closed, nil)
	for _, p := range g.policies {
		if p.onStoreError == FailLocal && g.local == nil {
			g.local = memory.New(memory.WithMaxKeys(fallbackKeys))
		}
	}
}

// ownStores counts gates with a store of their own. One in every handler call is the classic way to limit nothing.
var ownStores atomic.Int64

const manyOwnStores = 1000

func (g *Gate) countOwnStores() {
	if ownStores.Add(1) == manyOwnStores {
		g.log.warn(warnStores, fmt.Sprintf("%d gates with a store of their own were made in this process: a gate that is "+
			"made per request starts full each time and limits nothing; make it once", manyOwnStores))
	}
}

func (g *Gate) breakerChanged(s guard.State, err error) {
	g.observe(Event{Kind: BreakerChanged, Context: context.Background(), Gate: g.name, Breaker: s.String(), Err: err})
}

func (g *Gate) logFailure(msg string, err error) {
	class := string(driver.ClassOf(err))
	g.log.warn("store "+class, msg, "gate", g.name, "class", class, "error", err)
}

// storeDecide makes the one call of a request.
func (g *Gate) storeDecide(ctx context.Context, batch []driver.Entry) error {
	if g.closed.Load() {
		return driver.ErrClosed
	}
	var err error
	if g.guarded == nil {
		err = g.store.Decide(ctx, g.now(), batch)
	} else if err = g.guarded.Decide(ctx, g.now(), batch); err == nil {
		g.askAdvice()
	}
	if err == nil {
		err = batch[0].Err
	}
	return err
}

// storeApply corrects what was decided, off the request's path where that takes a round trip.
func (g *Gate) storeApply(ctx context.Context, changes []driver.Change) {
	apply := g.store.Apply
	if g.guarded != nil {
		for i := range changes {
			g.refusals.Forget(changes[i].Policy, changes[i].Subject)
		}
		apply = g.guarded.Apply
	}
	// The request's own context may be over; what it took goes back all the same.
	if err := apply(context.WithoutCancel(ctx), g.now(), changes); err != nil {
		g.logFailure("the store could not take a correction", err)
	}
}

// clockReading is the time by which refusals are remembered: monotonic, or that of the tests.
func (g *Gate) clockReading() time.Duration {
	if g.clock != nil {
		return g.clock().Sub(g.started)
	}
	return time.Since(g.started)
}

// decideLocally answers the claims of limiters with FailLocal while the store fails, at this process's share.
func (a *Admission) decideLocally(ctx context.Context) {
	g := a.gate
	if g.local == nil {
		return
	}
	var claims []driver.Claim
	var at []int
	for i := range a.verdicts {
		if v := &a.verdicts[i]; v.claim >= 0 && v.policy.onStoreError == FailLocal {
			c := a.claims[v.claim]
			c.Rule = share(c.Rule, g.instances)
			claims, at = append(claims, c), append(at, v.claim)
		}
	}
	batch := []driver.Entry{{Claims: claims}}
	if len(claims) == 0 || g.local.Decide(ctx, g.now(), batch) != nil || batch[0].Err != nil {
		return
	}
	a.local, a.localTook = true, true
	for i, claim := range claims {
		a.claims[at[i]] = claim
		a.localTook = a.localTook && (claim.Result.Allowed || claim.Shadow)
	}
}

// share is what one of several processes may use of a rule: the rate divided, the burst, a window's count or the slots too,
// rounded down, at least 1.
func share(rule limit.Rule, instances int) limit.Rule {
	if rule.Kind() == driver.KindSlots {
		return driver.NewSlots(max(1, rule.Capacity()/instances))
	}
	count, period := rule.Rate()
	if rule.IsWindow() {
		return rule.WithCount(max(1, count/instances))
	}
	divided := limit.Per(count, period*time.Duration(instances)).WithBurst(max(1, rule.Capacity()/instances))
	if divided.Validate() != nil { // a period of more than 31 days
		divided = limit.Per(max(1, count/instances), period).WithBurst(divided.Capacity())
	}
	return divided
}
