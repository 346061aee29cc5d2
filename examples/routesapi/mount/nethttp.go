package mount

import (
	"net/http"

	"github.com/headgate-go/headgate/adapters/httpgate"
	"github.com/headgate-go/headgate/core/gate"

	"github.com/headgate-go/headgate/examples/routesapi/limits"
	"github.com/headgate-go/headgate/examples/routesapi/planner"
	"github.com/headgate-go/headgate/examples/routesapi/service"
)

// NetHTTP mounts the API on http.ServeMux. Values that a gate shall see are stored with gate.WithValue.
func NetHTTP(api *service.API, gates *limits.Gates) Server {
	send := func(w http.ResponseWriter, r service.Reply) {
		w.Header().Set("Content-Type", service.ContentType)
		w.WriteHeader(r.Status)
		_, _ = w.Write(r.Body) // the client is gone
	}

	auth := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			tenant, refused := api.Authenticate(r.Header.Get("X-Api-Key"))
			if refused != nil {
				send(w, *refused)
				return
			}
			next.ServeHTTP(w, r.WithContext(gate.WithValue(r.Context(), limits.Tenant, tenant)))
		})
	}
	readTask := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			task, refused := service.ReadTask(r.Body)
			if refused != nil {
				send(w, *refused)
				return
			}
			ctx := gate.WithValue(r.Context(), limits.Stops, len(task.Stops))
			next.ServeHTTP(w, r.WithContext(gate.WithValue(ctx, parsed, task)))
		})
	}
	tenantGate := httpgate.Middleware(gates.Tenant)
	tenantOf := func(r *http.Request) string {
		tenant, _ := gate.ContextValue(r.Context(), limits.Tenant).(string)
		return tenant
	}

	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { send(w, service.Health()) })
	mux.Handle("POST /v1/routes", auth(readTask(tenantGate(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		task, _ := gate.ContextValue(r.Context(), parsed).(planner.Task)
		send(w, plan(r.Context(), api, tenantOf(r), task))
	})))))
	mux.Handle("GET /v1/routes/{id}", auth(tenantGate(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		send(w, api.Route(tenantOf(r), r.PathValue("id")))
	}))))
	mux.Handle("GET /v1/analytics/{report...}", auth(tenantGate(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		send(w, api.Analytics(tenantOf(r), r.PathValue("report")))
	}))))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { send(w, service.Failure(404)) })
	return httpServer(httpgate.Middleware(gates.Client)(mux))
}
