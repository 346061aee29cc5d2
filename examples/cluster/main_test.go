package main

import (
	"context"
	"testing"
	"time"
)

// TestCluster plays the demo with both clients, shorter: whoever runs it shall not be the first to see a broken promise.
func TestCluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	short := acts{healthy: time.Second, half: 300 * time.Millisecond, moved: 500 * time.Millisecond, back: 6 * time.Second}
	if err := demo(ctx, "both", short); err != nil {
		t.Error(err)
	}
}

func TestUnknownClient(t *testing.T) {
	if _, _, err := openStore("jedis", nil); err == nil {
		t.Error("a client that nobody knows was opened")
	}
}

// good is what a run of twenty seconds may look like: two hot tenants and a slow one, of which the primary of the first and of the
// last died.
func good() *result {
	r := &result{
		tenants: []*tenant{{name: "hot-dead", kind: hot}, {name: "hot", kind: hot}, {name: "slow", kind: slow}, {name: "modest", kind: modest}},
		dead:    map[string]bool{"hot-dead": true, "slow": true},
		before:  map[string]account{"hot": {count: count{allowed: 220, refused: 400}}},
		final: map[string]account{
			"hot-dead": {count: count{allowed: 380, refused: 700, open: 120}, most: 2},
			"hot":      {count: count{allowed: 420, refused: 780}, most: 2},
			"slow":     {count: count{allowed: 60, refused: 40, open: 10}, most: 4},
			"modest":   {count: count{allowed: 160}, most: 1},
		},
		late:     map[string]count{"hot-dead": {allowed: 40, refused: 80}},
		slowest:  60 * time.Millisecond,
		took:     20 * time.Second,
		promoted: time.Now(),
	}
	r.last("hot-dead", time.Second)
	return r
}

// last sets when a tenant was let in last because the store failed, counted from the new primary's being there.
func (r *result) last(tenant string, after time.Duration) {
	r.change(tenant, func(a *account) { a.lastOpen = r.promoted.Add(after) })
}

func (r *result) change(tenant string, f func(*account)) {
	a := r.final[tenant]
	f(&a)
	r.final[tenant] = a
}

// The demo fails when a promise is broken.
func TestCheckCanFail(t *testing.T) {
	if err := good().check(); err != nil {
		t.Errorf("a good run fails: %v", err)
	}
	failover := good()
	failover.change("hot-dead", func(a *account) { a.allowed, a.most = 440, 8 })
	if err := failover.check(); err != nil {
		t.Errorf("a failover may cost a burst and as many slots: %v", err)
	}
	for name, spoil := range map[string]func(*result){
		"a 500":                        func(r *result) { r.change("modest", func(a *account) { a.errors = 1 }) },
		"waiting for the store":        func(r *result) { r.slowest = 2 * time.Second },
		"more than the limit":          func(r *result) { r.change("hot", func(a *account) { a.allowed = 422 }) },
		"more than a burst lost":       func(r *result) { r.change("hot-dead", func(a *account) { a.allowed = 442 }) },
		"a modest one above its limit": func(r *result) { r.change("modest", func(a *account) { a.allowed = 422 }) },
		"too many in flight":           func(r *result) { r.change("modest", func(a *account) { a.most = 5 }) },
		"all slots twice":              func(r *result) { r.change("slow", func(a *account) { a.most = 9 }) },
		"refused without need":         func(r *result) { r.change("hot", func(a *account) { a.allowed = 100 }) },
		"open while slots move": func(r *result) {
			r.before["hot"] = account{count: count{allowed: 200, refused: 400, open: 20}}
		},
		"nobody open": func(r *result) {
			r.change("hot-dead", func(a *account) { a.open, a.allowed = 0, 420 })
			r.change("slow", func(a *account) { a.open = 0 })
		},
		"others open too":            func(r *result) { r.change("hot", func(a *account) { a.open, a.refused = 100, 680 }) },
		"no limit in the end":        func(r *result) { r.late["hot-dead"] = count{allowed: 120} },
		"open in the end":            func(r *result) { r.late["modest"] = count{open: 1} },
		"back too late":              func(r *result) { r.last("hot", backWithin+time.Second) },
		"slots that never come back": func(r *result) { r.held = []string{"slow"} },
	} {
		bad := good()
		spoil(bad)
		if bad.check() == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
}
