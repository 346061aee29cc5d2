package mount

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/headgate-go/headgate/adapters/echogate"

	"github.com/headgate-go/headgate/examples/routesapi/limits"
	"github.com/headgate-go/headgate/examples/routesapi/planner"
	"github.com/headgate-go/headgate/examples/routesapi/service"
)

// Echo mounts the API on Echo v4.
func Echo(api *service.API, gates *limits.Gates) Server {
	send := func(c echo.Context, r service.Reply) error { return c.Blob(r.Status, service.ContentType, r.Body) }

	auth := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			tenant, refused := api.Authenticate(c.Request().Header.Get("X-Api-Key"))
			if refused != nil {
				return send(c, *refused)
			}
			c.Set(limits.Tenant, tenant)
			return next(c)
		}
	}
	readTask := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			task, refused := service.ReadTask(c.Request().Body)
			if refused != nil {
				return send(c, *refused)
			}
			c.Set(limits.Stops, len(task.Stops))
			c.Set(parsed, task)
			return next(c)
		}
	}
	tenantGate := echogate.Middleware(gates.Tenant)
	tenantOf := func(c echo.Context) string { tenant, _ := c.Get(limits.Tenant).(string); return tenant }

	e := echo.New()
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		status, known := http.StatusInternalServerError, (*echo.HTTPError)(nil)
		if errors.As(err, &known) {
			status = known.Code
		}
		if !c.Response().Committed {
			_ = send(c, service.Failure(status)) // the client is gone
		}
	}
	e.Use(echogate.Middleware(gates.Client))
	e.GET("/healthz", func(c echo.Context) error { return send(c, service.Health()) })
	e.POST("/v1/routes", func(c echo.Context) error {
		task, _ := c.Get(parsed).(planner.Task)
		return send(c, plan(c.Request().Context(), api, tenantOf(c), task))
	}, auth, readTask, tenantGate)
	e.GET("/v1/routes/:id", func(c echo.Context) error {
		return send(c, api.Route(tenantOf(c), c.Param("id")))
	}, auth, tenantGate)
	e.GET("/v1/analytics/*", func(c echo.Context) error {
		return send(c, api.Analytics(tenantOf(c), c.Param("*")))
	}, auth, tenantGate)
	return httpServer(e)
}
