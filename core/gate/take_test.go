package gate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// Take reaches the same budget as the requests of that key, and no other.
func TestTake(t *testing.T) {
	g := newGate(t, gate.Config{Name: "api", Clock: newClock().now, Logger: new(lines).logger(), Limiters: []gate.Limiter{
		gate.RequestRate{Name: "tenant", Limit: limit.PerDay(1).WithBurst(10), Key: gate.Value("tenant")},
		gate.RequestRate{Name: "pair", Limit: limit.PerDay(1).WithBurst(10), Match: gate.Paths("/pair"),
			Key: gate.Join(gate.FirstOf(gate.Normalize(gate.Value("user")), gate.Header("X")), gate.ClientIP())},
	}})
	ctx := context.Background()
	remaining := func(policy string, r gate.Request) int {
		d, ok := g.Admit(ctx, r).Decision(policy)
		if !ok {
			t.Fatal("not asked")
		}
		return d.Remaining
	}
	if a := g.Take(ctx, "tenant", 4, "acme"); !a.Allowed() {
		t.Fatal("Take refused")
	}
	if got := remaining("tenant", call("GET /x", "192.0.2.1", "tenant", "acme")); got != 5 {
		t.Errorf("%d left, want 5", got)
	}
	if got := remaining("tenant", call("GET /x", "192.0.2.1", "tenant", "other")); got != 9 {
		t.Errorf("another tenant has %d left, want 9", got)
	}
	g.Take(ctx, "tenant", 2, "ip:192.0.2.7")
	if got := remaining("tenant", call("GET /x", "192.0.2.7")); got != 7 {
		t.Errorf("the address fallback has %d left, want 7", got)
	}
	g.Take(ctx, "pair", 3, " Ann ", "2001:db8:1:2:3::9")
	if got := remaining("pair", call("GET /pair", "[2001:db8:1:2::1]:5000", "user", "ann")); got != 6 {
		t.Errorf("the joined key has %d left, want 6", got)
	}
	a := g.Take(ctx, "tenant", 11, "acme")
	if a.Allowed() || a.Refusal().Status != 429 || a.Refusal().Reason != gate.ReasonCost {
		t.Errorf("%+v", a.Refusal())
	}
	a.Done(nil)
	a.Done(errors.New("twice"))
}

func TestTakeRefusesNonsense(t *testing.T) {
	var log lines
	g := newGate(t, gate.Config{Logger: log.logger(), Limiters: []gate.Limiter{
		gate.RequestRate{Name: "tenant", Limit: limit.PerDay(1).WithBurst(10), Key: gate.Value("tenant")},
		gate.RequestRate{Name: "client", Limit: limit.PerDay(1).WithBurst(10)},
	}})
	for _, tt := range []struct {
		policy string
		key    []string
		want   string
	}{
		{"nobody", []string{"x"}, `there is no policy "nobody"; this gate has "tenant", "client"`},
		{"tenant", nil, `policy "tenant": 0 key parts; value:tenant has 1`},
		{"tenant", []string{"a", "b"}, "2 key parts"},
		{"tenant", []string{" "}, "the part for value:tenant is blank"},
		{"tenant", []string{"ip:nowhere"}, `"nowhere" is not an address`},
		{"client", []string{"nowhere"}, `"nowhere" is not an address`},
	} {
		a := g.Take(context.Background(), tt.policy, 1, tt.key...)
		if ref := a.Refusal(); ref == nil || ref.Status != 500 || !strings.Contains(ref.Message, tt.want) {
			t.Errorf("Take(%q, %q): %+v", tt.policy, tt.key, ref)
		}
		if key := g.StoreKey(tt.policy, tt.key...); key != "" {
			t.Errorf("StoreKey(%q, %q) = %q", tt.policy, tt.key, key)
		}
	}
	if !strings.Contains(log.String(), "Take: refused") {
		t.Error("not logged")
	}
	if err := g.SetMode("tenant", gate.Off); err != nil {
		t.Fatal(err)
	}
	if !g.Take(context.Background(), "tenant", 100, "x").Allowed() {
		t.Error("a policy that is off refuses")
	}
}

// BR-097: the stored key tells the operator where to look and nobody what the key is.
func TestBR097_StoreKey(t *testing.T) {
	g := newGate(t, gate.Config{Name: "api", Limiters: []gate.Limiter{
		gate.RequestRate{Name: "tenant", Limit: limit.PerDay(1), Key: gate.Header("Authorization")}}})
	key := g.StoreKey("tenant", "Bearer s3cr3t-1")
	d, _ := g.Admit(context.Background(), call("GET /x", "192.0.2.1", "Authorization", "Bearer s3cr3t-1")).Decision("tenant")
	if !strings.Contains(key, d.KeyDigest()) || !strings.Contains(key, "tenant") || strings.Contains(key, "s3cr3t") {
		t.Errorf("StoreKey = %q, the decision's digest %q", key, d.KeyDigest())
	}
}

// Every method of the way back works where no gate ran.
func TestNilAdmission(t *testing.T) {
	a := gate.FromContext(context.Background())
	if a != nil {
		t.Fatalf("%v", a)
	}
	a.Done(nil)
	if _, ok := a.Decision("p"); !a.Allowed() || a.Refusal() != nil || a.Decisions() != nil || ok {
		t.Error("a nil admission does not answer as one that may pass")
	}
}

func TestExemptAndPreflight(t *testing.T) {
	g := newGate(t, gate.Config{Exempt: []string{"/healthz"}, Limiters: []gate.Limiter{gate.RequestRate{Name: "p", Limit: limit.PerDay(1).WithBurst(1)}}})
	preflight := call("OPTIONS /x", "192.0.2.1", "Origin", "https://a", "Access-Control-Request-Method", "POST")
	for _, r := range []gate.Request{call("GET /healthz", "192.0.2.1"), preflight} {
		if n := admitted(g, r, 10); n != 10 {
			t.Errorf("%v: %d of 10", r, n)
		}
	}
	for _, path := range []string{"/healthz/", "/HEALTHZ", "//healthz", "/healthz2", "/v1/../healthz", "/%68ealthz"} {
		if _, asked := g.Admit(context.Background(), call("GET "+path, "192.0.2.1")).Decision("p"); !asked {
			t.Errorf("%s is exempt", path)
		}
	}
	if _, asked := g.Admit(context.Background(), call("OPTIONS /x", "192.0.2.1", "Origin", "https://a")).Decision("p"); !asked {
		t.Error("a plain OPTIONS is exempt")
	}
}
