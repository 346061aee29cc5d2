package telemetry

import (
	"context"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/headgate-go/headgate/core/gate"
)

// mostPlaces bounds how many pairs of gate and route are told apart. Routes come from templates, so more than that are a
// mistake somewhere; their decisions are counted under the route "other".
const mostPlaces = 1000

// ledger holds every attribute set that was met, made once. It is read without a lock; it only grows, and at most to the
// number of places, times policies, times words.
type ledger struct {
	decisions, cost                 metric.Int64Counter
	active                          metric.Int64UpDownCounter
	decisionDuration, leaseDuration metric.Float64Histogram

	places    atomic.Pointer[map[placeKey]*place]
	durations list[durationKey, *values]
	leases    list[string, *count] // by policy
	ends      list[endKey, *values]

	mu    sync.Mutex // held while something is added
	costs map[costKey]*count
	all   []interface{ flush() }
}

type (
	placeKey    struct{ gate, route string }
	policyKey   struct{ policy, limitType string }
	durationKey struct {
		store   string
		outcome gate.Outcome
		class   class
	}
	costKey struct {
		policy  string
		outcome gate.Outcome
	}
	endKey struct {
		policy string
		end    gate.LeaseEnd
	}
	// verdict is what differs between two decisions of one limiter about one route.
	verdict struct {
		outcome gate.Outcome
		mode    gate.Mode
		reason  gate.Reason
		class   class
	}
)

// place is a route behind a gate.
type place struct {
	placeKey
	policies list[policyKey, *list[verdict, *cell]]
}

// cell is where a decision is counted.
type cell struct{ decisions, cost *count }

// list is a short map. A longer one takes its place when something is added.
type list[K comparable, V any] struct {
	entries atomic.Pointer[[]entry[K, V]]
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

func (in *list[K, V]) get(key K) (v V, ok bool) {
	if entries := in.entries.Load(); entries != nil {
		for i := range *entries {
			if e := &(*entries)[i]; e.key == key {
				return e.value, true
			}
		}
	}
	return v, false
}

// find returns what is in a list under key, and makes it the first time, with the ledger's mutex held.
func find[K comparable, V any](l *ledger, in *list[K, V], key K, create func() V) V {
	if v, ok := in.get(key); ok {
		return v
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	v, ok := in.get(key)
	if !ok {
		v = create()
		var entries []entry[K, V]
		if old := in.entries.Load(); old != nil {
			entries = append(entries, *old...)
		}
		entries = append(entries, entry[K, V]{key, v})
		in.entries.Store(&entries)
	}
	return v
}

// place finds where a gate's decisions about a route are counted.
func (l *ledger) place(gateName, route string) *place {
	key := placeKey{gateName, route}
	if p := (*l.places.Load())[key]; p != nil {
		return p
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	places := *l.places.Load()
	if len(places) >= mostPlaces {
		key.route = other
	}
	if p := places[key]; p != nil {
		return p
	}
	key.route = strings.Clone(key.route) // it may point into the request
	p := &place{placeKey: key}
	places = maps.Clone(places)
	places[key] = p
	l.places.Store(&places)
	return p
}

// cell finds where a decision is counted.
func (l *ledger) cell(p *place, d *gate.Decision, class class) *cell {
	v := verdict{d.Outcome, d.Mode, d.Reason, class}
	verdicts := find(l, &p.policies, policyKey{d.Policy, d.LimitType}, func() *list[verdict, *cell] { return new(list[verdict, *cell]) })
	return find(l, verdicts, v, func() *cell { return l.newCell(p, d.Policy, d.LimitType, v) })
}

func (l *ledger) newCell(p *place, policy, limitType string, v verdict) *cell {
	route := p.route
	if route == "" {
		route = unmatched
	}
	attributes := []attribute.KeyValue{
		keyGate.String(p.gate), keyPolicy.String(policy), keyLimitType.String(limitType),
		keyOutcome.String(v.outcome.String()), keyMode.String(v.mode.String()), keyRoute.String(route),
	}
	if v.reason != gate.ReasonNone {
		attributes = append(attributes, keyReason.String(v.reason.String()))
	}
	c := &cell{decisions: l.newCount(l.decisions, withError(attributes, v.class)...)}
	k := costKey{policy, v.outcome}
	if c.cost = l.costs[k]; c.cost == nil {
		c.cost = l.newCount(l.cost, keyPolicy.String(policy), keyOutcome.String(v.outcome.String()))
		l.costs[k] = c.cost
	}
	return c
}

// duration finds where the time of a decision is recorded.
func (l *ledger) duration(store string, outcome gate.Outcome, class class) *values {
	return find(l, &l.durations, durationKey{store, outcome, class}, func() *values {
		attributes := []attribute.KeyValue{keyStore.String(store), keyOutcome.String(outcome.String())}
		return l.newValues(l.decisionDuration, withError(attributes, class)...)
	})
}

// lease finds where the slots that a policy's requests hold are counted.
func (l *ledger) lease(policy string) *count {
	return find(l, &l.leases, policy, func() *count { return l.newCount(l.active, keyPolicy.String(policy)) })
}

// end finds where the time is recorded of slots that ended in one way.
func (l *ledger) end(policy string, end gate.LeaseEnd) *values {
	return find(l, &l.ends, endKey{policy, end}, func() *values {
		return l.newValues(l.leaseDuration, keyPolicy.String(policy), keyEnd.String(end.String()))
	})
}

// newCount and newValues are called with mu held.
func (l *ledger) newCount(to adder, attributes ...attribute.KeyValue) *count {
	c := &count{to: to, attributes: []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(attributes...))}}
	l.all = append(l.all, c)
	return c
}

func (l *ledger) newValues(to metric.Float64Histogram, attributes ...attribute.KeyValue) *values {
	v := &values{to: to, attributes: []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attributes...))}}
	l.all = append(l.all, v)
	return v
}

// flush hands over everything that is held back.
func (l *ledger) flush() {
	l.mu.Lock()
	all := l.all
	l.mu.Unlock()
	for _, f := range all {
		f.flush()
	}
}

// withError adds the class of a failure, if there is one.
func withError(attributes []attribute.KeyValue, class class) []attribute.KeyValue {
	if class == 0 {
		return attributes
	}
	return append(attributes, keyErrorType.String(string(errorClasses[class])))
}

// adder is a counter of either kind.
type adder interface {
	Add(ctx context.Context, incr int64, options ...metric.AddOption)
}
