package gate_test

import (
	"context"
	"strings"
	"testing"

	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// matches says whether a limiter with m is asked about the request.
func matches(t *testing.T, m gate.Match, operation string) bool {
	t.Helper()
	g := newGate(t, gate.Config{Limiters: []gate.Limiter{gate.RequestRate{Name: "p", Limit: limit.PerSecond(1), Match: m}}})
	_, asked := g.Admit(context.Background(), call(operation, "192.0.2.1")).Decision("p")
	return asked
}

func TestRoute(t *testing.T) {
	tests := []struct{ method, pattern, yes, no string }{
		{"POST", "/v1/routes", "POST /v1/routes, POST /v1/routes/, POST /V1/Routes", "GET /v1/routes, POST /v1/routes/1, POST /v1/routes//, POST /v1, POST //v1/routes"},
		{"GET", "/v1/routes/:id", "GET /v1/routes/7, GET /v1/routes/7/, HEAD /v1/routes/7", "GET /v1/routes, GET /v1/routes/, GET /v1/routes/7/x, POST /v1/routes/7"},
		{"GET", "/v1/routes/{id}/legs", "GET /v1/routes/7/legs", "GET /v1/routes//legs, GET /v1/routes/7"},
		{"", "/v1/analytics/*", "GET /v1/analytics/a/b, POST /v1/analytics/, GET /v1/analytics", "GET /v1/analyticsx, GET /v1"},
		{"*", "/files/{path...}", "PUT /files/a/b", "PUT /file"},
		{"GET", "/", "GET /", "GET /x, GET //x"},
		{"GET", "/*", "GET /, GET /x/y", "POST /"},
	}
	for _, tt := range tests {
		m := gate.Route(tt.method, tt.pattern)
		for _, op := range strings.Split(tt.yes, ", ") {
			if !matches(t, m, op) {
				t.Errorf("%v does not match %q", m, op)
			}
		}
		for _, op := range strings.Split(tt.no, ", ") {
			if matches(t, m, op) {
				t.Errorf("%v matches %q", m, op)
			}
		}
	}
}

func TestRouteRefusesBadPatterns(t *testing.T) {
	for _, pattern := range []string{"", "v1", "/a//b", "/:", "/{}", "/a*b", "/*/x", "/a/{b}c", "/a b", "/a?b"} {
		if _, err := gate.New(gate.Config{Limiters: []gate.Limiter{gate.RequestRate{Limit: limit.PerSecond(1), Match: gate.Route("GET", pattern)}}}); err == nil {
			t.Errorf("pattern %q is accepted", pattern)
		}
	}
}

func TestCombinedMatches(t *testing.T) {
	a, b := gate.PathPrefix("/v1/"), gate.Paths("/v1/x", "/v2/x")
	tests := []struct {
		m       gate.Match
		yes, no string
	}{
		{a, "/v1/x", "/V1/x"},
		{b, "/v2/x", "/v2/x/"},
		{gate.AnyOf(a, b), "/v2/x", "/v2/y"},
		{gate.AllOf(a, b), "/v1/x", "/v1/y"},
		{gate.Not(a), "/v2/y", "/v1/y"},
		{gate.MatchFunc(func(r gate.Request) bool { return r.Method() == "PUT" }), "PUT /a", "GET /a"},
	}
	for _, tt := range tests {
		if !matches(t, tt.m, tt.yes) || matches(t, tt.m, tt.no) {
			t.Errorf("%v: %q %v, %q %v", tt.m, tt.yes, matches(t, tt.m, tt.yes), tt.no, matches(t, tt.m, tt.no))
		}
	}
}

// No path makes the matcher panic or disagree with itself about case and the last slash.
func FuzzRoute(f *testing.F) {
	f.Add("/v1/routes/:id", "/v1/routes/7/")
	f.Add("/*", "//")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		m := gate.Route("", pattern)
		g, err := gate.New(gate.Config{Limiters: []gate.Limiter{gate.RequestRate{Name: "p", Limit: limit.PerSecond(1), Match: m}}})
		if err != nil || strings.Contains(path, " ") {
			return
		}
		defer func() { _ = g.Close(context.Background()) }()
		asked := func(path string) bool {
			_, ok := g.Admit(context.Background(), call("GET "+path, "192.0.2.1")).Decision("p")
			return ok
		}
		if path != "" && !strings.HasSuffix(path, "/") && asked(path) != asked(path+"/") {
			t.Errorf("%v: %q and %q with a slash differ", m, path, path)
		}
	})
}
