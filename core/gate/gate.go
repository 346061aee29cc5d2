package gate

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/internal/clientaddr"
	"github.com/headgate-go/headgate/core/internal/guard"
	"github.com/headgate-go/headgate/core/internal/lease"
	"github.com/headgate-go/headgate/core/memory"
)

// Gate is an ordered set of limiters over one store. Make one with [New] or [PerClient] and mount it through an adapter;
// mounted several times on one request, it charges once. All methods are safe for concurrent use.
type Gate struct {
	name      string
	prefix    []byte       // how every subject begins
	store     driver.Store // as given, or our own
	ownsStore bool
	storeKind string          // for observers
	guarded   *guard.Store    // in front of a shared store; nil for an in-process one
	refusals  *guard.Refusals // with a shared store
	leases    *lease.Keeper   // names slots, and keeps those in a shared store
	local     *memory.Store   // decides for FailLocal
	instances int
	started   time.Time // where the gate's own clock begins
	advised   atomic.Bool
	closed    atomic.Bool
	policies  []*policy
	client    clientaddr.Resolver
	// warnForwarded is set while a forwarding header without a trusted proxy is worth a warning.
	warnForwarded atomic.Bool
	exempt        map[string]struct{}
	routes        []route
	headers       HeaderSet
	body          Body
	docsURL       string
	observer      Observer
	log           *rationedLog
	clock         func() time.Time
	rand          func() float64

	state      atomic.Pointer[snapshot]
	settingsMu sync.Mutex
}

// Close ends what New started: the store, if the gate made it. Slots that requests still hold in a store that was given, and
// corrections on their way to it, are waited for, until ctx ends: shut the server down first. Slots of handlers that go on
// after that are renewed no more and end within their LeaseTime. Afterwards requests follow OnStoreError. A second Close is
// a no-op.
func (g *Gate) Close(ctx context.Context) error {
	if g.closed.Swap(true) {
		return nil
	}
	done := make(chan error, 1)
	go func() { done <- g.end(ctx) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("gate: Close: %w", err)
	}
	return nil
}

func (g *Gate) end(ctx context.Context) error {
	if g.guarded != nil {
		if err := g.leases.Close(ctx); err != nil {
			return fmt.Errorf("slots are still held: %w", err)
		}
		_ = g.guarded.Close() // only waits
	}
	if g.local != nil {
		_ = g.local.Close() // an in-process store has nothing that can fail
	}
	if g.ownsStore {
		return g.store.Close()
	}
	return nil
}

// Policies describes the limiters, in order, with the modes in force now.
func (g *Gate) Policies() []Policy {
	state := g.state.Load()
	list := make([]Policy, len(g.policies))
	for i, p := range g.policies {
		list[i] = Policy{Name: p.name, LimitType: p.limitType, Mode: state.modes[i], Limit: p.rule.String(), Key: p.key.String()}
		if p.match != nil {
			list[i].Match = p.match.String()
		}
	}
	return list
}

// StoreKey tells where the store keeps a key's state, for looking at it by hand. Key is what the limiter's Key yields,
// one string per part of a Join; "ip:ADDR" names the key of a request that fell back to the client's address. Empty for
// a policy that does not exist or a key that does not fit it.
func (g *Gate) StoreKey(policy string, key ...string) string {
	p := g.policy(policy)
	if p == nil {
		return ""
	}
	subject, err := g.subject(nil, p, key)
	if err != nil {
		return ""
	}
	if namer, ok := g.store.(driver.KeyNamer); ok {
		return namer.KeyName(p.name, string(subject), p.rule)
	}
	return driver.Digest(string(subject)) + ":" + p.name
}

// subject appends the canonical key that parts name under p.
func (g *Gate) subject(dst []byte, p *policy, key []string) ([]byte, error) {
	dst = append(dst, g.prefix...)
	parts := p.key.parts()
	if len(key) == 1 {
		if addr, ok := strings.CutPrefix(key[0], "ip:"); ok {
			parts, key = clientIP{}.parts(), []string{addr}
		}
	}
	if len(key) != len(parts) {
		return nil, fmt.Errorf("policy %q: %d key parts; %s has %d", p.name, len(key), p.key, len(parts))
	}
	for i, part := range parts {
		value, err := part.canonical(key[i], &g.client)
		if err != nil {
			return nil, fmt.Errorf("policy %q: %w", p.name, err)
		}
		dst = driver.AppendSubject(dst, part.source)
		dst = driver.AppendSubject(dst, value)
	}
	return dst, nil
}

func (g *Gate) policy(name string) *policy {
	for _, p := range g.policies {
		if p.name == name {
			return p
		}
	}
	return nil
}

func (g *Gate) unknownPolicy(name string) error {
	names := make([]string, len(g.policies))
	for i, p := range g.policies {
		names[i] = fmt.Sprintf("%q", p.name)
	}
	return fmt.Errorf("there is no policy %q; this gate has %s", name, strings.Join(names, ", "))
}

func (g *Gate) observe(e Event) {
	if g.observer != nil {
		g.observer.Observe(e)
	}
}

func (g *Gate) now() time.Time {
	if g.clock != nil {
		return g.clock()
	}
	return time.Time{}
}

// passes says whether a request is none of the limiters' business: an exempt path or a true CORS preflight, which a
// browser sends on its own and cannot show a refusal of.
func (g *Gate) passes(r Request) bool {
	if len(g.exempt) > 0 {
		if _, ok := g.exempt[r.Path()]; ok {
			return true
		}
	}
	return r.Method() == "OPTIONS" && r.Header("Origin") != "" && r.Header("Access-Control-Request-Method") != ""
}

// routeLabel is the matched route's template: the framework's, else the first of Config.Routes.
func (g *Gate) routeLabel(r Request) string {
	if x, ok := r.(Labeled); ok {
		if label := x.Route(); label != "" {
			return label
		}
	}
	for _, route := range g.routes {
		if route.Matches(r) {
			return route.pattern
		}
	}
	return ""
}
