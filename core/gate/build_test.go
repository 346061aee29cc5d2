package gate_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// Everything that is wrong is said at once, each with its limiter and field.
func TestNewNamesEveryProblem(t *testing.T) {
	_, err := gate.New(gate.Config{
		Limiters: []gate.Limiter{
			gate.RequestRate{Name: "tenant", Limit: limit.PerSecond(100).WithBurst(0)},
			gate.RequestRate{Name: "login", Limit: limit.Per(3, 1500*time.Nanosecond).WithBurst(2_000_000_000)},
			gate.RequestRate{Name: "tenant", Limit: limit.PerSecond(1)},
		},
	})
	want := strings.Join([]string{
		`gate: New: 3 problems`,
		`gate: limiter "tenant": Limit: burst 0; the smallest is 1`,
		`gate: limiter "login": Limit: burst 2000000000; the largest is 1000000000`,
		`gate: limiter 3 (RequestRate): Name: "tenant" is taken by limiter 1`,
	}, "\n")
	if err == nil || err.Error() != want {
		t.Errorf("New answered\n%v\nwant\n%s", err, want)
	}
}

// BR-046, BR-047: what is missing, misspelt or out of range is an error when built, never a limiter that does nothing.
func TestBR046_BR047_NewRefuses(t *testing.T) {
	ok := gate.RequestRate{Limit: limit.PerSecond(1)}
	with := func(change func(*gate.RequestRate)) gate.Config {
		r := ok
		change(&r)
		return gate.Config{Limiters: []gate.Limiter{r}}
	}
	also := func(change func(*gate.Config)) gate.Config {
		c := gate.Config{Limiters: []gate.Limiter{ok}}
		change(&c)
		return c
	}
	tests := []struct {
		name   string
		config gate.Config
		want   string
	}{
		{"no limiters", gate.Config{}, "Limiters: there are none"},
		{"no rule", with(func(r *gate.RequestRate) { r.Limit = limit.Rule{} }), "Limit: no rule"},
		{"rate 0", with(func(r *gate.RequestRate) { r.Limit = limit.PerSecond(0) }), "Limit: rate 0 per 1s"},
		{"negative rate", with(func(r *gate.RequestRate) { r.Limit = limit.PerSecond(-3) }), "Limit: rate -3 per 1s"},
		{"period 0", with(func(r *gate.RequestRate) { r.Limit = limit.Per(1, 0) }), "Limit: period 0s"},
		{"negative period", with(func(r *gate.RequestRate) { r.Limit = limit.Per(1, -time.Second) }), "Limit: period -1s"},
		{"Anonymous", with(func(r *gate.RequestRate) { r.Anonymous = limit.PerSecond(-1) }), "Anonymous: rate -1"},
		{"Anonymous unused", with(func(r *gate.RequestRate) {
			r.Anonymous, r.OnMissingKey = limit.PerSecond(1), gate.MissingKeySkip
		}), "Anonymous: it is the limit of MissingKeyUseClientIP"},
		{"name", with(func(r *gate.RequestRate) { r.Name = "Tenant" }), `Name: "Tenant"; lower-case`},
		{"long name", with(func(r *gate.RequestRate) { r.Name = strings.Repeat("a", 65) }), "at most 64"},
		{"key without name", with(func(r *gate.RequestRate) { r.Key = gate.Value(" ") }), "Key: value: the name is empty"},
		{"nil key function", with(func(r *gate.RequestRate) { r.Key = gate.KeyFunc(nil) }), "Key: KeyFunc: the function is nil"},
		{"empty join", with(func(r *gate.RequestRate) { r.Key = gate.Join() }), "Key: Join: no keys"},
		{"nil in join", with(func(r *gate.RequestRate) { r.Key = gate.Join(gate.ClientIP(), nil) }), "Key: Join: key 2 is nil"},
		{"nil in first of", with(func(r *gate.RequestRate) { r.Key = gate.FirstOf(nil) }), "Key: FirstOf: key 1 is nil"},
		{"normalized join", with(func(r *gate.RequestRate) { r.Key = gate.Normalize(gate.Join(gate.ClientIP())) }), "Key: Normalize: wants a single key"},
		{"match", with(func(r *gate.RequestRate) { r.Match = gate.Route("get", "/x") }), `Match: Route: method "get"`},
		{"nil match function", with(func(r *gate.RequestRate) { r.Match = gate.MatchFunc(nil) }), "Match: MatchFunc: the function is nil"},
		{"not of nil", with(func(r *gate.RequestRate) { r.Match = gate.Not(nil) }), "Match: Not: match 1 is nil"},
		{"mode", with(func(r *gate.RequestRate) { r.Mode = 9 }), "Mode: 9 is none"},
		{"missing key policy", with(func(r *gate.RequestRate) { r.OnMissingKey = 9 }), "OnMissingKey: 9 is none"},
		{"store error policy", with(func(r *gate.RequestRate) { r.OnStoreError = 9 }), "OnStoreError: 9 is none"},
		{"jitter", with(func(r *gate.RequestRate) { r.Jitter = 9 }), "Jitter: 9 is none"},
		{"pointer", gate.Config{Limiters: []gate.Limiter{&ok}}, "limiter 1 (*gate.RequestRate): pass the value"},
		{"nil limiter", gate.Config{Limiters: []gate.Limiter{nil}}, "limiter 1 (<nil>): nil"},
		{"gate name", also(func(c *gate.Config) { c.Name = "a b" }), `gate: Name: "a b"`},
		{"exempt", also(func(c *gate.Config) { c.Exempt = []string{"healthz"} }), `Exempt: "healthz" does not begin with /`},
		{"routes", also(func(c *gate.Config) { c.Routes = []string{"GET v1"} }), `Routes: Route: pattern "v1" does not begin with /`},
		{"headers none and more", also(func(c *gate.Config) { c.Headers = gate.HeadersNone | gate.HeadersStandard }), "HeadersNone stands alone"},
		{"headers unknown", also(func(c *gate.Config) { c.Headers = 64 }), "Headers: 64 is no set"},
		{"docs", also(func(c *gate.Config) { c.DocsURL = "docs" }), `DocsURL: "docs" is not an address`},
		{"IPv6 bits", also(func(c *gate.Config) { c.Client.IPv6Bits = 8 }), "Client.IPv6Bits: 8"},
		{"trusted", also(func(c *gate.Config) { c.Client.Trusted = []netip.Prefix{{}} }), "Client.Trusted: invalid Prefix is not a network"},
		{"client header", also(func(c *gate.Config) {
			c.Client = gate.ClientAddress{Header: "X Real", Trusted: gate.PrivateNetworks()}
		}), `Client.Header: "X Real" is not the name`},
		{"client header and nobody trusted", also(func(c *gate.Config) { c.Client.Header = "CF-Connecting-IP" }), "Client.Trusted is empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, err := gate.New(tt.config)
			if g != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New answered %v, %v; want an error with %q", g, err, tt.want)
			}
		})
	}
}

// The limiters of later issues are declared, and say so instead of doing nothing.
func TestNotBuiltYet(t *testing.T) {
	for _, l := range []gate.Limiter{gate.FleetUsage{}, gate.WorkerUtilization{}, gate.AdmissionQueue{}} {
		if _, err := gate.New(gate.Config{Limiters: []gate.Limiter{l}}); err == nil || !strings.Contains(err.Error(), "not built yet") {
			t.Errorf("New with %T answered %v", l, err)
		}
	}
}

func TestMustAndPerClientPanic(t *testing.T) {
	for name, f := range map[string]func(){
		"PerClient": func() { gate.PerClient(limit.PerSecond(0)) },
		"Must":      func() { gate.Must(gate.New(gate.Config{})) },
		"Prefixes":  func() { gate.Prefixes("10.0.0.0/99") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("did not panic")
				}
			}()
			f()
		})
	}
}

func TestPolicies(t *testing.T) {
	g := newGate(t, gate.Config{Limiters: []gate.Limiter{
		gate.RequestRate{Limit: limit.PerSecond(100)},
		gate.RequestRate{Name: "tenant", Limit: limit.PerHour(10).WithBurst(3), Mode: gate.Shadow,
			Key: gate.Join(gate.Value("tenant"), gate.ClientIP()), Match: gate.Route("POST", "/v1/routes")},
	}})
	want := []gate.Policy{
		{Name: "request_rate", LimitType: "request_rate", Limit: "100/s", Key: "client_ip"},
		{Name: "tenant", LimitType: "request_rate", Mode: gate.Shadow, Limit: "10/h burst 3", Key: "value:tenant + client_ip", Match: "POST /v1/routes"},
	}
	got := g.Policies()
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("Policies() = %+v\nwant %+v", got, want)
	}
}
