// Package limits is everything the route-planning API says about limits. It knows no framework: the same gates stand in
// front of Gin, Echo, Fiber and net/http.
package limits

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"

	"github.com/headgate-go/headgate/examples/routesapi/tenants"
)

// What the middleware in front of the tenant gate stores with a request, and under which name.
const (
	Tenant = "tenant" // string: the tenant that the API key belongs to
	Stops  = "stops"  // int: the number of stops that a route is to be planned for
)

// The limits that are the same for everybody.
var (
	PerClient = limit.PerSecond(50) // requests of an address; bursts to 250
	Analytics = limit.PerSecond(5)  // reports of a tenant; bursts to 25
)

// The two families of requests that are treated apart.
var (
	planning = gate.Route("POST", "/v1/routes")
	reports  = gate.Route("GET", "/v1/analytics/*")
)

// Of returns the limit of a plan. It counts stops: planning is what costs us, and it grows with them. A route with more
// stops than the burst can never be planned, so the burst is also the longest route of the plan. What turns out to be the
// same place is given back when the route is planned; see package mount.
func Of(plan tenants.Plan) limit.Rule {
	switch plan {
	case tenants.Enterprise:
		return limit.Unlimited() // what an address may send, and how many reports, is limited all the same
	case tenants.Team:
		return limit.PerSecond(20) // bursts to 100
	}
	return limit.PerSecond(5) // bursts to 25
}

// Solves returns how many routes a tenant of a plan may have planned at a time. The rate counts stops, and knows nothing of
// how long a search takes: a few small ones can keep the solver busy for as long as they like.
func Solves(plan tenants.Plan) int {
	switch plan {
	case tenants.Enterprise:
		return 20
	case tenants.Team:
		return 4
	}
	return 2
}

// Config is what differs between production, demo and tests. The zero value is an API that is reached directly, and
// counts in the process.
type Config struct {
	Store   driver.Store     // nil: each gate in this process
	Trusted []netip.Prefix   // the networks of our own proxies
	Clock   func() time.Time // for tests; nil: the store's
}

// Gates are the two gates of the API. Client stands in front of everything, also of the look-up of API keys: an invented
// key would be a new tenant with a full budget, if anybody asked the tenant gate about it. Tenant stands behind that look-up.
type Gates struct{ Client, Tenant *gate.Gate }

// New makes the gates. The error says everything that is wrong.
func New(table *tenants.Table, c Config) (*Gates, error) {
	const docs = "https://routes.example.com/docs/limits"
	client, err := gate.New(gate.Config{
		Name:     "routesapi-client",
		Store:    c.Store,
		Limiters: []gate.Limiter{gate.RequestRate{Name: "client", Limit: PerClient}},
		Client:   gate.ClientAddress{Trusted: c.Trusted},
		Exempt:   []string{"/healthz"},
		DocsURL:  docs,
		Clock:    c.Clock,
	})
	tenant, err2 := gate.New(gate.Config{
		Name:  "routesapi-tenant",
		Store: c.Store,
		Limiters: []gate.Limiter{
			gate.RequestRate{
				Name:  "tenant",
				Limit: Of(tenants.Free),
				Key:   gate.Value(Tenant),
				LimitFor: func(_ gate.Request, tenant string) (limit.Rule, bool) {
					plan, ok := table.PlanOf(tenant)
					return Of(plan), ok
				},
				Cost:         cost,
				OnMissingKey: gate.MissingKeyReject, // behind authentication there is a tenant, or we mounted it wrongly
			},
			gate.ConcurrentRequests{ // in this gate, so that who gets no slot pays no stops, and the other way round
				Name:  "solves",
				Max:   Solves(tenants.Free),
				Key:   gate.Value(Tenant),
				Match: planning,
				MaxFor: func(_ gate.Request, tenant string) (int, bool) {
					plan, ok := table.PlanOf(tenant)
					return Solves(plan), ok
				},
				OnMissingKey: gate.MissingKeyReject,
			},
			gate.RequestRate{
				Name:         "analytics",
				Limit:        Analytics,
				Key:          gate.Value(Tenant),
				Match:        reports,
				OnMissingKey: gate.MissingKeyReject,
			},
		},
		Tier:    tier,
		DocsURL: docs,
		Clock:   c.Clock,
	})
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	return &Gates{Client: client, Tenant: tenant}, nil
}

// Close ends both gates.
func (g *Gates) Close(ctx context.Context) error {
	return errors.Join(g.Client.Close(ctx), g.Tenant.Close(ctx))
}

// cost weighs a route by its stops, which were counted when its request was read; everything else costs 1. That is an
// estimate: the planner may find less to do.
func cost(r gate.Request) int {
	if n, ok := r.Value(Stops).(int); ok {
		return n
	}
	return 1
}

// tier says what to shed first when the machines are full: reports are nice to have, planning is what we live on.
func tier(r gate.Request) gate.Tier {
	switch {
	case reports.Matches(r):
		return gate.TierSandbox
	case planning.Matches(r):
		return gate.TierCritical
	}
	return gate.TierByMethod
}
