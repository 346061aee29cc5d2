package main

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"

	"github.com/headgate-go/headgate/adapters/gingate"
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"

	"github.com/headgate-go/headgate/examples/routesapi/limits"
	"github.com/headgate-go/headgate/examples/routesapi/planner"
	"github.com/headgate-go/headgate/examples/routesapi/service"
	"github.com/headgate-go/headgate/examples/routesapi/tenants"
)

// task is the name under which what is to be planned is stored with a request.
const task = "task"

// newGates are those of package limits, watched, with one limiter more: "tenant-next" is the limit that we think of
// introducing, half of what everybody has now. It is dark, and tells whom we would hit.
func newGates(store driver.Store, observer gate.Observer) (*limits.Gates, error) {
	table := tenants.Sample()
	client, err := gate.New(gate.Config{
		Name: "routesapi-client", Store: store, Observer: observer, Exempt: []string{"/healthz"},
		Limiters: []gate.Limiter{gate.RequestRate{Name: "client", Limit: limits.PerClient}},
	})
	if err != nil {
		return nil, err
	}
	key := gate.Value(limits.Tenant)
	tenant, err := gate.New(gate.Config{
		Name: "routesapi-tenant", Store: store, Observer: observer,
		Limiters: []gate.Limiter{
			gate.RequestRate{Name: "tenant", Key: key, Limit: limits.Of(tenants.Free), LimitFor: ofPlan(table, 1), Cost: stops},
			gate.RequestRate{Name: "tenant-next", Key: key, Limit: half(limits.Of(tenants.Free)), LimitFor: ofPlan(table, 2), Cost: stops,
				Mode: gate.Shadow},
			gate.ConcurrentRequests{Name: "solves", Key: key, Max: 4, Match: gate.Route("POST", "/v1/routes")},
		},
	})
	if err != nil {
		return nil, err
	}
	return &limits.Gates{Client: client, Tenant: tenant}, nil
}

// ofPlan finds a tenant's limit by its plan, divided.
func ofPlan(table *tenants.Table, by int) func(gate.Request, string) (limit.Rule, bool) {
	return func(_ gate.Request, tenant string) (limit.Rule, bool) {
		plan, ok := table.PlanOf(tenant)
		rule := limits.Of(plan)
		if by == 2 && rule != limit.Unlimited() {
			rule = half(rule)
		}
		return rule, ok
	}
}

func half(r limit.Rule) limit.Rule {
	count, period := r.Rate()
	return limit.Per(count, 2*period).WithBurst(r.Capacity() / 2)
}

func stops(r gate.Request) int {
	n, _ := r.Value(limits.Stops).(int)
	return max(n, 1)
}

// tenantName names tenants in metrics and traces by what we call them, instead of by a digest.
func tenantName(r gate.Request, _ gate.Decision) string {
	tenant, _ := r.Value(limits.Tenant).(string)
	return tenant
}

// newHandler mounts the API on Gin: the OpenTelemetry middleware first, so that the gates have a span to write to.
func newHandler(gates *limits.Gates, s *signals) http.Handler {
	api := service.New(tenants.Sample())
	send := func(c *gin.Context, r service.Reply) { c.Data(r.Status, service.ContentType, r.Body) }
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.Use(otelgin.Middleware("routesapi", otelgin.WithTracerProvider(s.tracers), otelgin.WithMeterProvider(s.meters)))
	r.Use(gingate.Middleware(gates.Client))
	r.GET("/healthz", func(c *gin.Context) { send(c, service.Health()) })

	known := r.Group("/v1", func(c *gin.Context) {
		tenant, refused := api.Authenticate(c.GetHeader("X-Api-Key"))
		if refused != nil {
			send(c, *refused)
			c.Abort()
			return
		}
		c.Set(limits.Tenant, tenant)
	})
	tenantGate := gingate.Middleware(gates.Tenant)
	known.POST("/routes", func(c *gin.Context) {
		read, refused := service.ReadTask(c.Request.Body)
		if refused != nil {
			send(c, *refused)
			c.Abort()
			return
		}
		c.Set(limits.Stops, len(read.Stops))
		c.Set(task, read)
	}, tenantGate, func(c *gin.Context) {
		send(c, plan(c.Request.Context(), api, c.GetString(limits.Tenant), c.MustGet(task).(planner.Task)))
	})
	known.GET("/routes/:id", tenantGate, func(c *gin.Context) {
		send(c, api.Route(c.GetString(limits.Tenant), c.Param("id")))
	})
	r.NoRoute(func(c *gin.Context) { send(c, service.Failure(http.StatusNotFound)) })
	return r
}

// plan answers POST /v1/routes, and settles what it really cost.
func plan(ctx context.Context, api *service.API, tenant string, what planner.Task) service.Reply {
	reply, worked := api.Plan(ctx, tenant, what)
	gate.FromContext(ctx).Settle("tenant", max(worked, 1))
	return reply
}
