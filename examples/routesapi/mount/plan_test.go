package mount

import (
	"context"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/gate"

	"github.com/headgate-go/headgate/examples/routesapi/limits"
	"github.com/headgate-go/headgate/examples/routesapi/planner"
	"github.com/headgate-go/headgate/examples/routesapi/service"
	"github.com/headgate-go/headgate/examples/routesapi/tenants"
)

// What is settled is what was worked: every place, or nothing yet where the caller was gone at once; then it costs as much
// as any request.
func TestPlanSettlesWhatWasWorked(t *testing.T) {
	task := planner.Task{Stops: make([]planner.Stop, 10)}
	for i := range task.Stops {
		task.Stops[i].Lat = float64(i % 6)
	}
	for name, c := range map[string]struct{ status, left int }{"solved": {201, 19}, "given up": {503, 24}} {
		t.Run(name, func(t *testing.T) {
			table := tenants.Sample()
			gates, err := limits.New(table, limits.Config{Clock: func() time.Time { return time.Unix(1e9, 0) }})
			if err != nil {
				t.Fatal(err)
			}
			defer gates.Close(t.Context())
			a := gates.Tenant.Admit(t.Context(), gate.Call{Operation: "POST /v1/routes",
				Values: map[string]any{limits.Tenant: "bumper", limits.Stops: len(task.Stops)}})
			defer a.Done(nil)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			if c.status == 503 {
				leave()
			}
			if reply := plan(gate.NewContext(ctx, a), service.New(table), "bumper", task); reply.Status != c.status {
				t.Errorf("status %d, want %d: %s", reply.Status, c.status, reply.Body)
			}
			if d, err := gates.Tenant.Usage(t.Context(), "tenant", "bumper"); err != nil || d.Remaining != c.left {
				t.Errorf("%d left, error %v; want %d", d.Remaining, err, c.left)
			}
		})
	}
}
