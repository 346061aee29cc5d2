package main

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/headgate-go/headgate/core/limit"

	"github.com/headgate-go/headgate/examples/routesapi/limits"
	"github.com/headgate-go/headgate/examples/routesapi/planner"
	"github.com/headgate-go/headgate/examples/routesapi/tenants"
)

// client is one of those who call the API this morning.
type client struct {
	name, plan, does string
	addr             string        // as the load balancer sees it
	every            time.Duration // between two requests, refused or not
	request          func(n int) request
	limit            *ceiling // what it runs into; nil: it must never be refused
}

type request struct {
	method, path, key, body string
	cost                    int
	want                    int // the status, if a gate does not refuse it
}

// ceiling is the limit that a client's cost is held against.
type ceiling struct {
	policy string
	rule   limit.Rule
}

// clients returns the morning's clients. The costs are chosen so that no refusal hangs on a millisecond: the batch's, for
// example, grows out of its limit by steps of a third of its cost.
func clients() []client {
	const stranger = "198.51.100.66"
	return []client{
		{
			name: "acme", plan: "team", does: "keeps to its plan: 14 of 20 a second",
			addr: "203.0.113.1", every: 200 * time.Millisecond,
			request: func(n int) request {
				if n%5 == 0 {
					return plan("key-acme", 10)
				}
				return request{method: "GET", path: "/v1/routes/r1", key: "key-acme", cost: 1, want: 200}
			},
		}, {
			name: "bumper", plan: "free", does: "12 stops; refused, it retries at once, for ever",
			addr: "203.0.113.2", every: 5 * time.Millisecond,
			request: func(int) request { return plan("key-bumper", 12) },
			limit:   &ceiling{"tenant", limits.Of(tenants.Free)},
		}, {
			name: "nightly", plan: "team", does: "batch of 54 stops each 0.9 s: 3 times its limit",
			addr: "203.0.113.3", every: 900 * time.Millisecond,
			request: func(int) request { return plan("key-nightly", 54) },
			limit:   &ceiling{"tenant", limits.Of(tenants.Team)},
		}, {
			name: "dashboard", plan: "team", does: "polls a report each 50 ms",
			addr: "203.0.113.4", every: 50 * time.Millisecond,
			request: func(int) request {
				return request{method: "GET", path: "/v1/analytics/distance", key: "key-dashboard", cost: 1, want: 200}
			},
			limit: &ceiling{"analytics", limits.Analytics},
		}, {
			name: "stranger", plan: "-", does: "invents an API key each 4 ms: 401, then 429",
			addr: stranger, every: 4 * time.Millisecond,
			request: func(n int) request {
				return request{method: "GET", path: "/v1/routes/r1", key: fmt.Sprintf("invented-%d", n), cost: 1, want: 401}
			},
			limit: &ceiling{"client", limits.PerClient},
		}, {
			// From the stranger's address, which has nothing left: only the exemption lets these through.
			name: "monitor", plan: "-", does: "GET /healthz, from the stranger's address",
			addr: stranger, every: 100 * time.Millisecond,
			request: func(int) request { return request{method: "GET", path: "/healthz", want: 200} },
		},
	}
}

// plan asks for a route through so many stops, which is also what it costs.
func plan(key string, stops int) request {
	var body struct {
		Stops []planner.Stop `json:"stops"`
	}
	for i := range stops { // around Munich, in no useful order
		angle := float64(i*i) + 1
		body.Stops = append(body.Stops, planner.Stop{Lat: 48.14 + 0.3*math.Sin(angle), Lng: 11.58 + 0.4*math.Cos(2*angle)})
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // numbers can always be written
	}
	return request{method: "POST", path: "/v1/routes", key: key, body: string(text), cost: stops, want: 201}
}
