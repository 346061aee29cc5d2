package mount

import (
	"github.com/gin-gonic/gin"

	"github.com/headgate-go/headgate/adapters/gingate"

	"github.com/headgate-go/headgate/examples/routesapi/limits"
	"github.com/headgate-go/headgate/examples/routesapi/planner"
	"github.com/headgate-go/headgate/examples/routesapi/service"
)

// Gin mounts the API on Gin.
func Gin(api *service.API, gates *limits.Gates) Server {
	send := func(c *gin.Context, r service.Reply) { c.Data(r.Status, service.ContentType, r.Body) }

	auth := func(c *gin.Context) {
		tenant, refused := api.Authenticate(c.GetHeader("X-Api-Key"))
		if refused != nil {
			send(c, *refused)
			c.Abort()
			return
		}
		c.Set(limits.Tenant, tenant)
	}
	readTask := func(c *gin.Context) {
		task, refused := service.ReadTask(c.Request.Body)
		if refused != nil {
			send(c, *refused)
			c.Abort()
			return
		}
		c.Set(limits.Stops, len(task.Stops))
		c.Set(parsed, task)
	}
	tenantGate := gingate.Middleware(gates.Tenant)

	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.Use(gingate.Middleware(gates.Client))
	r.GET("/healthz", func(c *gin.Context) { send(c, service.Health()) })
	r.POST("/v1/routes", auth, readTask, tenantGate, func(c *gin.Context) {
		task, _ := c.MustGet(parsed).(planner.Task)
		send(c, plan(c.Request.Context(), api, c.GetString(limits.Tenant), task))
	})
	r.GET("/v1/routes/:id", auth, tenantGate, func(c *gin.Context) {
		send(c, api.Route(c.GetString(limits.Tenant), c.Param("id")))
	})
	r.GET("/v1/analytics/*report", auth, tenantGate, func(c *gin.Context) {
		send(c, api.Analytics(c.GetString(limits.Tenant), c.Param("report")[1:])) // Gin leaves the slash in front
	})
	r.NoRoute(func(c *gin.Context) { send(c, service.Failure(404)) })
	return httpServer(r)
}
