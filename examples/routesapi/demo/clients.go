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
	connections      int           // requests at a time; 0: one
	every            time.Duration // between two requests of a connection, refused or not; less if the first took longer
	request          func(n int) request
	limit            *ceiling // what it runs into; nil: it must never be refused
}

type request struct {
	method, path, key, body string
	cost                    int
	want                    int // the status, if a gate does not refuse it
}

// ceiling is the limit that a client's cost is held against: a rate, or slots.
type ceiling struct {
	policy string
	rule   limit.Rule // of what it costs
	slots  *slots     // nil: it is the rate that the client runs into
}

// slots are what requests hold that take their time.
type slots struct {
	count int
	held  time.Duration // by each request, at least
}

// clients returns the morning's clients. The costs are chosen so that no refusal hangs on a millisecond: the batch, for
// example, lacks 8 stops or has 10 to spare, and 20 a second flow in. What the hoarder's solves cost flows back while they
// run, so if its budget is not full when they are done, it was charged for something else.
func clients() []client {
	const stranger = "198.51.100.66"
	second := &slots{limits.Solves(tenants.Team), time.Second}
	return []client{
		{
			name: "acme", plan: "team", does: "keeps to its plan: 14 of 20 a second",
			addr: "203.0.113.1", every: 200 * time.Millisecond,
			request: func(n int) request {
				if n%5 == 0 {
					return plan("key-acme", 10, 0, 0)
				}
				return request{method: "GET", path: "/v1/routes/r1", key: "key-acme", cost: 1, want: 200}
			},
		}, {
			name: "bumper", plan: "free", does: "12 stops; refused, it retries at once, for ever",
			addr: "203.0.113.2", every: 5 * time.Millisecond,
			request: func(int) request { return plan("key-bumper", 12, 0, 0) },
			limit:   &ceiling{"tenant", limits.Of(tenants.Free), nil},
		}, {
			name: "nightly", plan: "team", does: "54 stops, 36 places each 0.9 s: twice its limit",
			addr: "203.0.113.3", every: 900 * time.Millisecond,
			request: func(int) request { return plan("key-nightly", 36, 18, 0) },
			limit:   &ceiling{"tenant", limits.Of(tenants.Team), nil},
		}, {
			name: "hoarder", plan: "team", does: "12 solves at once: 4 stops and a second each",
			addr: "203.0.113.5", connections: 12, every: 300 * time.Millisecond,
			request: func(int) request { return plan("key-hoarder", 4, 0, int(second.held.Seconds())) },
			limit:   &ceiling{"solves", limits.Of(tenants.Team), second},
		}, {
			name: "dashboard", plan: "team", does: "polls a report each 50 ms",
			addr: "203.0.113.4", every: 50 * time.Millisecond,
			request: func(int) request {
				return request{method: "GET", path: "/v1/analytics/distance", key: "key-dashboard", cost: 1, want: 200}
			},
			limit: &ceiling{"analytics", limits.Analytics, nil},
		}, {
			name: "stranger", plan: "-", does: "invents an API key each 4 ms: 401, then 429",
			addr: stranger, every: 4 * time.Millisecond,
			request: func(n int) request {
				return request{method: "GET", path: "/v1/routes/r1", key: fmt.Sprintf("invented-%d", n), cost: 1, want: 401}
			},
			limit: &ceiling{"client", limits.PerClient, nil},
		}, {
			// From the stranger's address, which has nothing left: only the exemption lets these through.
			name: "monitor", plan: "-", does: "GET /healthz, from the stranger's address",
			addr: stranger, every: 100 * time.Millisecond,
			request: func(int) request { return request{method: "GET", path: "/healthz", want: 200} },
		},
	}
}

// plan asks for a route through so many places, which is what it costs in the end. Some of them are named again: they are
// charged too, and given back. The search goes on for some seconds.
func plan(key string, places, again, seconds int) request {
	task := planner.Task{Seconds: seconds}
	for i := range places { // around Munich, in no useful order
		angle := float64(i*i) + 1
		task.Stops = append(task.Stops, planner.Stop{Lat: 48.14 + 0.3*math.Sin(angle), Lng: 11.58 + 0.4*math.Cos(2*angle)})
	}
	task.Stops = append(task.Stops, task.Stops[:again]...)
	text, err := json.Marshal(task)
	if err != nil {
		panic(err) // numbers can always be written
	}
	return request{method: "POST", path: "/v1/routes", key: key, body: string(text), cost: places, want: 201}
}
