// Package service is the route-planning API without HTTP: what it answers, as bytes, so that every framework sends the
// same ones. It knows nothing of limits.
package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/headgate-go/headgate/examples/routesapi/planner"
	"github.com/headgate-go/headgate/examples/routesapi/tenants"
)

// ContentType is the type of every [Reply].
const ContentType = "application/json"

// maxBody bounds what is read of a request: planner.MaxStops stops fit three times.
const maxBody = 32 << 10

// kept is how many trips of a tenant are remembered; older ones are forgotten.
const kept = 1000

// Reply is an answer: a status and a body of [ContentType].
type Reply struct {
	Status int
	Body   []byte
}

// API answers requests. Make it with New; it is safe for concurrent use.
type API struct {
	tenants *tenants.Table

	mu    sync.Mutex
	trips map[string]*history // by tenant
}

// history is the last trips of a tenant; the first of them has the number forgotten+1. Of the solves, how many run now, how
// many ran at a time at most, and how many were given up.
type history struct {
	trips                  []trip
	forgotten              int
	running, most, givenUp int
}

type trip struct {
	ID     string `json:"id"`
	Stops  int    `json:"stops"`
	Places int    `json:"places"`
	planner.Trip
}

// New makes an API for the tenants of a table.
func New(table *tenants.Table) *API {
	return &API{tenants: table, trips: map[string]*history{}}
}

// Authenticate finds the tenant of an API key. If refused is not nil, it is the answer.
func (a *API) Authenticate(key string) (tenant string, refused *Reply) {
	t, ok := a.tenants.ByKey(key)
	if !ok {
		return "", failure(401, "authentication_error", "The header X-Api-Key holds no key that we know.")
	}
	return t.Name, nil
}

// ReadTask reads what is to be planned, {"stops":[{"lat":52.5,"lng":13.4},...],"seconds":2}, and no more of the body than it
// may have. Seconds may be left out. If refused is not nil, it is the answer.
func ReadTask(body io.Reader) (task planner.Task, refused *Reply) {
	text, err := io.ReadAll(io.LimitReader(body, maxBody+1))
	if err != nil {
		return task, invalid(400, "the body could not be read")
	}
	if len(text) > maxBody {
		return task, invalid(413, fmt.Sprintf("the body is longer than %d bytes", maxBody))
	}
	if err := json.Unmarshal(text, &task); err != nil {
		return task, invalid(400, "the body is not {\"stops\":[{\"lat\":52.5,\"lng\":13.4},...],\"seconds\":2}")
	}
	if err := planner.Check(task); err != nil {
		return task, invalid(400, err.Error())
	}
	return task, nil
}

// Plan answers POST /v1/routes: it plans a trip and remembers it. Worked is on how many places it worked for that, also
// where it was given up.
func (a *API) Plan(ctx context.Context, tenant string, task planner.Task) (reply Reply, worked int) {
	h := a.begin(tenant)
	solved, worked, err := planner.Solve(ctx, task)
	a.mu.Lock()
	defer a.mu.Unlock()
	h.running--
	if err != nil {
		h.givenUp++
		return *failure(503, "canceled_error", "Planning was given up, as the caller has."), worked
	}
	if len(h.trips) == kept {
		h.trips = append(h.trips[:0], h.trips[1:]...)
		h.forgotten++
	}
	t := trip{ID: "r" + strconv.Itoa(h.forgotten+len(h.trips)+1), Stops: len(task.Stops), Places: worked, Trip: solved}
	h.trips = append(h.trips, t)
	return success(201, t), worked
}

// begin books the begin of a solve.
func (a *API) begin(tenant string) *history {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.trips[tenant]
	if h == nil {
		h = &history{}
		a.trips[tenant] = h
	}
	h.running++
	h.most = max(h.most, h.running)
	return h
}

// Route answers GET /v1/routes/:id with a trip that the tenant planned before. Those of others do not exist for it.
func (a *API) Route(tenant, id string) Reply {
	number, err := strconv.Atoi(strings.TrimPrefix(id, "r"))
	a.mu.Lock()
	defer a.mu.Unlock()
	if h := a.trips[tenant]; err == nil && h != nil {
		if i := number - h.forgotten - 1; i >= 0 && i < len(h.trips) && h.trips[i].ID == id {
			return success(200, h.trips[i])
		}
	}
	return Failure(404)
}

// Analytics answers GET /v1/analytics/* with a report: "distance" sorts all trips that are remembered, "solves" tells how many
// are planned at a time.
func (a *API) Analytics(tenant, report string) Reply {
	a.mu.Lock()
	var h history
	if known := a.trips[tenant]; known != nil {
		h = *known
	}
	var meters []int
	for _, t := range h.trips {
		meters = append(meters, t.Meters)
	}
	a.mu.Unlock()
	switch report {
	case "distance":
		return success(200, distances(meters))
	case "solves":
		return success(200, map[string]any{"report": report, "running": h.running, "most": h.most, "given_up": h.givenUp})
	}
	return Failure(404)
}

func distances(meters []int) any {
	var sum struct {
		Report  string `json:"report"`
		Routes  int    `json:"routes"`
		Median  int    `json:"median"`
		Longest int    `json:"longest"`
	}
	sum.Report, sum.Routes = "distance", len(meters)
	if len(meters) > 0 {
		slices.Sort(meters)
		sum.Median, sum.Longest = meters[len(meters)/2], meters[len(meters)-1]
	}
	return sum
}

// Health answers GET /healthz.
func Health() Reply { return Reply{200, []byte(`{"status":"ok"}`)} }

// Failure answers what a framework has found out by itself: that there is no such route, or that something broke.
func Failure(status int) Reply {
	if status == 404 || status == 405 { // not every router tells the two apart
		return *failure(404, "not_found_error", "There is nothing here.")
	}
	return *failure(status, "internal_error", "The request failed.")
}

func invalid(status int, why string) *Reply {
	return failure(status, "invalid_request_error", "The request is invalid: "+why+".")
}

func failure(status int, kind, message string) *Reply {
	var body struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	body.Error.Type, body.Error.Message = kind, message
	r := success(status, body)
	return &r
}

func success(status int, body any) Reply {
	text, err := json.Marshal(body)
	if err != nil {
		panic(errors.Join(errors.New("service: an answer of our own cannot be written"), err))
	}
	return Reply{status, text}
}
