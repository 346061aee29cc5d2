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

// history is the last trips of a tenant; the first of them has the number forgotten+1.
type history struct {
	trips     []trip
	forgotten int
}

type trip struct {
	ID    string `json:"id"`
	Stops int    `json:"stops"`
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

// ReadStops reads the stops of a route to be planned, {"stops":[{"lat":52.5,"lng":13.4},...]}, and no more of the body than
// it may have. If refused is not nil, it is the answer.
func ReadStops(body io.Reader) (stops []planner.Stop, refused *Reply) {
	text, err := io.ReadAll(io.LimitReader(body, maxBody+1))
	if err != nil {
		return nil, invalid(400, "the body could not be read")
	}
	if len(text) > maxBody {
		return nil, invalid(413, fmt.Sprintf("the body is longer than %d bytes", maxBody))
	}
	var request struct {
		Stops []planner.Stop `json:"stops"`
	}
	if err := json.Unmarshal(text, &request); err != nil {
		return nil, invalid(400, "the body is not {\"stops\":[{\"lat\":52.5,\"lng\":13.4},...]}")
	}
	if err := planner.Check(request.Stops); err != nil {
		return nil, invalid(400, err.Error())
	}
	return request.Stops, nil
}

// Plan answers POST /v1/routes: it plans a trip and remembers it.
func (a *API) Plan(ctx context.Context, tenant string, stops []planner.Stop) Reply {
	solved, err := planner.Solve(ctx, stops)
	if err != nil {
		return *failure(503, "canceled_error", "Planning was given up, as the caller has.")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.trips[tenant]
	if h == nil {
		h = &history{}
		a.trips[tenant] = h
	}
	if len(h.trips) == kept {
		h.trips = append(h.trips[:0], h.trips[1:]...)
		h.forgotten++
	}
	t := trip{ID: "r" + strconv.Itoa(h.forgotten+len(h.trips)+1), Stops: len(stops), Trip: solved}
	h.trips = append(h.trips, t)
	return success(201, t)
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

// Analytics answers GET /v1/analytics/*. The only report is "distance": it sorts all that is remembered.
func (a *API) Analytics(tenant, report string) Reply {
	if report != "distance" {
		return Failure(404)
	}
	var meters []int
	a.mu.Lock()
	if h := a.trips[tenant]; h != nil {
		for _, t := range h.trips {
			meters = append(meters, t.Meters)
		}
	}
	a.mu.Unlock()
	var sum struct {
		Report  string `json:"report"`
		Routes  int    `json:"routes"`
		Median  int    `json:"median"`
		Longest int    `json:"longest"`
	}
	sum.Report, sum.Routes = report, len(meters)
	if len(meters) > 0 {
		slices.Sort(meters)
		sum.Median, sum.Longest = meters[len(meters)/2], meters[len(meters)-1]
	}
	return success(200, sum)
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
