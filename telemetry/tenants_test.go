package telemetry_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
	"github.com/headgate-go/headgate/telemetry"
)

// A tenant throttled into the ground is seen although a hundred others are fine: by the digest that logs and the store know
// it by, or by the name that a function gives it.
func TestTenants(t *testing.T) {
	byName := func(r gate.Request, _ gate.Decision) string {
		tenant, _ := r.Value("tenant").(string)
		if tenant == "nameless" {
			return ""
		}
		return "name of " + tenant
	}
	for _, tt := range []struct {
		name string
		opts []telemetry.Option
		of   func(tenant string, d gate.Decision) string
	}{
		{"digest", nil, func(_ string, d gate.Decision) string { return d.KeyDigest() }},
		{"function", []telemetry.Option{telemetry.WithTenantName(byName)}, func(tenant string, d gate.Decision) string {
			if tenant == "nameless" {
				return d.KeyDigest()
			}
			return "name of " + tenant
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, append(tt.opts, telemetry.WithTenants(2))...)
			g := b.gate(gate.Config{Name: "api", Clock: clock, Limiters: []gate.Limiter{
				gate.RequestRate{Name: "tenant", Key: gate.Value("tenant"), OnMissingKey: gate.MissingKeyReject, Limit: limit.PerDay(1).WithBurst(1)}}})
			ask := func(tenant string, times int) (name string) {
				for range times {
					a := g.Admit(context.Background(), gate.Call{Operation: "GET /x", Values: map[string]any{"tenant": tenant}})
					d, _ := a.Decision("tenant")
					name = tt.of(tenant, d)
				}
				return name
			}
			hot := ask("hot", 50)
			nameless := ask("nameless", 40)
			for i := range 100 {
				ask(fmt.Sprint("fine ", i), 1+i%2) // half of them are refused once
			}
			g.Admit(context.Background(), gate.Call{Operation: "GET /x"}) // nobody's: 400
			for name, want := range map[string]int64{hot: 49, nameless: 39, "other": 50} {
				if n := b.sum("headgate.tenant.refusals", "headgate.tenant="+name, "headgate.mode=enforce"); n != want {
					t.Errorf("%s: %d refusals, want %d", name, n, want)
				}
			}
			if n := len(points(t, b.collect()["headgate.tenant.refusals"])); n != 3 {
				t.Errorf("%d tenants are shown", n)
			}
		})
	}
}

// An outage refuses everybody, which says nothing about any tenant.
func TestTenantsOfAnOutage(t *testing.T) {
	b := newBench(t, telemetry.WithTenants(2))
	g := b.gate(gate.Config{Store: failing{driver.ClassTimeout}, Limiters: []gate.Limiter{
		gate.RequestRate{Name: "p", OnStoreError: gate.FailClosed, Limit: limit.PerDay(1)},
		gate.RequestRate{Name: "q", OnStoreError: gate.FailClosed, Mode: gate.Shadow, Limit: limit.PerDay(1)},
	}})
	for range 20 {
		g.Admit(context.Background(), gate.Call{Operation: "GET /x", Addr: "192.0.2.1"})
	}
	if list := points(t, b.collect()["headgate.tenant.refusals"]); len(list) != 0 {
		t.Errorf("%v", list)
	}
}

// A name is as long as it may be, and stays what it was when the request's memory is another's.
func TestTenantNameIsKept(t *testing.T) {
	memory := []byte(strings.Repeat("a", 100))
	b := newBench(t, telemetry.WithTenants(2), telemetry.WithTenantName(func(gate.Request, gate.Decision) string {
		return unsafe.String(&memory[0], len(memory)) // as Fiber hands out what it will overwrite
	}))
	g := b.gate(gate.Config{Clock: clock, Limiters: []gate.Limiter{gate.RequestRate{Name: "p", Limit: limit.PerDay(1).WithBurst(1)}}})
	ctx, span := b.request()
	g.Admit(context.Background(), gate.Call{Operation: "GET /x", Addr: "192.0.2.1"})
	g.Admit(ctx, gate.Call{Operation: "GET /x", Addr: "192.0.2.1"})
	for i := range memory {
		memory[i] = 'b'
	}
	if n := b.sum("headgate.tenant.refusals", "headgate.tenant="+strings.Repeat("a", 64)); n != 1 {
		t.Errorf("%v", points(t, b.collect()["headgate.tenant.refusals"]))
	}
	if text := attributes(b.ended(span).Events()[0].Attributes); !strings.HasSuffix(text, "headgate.tenant="+strings.Repeat("a", 64)) {
		t.Errorf("the span says %s", text)
	}
}
