package gate_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// plans is a look-up that takes its time and fails when told.
type plans struct {
	calls atomic.Int64
	mu    sync.Mutex
	takes time.Duration
	rule  limit.Rule
	err   error
}

func (p *plans) set(rule limit.Rule, err error, takes time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule, p.err, p.takes = rule, err, takes
}

func (p *plans) load(ctx context.Context, _ string) (limit.Rule, error) {
	p.calls.Add(1)
	p.mu.Lock()
	rule, err, takes := p.rule, p.err, p.takes
	p.mu.Unlock()
	select {
	case <-time.After(takes):
		return rule, err
	case <-ctx.Done():
		return limit.Rule{}, ctx.Err()
	}
}

func TestCacheLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p plans
		ten, twenty := limit.PerSecond(10), limit.PerSecond(20)
		get := gate.CacheLimits(time.Minute, p.load)
		wants := func(step string, rule limit.Rule, ok bool, after time.Duration, calls int64) {
			t.Helper()
			start := time.Now()
			gotRule, gotOK := get(gate.Call{}, "k")
			if took := time.Since(start); gotRule != rule || gotOK != ok || took != after {
				t.Errorf("%s: %v, %v after %v; want %v, %v after %v", step, gotRule, gotOK, took, rule, ok, after)
			}
			synctest.Wait()
			if n := p.calls.Load(); n != calls {
				t.Errorf("%s: %d look-ups, want %d", step, n, calls)
			}
		}
		p.set(ten, nil, 10*time.Millisecond)
		wants("first sight", ten, true, 10*time.Millisecond, 1)
		wants("known", ten, true, 0, 1)
		<-time.After(time.Minute)
		p.set(twenty, nil, time.Second)
		wants("stale while it is looked up", ten, true, 0, 2)
		wants("one look-up at a time", ten, true, 0, 2)
		<-time.After(time.Second)
		synctest.Wait()
		wants("refreshed", twenty, true, 0, 2)
		<-time.After(time.Minute)
		p.set(ten, errors.New("down"), 0)
		wants("last known", twenty, true, 0, 3)
		wants("not asked again at once", twenty, true, 0, 3)
		<-time.After(time.Second)
		wants("asked again", twenty, true, 0, 4)
		<-time.After(time.Second)
		p.set(limit.PerSecond(-1), nil, 0)
		wants("an invalid rule is an error", twenty, true, 0, 5)
	})
}

func TestCacheLimitsFirstSight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p plans
		p.set(limit.PerSecond(1), nil, time.Hour)
		get := gate.CacheLimits(time.Minute, p.load)
		start := time.Now()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if _, ok := get(gate.Call{}, "k"); ok {
					t.Error("a limit out of nothing")
				}
			})
		}
		all.Wait()
		if took := time.Since(start); took != 50*time.Millisecond || p.calls.Load() != 1 {
			t.Errorf("%d look-ups, waited %v", p.calls.Load(), took)
		}
		<-time.After(10 * time.Second) // the look-up ends by its own deadline
		synctest.Wait()
	})
}

func TestCacheLimitsPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		get := gate.CacheLimits(time.Minute, func(context.Context, string) (limit.Rule, error) { panic("plan") })
		if _, ok := get(gate.Call{}, "k"); ok {
			t.Error("a limit out of a panic")
		}
	})
	defer func() {
		if recover() == nil {
			t.Error("a ttl of 0 is accepted")
		}
	}()
	gate.CacheLimits(0, func(context.Context, string) (limit.Rule, error) { return limit.Rule{}, nil })
}

func TestCacheLimitsIsBounded(t *testing.T) {
	var calls atomic.Int64
	get := gate.CacheLimits(time.Hour, func(context.Context, string) (limit.Rule, error) {
		calls.Add(1)
		return limit.PerSecond(1), nil
	})
	for i := range 101_000 {
		get(gate.Call{}, fmt.Sprint(i))
	}
	before := calls.Load()
	for i := range 1000 { // a quarter of the first ones went
		get(gate.Call{}, fmt.Sprint(i))
	}
	if again := calls.Load() - before; again < 100 {
		t.Errorf("only %d of 1,000 keys were forgotten", again)
	}
}
