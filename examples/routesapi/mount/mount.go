// Package mount puts the route-planning API on a framework. There is one file for each, and the differences between them
// are the frameworks' own: the gates are mounted by the same line everywhere.
//
// The order is what matters. The client gate is the first of all, so that guessing API keys has its limit. Then the key is
// looked up, then the stops of a route to be planned are counted, and the tenant gate weighs the request by both. What a
// plan really cost is known when it is made, and settled with the gate by the same line everywhere.
//
// Fiber does not tell a handler that its caller is gone: there a solve goes on to its end and holds its slot until then.
package mount

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/headgate-go/headgate/core/gate"

	"github.com/headgate-go/headgate/examples/routesapi/limits"
	"github.com/headgate-go/headgate/examples/routesapi/planner"
	"github.com/headgate-go/headgate/examples/routesapi/service"
)

// parsed is the name under which a request's task is stored for the handler, so that the body is read once. The gate wants
// only the number of its stops, which is limits.Stops.
const parsed = "parsed"

// Server is an API that can be served. Serve returns when Shutdown was called or the listener failed; Shutdown waits for
// requests in flight until ctx ends.
type Server interface {
	Serve(net.Listener) error
	Shutdown(ctx context.Context) error
}

var frameworks = map[string]func(*service.API, *limits.Gates) Server{
	"gin":     Gin,
	"echo":    Echo,
	"fiber":   Fiber,
	"nethttp": NetHTTP,
}

// Frameworks lists what On knows.
func Frameworks() []string { return []string{"gin", "echo", "fiber", "nethttp"} }

// On mounts the API on the framework of that name. An unknown name is an error.
func On(framework string, api *service.API, gates *limits.Gates) (Server, error) {
	mount, ok := frameworks[framework]
	if !ok {
		return nil, fmt.Errorf("mount: framework %q is none of %s", framework, strings.Join(Frameworks(), ", "))
	}
	return mount(api, gates), nil
}

// plan answers POST /v1/routes and settles its cost. The tenant gate charged every stop, since it cannot know better; a place
// that is named twice is worked on once, and a plan that is given up costs what was worked until then. As any request does,
// it costs 1 at least.
func plan(ctx context.Context, api *service.API, tenant string, task planner.Task) service.Reply {
	reply, worked := api.Plan(ctx, tenant, task)
	gate.FromContext(ctx).Settle("tenant", max(worked, 1))
	return reply
}

// httpServer serves what is a net/http handler: everything but Fiber.
func httpServer(h http.Handler) Server {
	return &stdServer{http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute}}
}

type stdServer struct{ http.Server }

func (s *stdServer) Serve(ln net.Listener) error {
	err := s.Server.Serve(ln)
	if errors.Is(err, http.ErrServerClosed) {
		return nil // that is how a shutdown ends
	}
	return err
}
