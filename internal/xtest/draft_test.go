package xtest_test

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/headgate-go/headgate/adapters/httpgate"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// The fields of the draft dialect are structured fields to somebody else's parser: lists of strings with integer
// parameters, which come back as they went out.
func TestDraftFieldsAreStructured(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		rule := limit.Per(1+rng.IntN(1_000_000_000), time.Duration(1+rng.Int64N(int64(31*24*time.Hour/time.Microsecond)))*time.Microsecond).
			WithBurst(1 + rng.IntN(1_000_000_000))
		if rule.Validate() != nil {
			continue
		}
		cost := rng.IntN(rule.Capacity() + 2)
		names := []string{"a", "tenant-2.x_y", "0"}
		limiters := make([]gate.Limiter, len(names))
		for i, name := range names {
			limiters[i] = gate.RequestRate{Name: name, Limit: rule, Cost: func(gate.Request) int { return cost }}
		}
		g := gate.Must(gate.New(gate.Config{Headers: gate.HeadersDraft, Limiters: limiters}))
		h := httpgate.Middleware(g)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for range 3 {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
			policy := list(t, w.Header().Values("RateLimit-Policy"), names)
			state := list(t, w.Header().Values("RateLimit"), names)
			for i := range names {
				q, _ := policy[i].Params.Get("q")
				window, _ := policy[i].Params.Get("w")
				r, _ := state[i].Params.Get("r")
				if q != int64(rule.Capacity()) || window.(int64) < 1 || r.(int64) < 0 || r.(int64) > q.(int64) {
					t.Fatalf("%v: q=%v w=%v r=%v", rule, q, window, r)
				}
				if reset, ok := state[i].Params.Get("t"); ok != (cost <= rule.Capacity()) || ok && reset.(int64) < 1 {
					t.Fatalf("%v with cost %d: t=%v", rule, cost, reset)
				}
			}
		}
	}
}

func list(t *testing.T, lines, names []string) (items []httpsfv.Item) {
	t.Helper()
	if len(lines) != 1 {
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	parsed, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		t.Fatalf("%q: %v", lines[0], err)
	}
	if len(parsed) != len(names) {
		t.Fatalf("%q has %d members", lines[0], len(parsed))
	}
	for i, member := range parsed {
		item, ok := member.(httpsfv.Item)
		if !ok || item.Value != names[i] {
			t.Fatalf("%q: member %d is %v", lines[0], i, member)
		}
		items = append(items, item)
	}
	if text, err := httpsfv.Marshal(parsed); err != nil || text != lines[0] {
		t.Fatalf("%q is written %q by the parser (%v)", lines[0], text, err)
	}
	return items
}
