package mount

import (
	"bytes"
	"context"
	"errors"
	"net"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/headgate-go/headgate/adapters/fibergate"

	"github.com/headgate-go/headgate/examples/routesapi/limits"
	"github.com/headgate-go/headgate/examples/routesapi/planner"
	"github.com/headgate-go/headgate/examples/routesapi/service"
)

// Fiber mounts the API on Fiber v2.
func Fiber(api *service.API, gates *limits.Gates) Server {
	send := func(c *fiber.Ctx, r service.Reply) error {
		c.Set(fiber.HeaderContentType, service.ContentType)
		return c.Status(r.Status).Send(r.Body)
	}

	auth := func(c *fiber.Ctx) error {
		tenant, refused := api.Authenticate(c.Get("X-Api-Key"))
		if refused != nil {
			return send(c, *refused)
		}
		c.Locals(limits.Tenant, tenant)
		return c.Next()
	}
	readTask := func(c *fiber.Ctx) error {
		task, refused := service.ReadTask(bytes.NewReader(c.Body()))
		if refused != nil {
			return send(c, *refused)
		}
		c.Locals(limits.Stops, len(task.Stops))
		c.Locals(parsed, task)
		return c.Next()
	}
	tenantGate := fibergate.Middleware(gates.Tenant)
	tenantOf := func(c *fiber.Ctx) string { tenant, _ := c.Locals(limits.Tenant).(string); return tenant }

	app := fiber.New(fiber.Config{
		DisableStartupMessage: true,
		ReadTimeout:           10 * time.Second,
		IdleTimeout:           time.Minute,
		ErrorHandler: func(c *fiber.Ctx, err error) error {
			status, known := fiber.StatusInternalServerError, (*fiber.Error)(nil)
			if errors.As(err, &known) {
				status = known.Code
			}
			return send(c, service.Failure(status))
		},
	})
	app.Use(fibergate.Middleware(gates.Client))
	app.Get("/healthz", func(c *fiber.Ctx) error { return send(c, service.Health()) })
	app.Post("/v1/routes", auth, readTask, tenantGate, func(c *fiber.Ctx) error {
		task, _ := c.Locals(parsed).(planner.Task)
		return send(c, plan(c.UserContext(), api, tenantOf(c), task))
	})
	app.Get("/v1/routes/:id", auth, tenantGate, func(c *fiber.Ctx) error {
		return send(c, api.Route(tenantOf(c), c.Params("id")))
	})
	app.Get("/v1/analytics/*", auth, tenantGate, func(c *fiber.Ctx) error {
		return send(c, api.Analytics(tenantOf(c), c.Params("*")))
	})
	return fiberServer{app}
}

type fiberServer struct{ app *fiber.App }

func (s fiberServer) Serve(ln net.Listener) error        { return s.app.Listener(ln) }
func (s fiberServer) Shutdown(ctx context.Context) error { return s.app.ShutdownWithContext(ctx) }
