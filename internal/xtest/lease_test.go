package xtest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
)

// A process that holds slots renews them for three times as long as they live, and is killed: its slots are free again when
// the leases end, all of them, and not a moment before.
func TestBR130_ProcessKilledWhileHolding(t *testing.T) {
	const held, lease = 20, 1500 * time.Millisecond
	for _, client := range []string{"goredis", "rueidis"} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			addr := redistest.Start(t, redistest.Single).Addr()
			server := redis.NewClient(&redis.Options{Addr: addr})
			t.Cleanup(func() { _ = server.Close() })
			store := overGoRedis(t, addr, 3)
			if client == "rueidis" {
				store = overRueidis(t, addr)
			}
			g := gate.Must(holdingGate(store, held, lease))
			t.Cleanup(func() { _ = g.Close(ctx) })

			w := startWorker(t, client, addr)
			if r := w.tell(order{Op: "hold", Slots: held, Lease: lease}); r.Held != held {
				t.Fatalf("the worker holds %d of %d slots", r.Held, held)
			}
			for end := time.Now().Add(3 * lease); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
				if a := g.Admit(ctx, gate.Call{}); a.Allowed() {
					t.Fatal("a request that runs for longer than its lease lost its slot")
				}
			}
			if err := w.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = w.cmd.Wait() // nothing more is sent after this

			ends, err := server.ZRangeWithScores(ctx, g.StoreKey("slots", "k"), 0, -1).Result()
			if err != nil || len(ends) != held {
				t.Fatalf("%d leases, %v", len(ends), err)
			}
			first, last := int64(ends[0].Score), int64(ends[held-1].Score)
			if left := time.UnixMicro(first).Sub(serverTime(t, server)); left > lease || left < lease/2 {
				t.Errorf("the first lease ends in %v; it lives for %v and is renewed every third of that", left, lease)
			}
			var mine []*gate.Admission
			for deadline := time.Now().Add(4 * lease); len(mine) < held; <-time.After(5 * time.Millisecond) {
				a := g.Admit(ctx, gate.Call{})
				now := serverTime(t, server).UnixMicro()
				switch {
				case a.Allowed() && now <= first:
					t.Fatalf("a slot was given away %v before the first lease ended", time.Duration(first-now)*time.Microsecond)
				case a.Allowed():
					mine = append(mine, a)
				case now > last+int64(100*time.Millisecond/time.Microsecond):
					t.Fatalf("%d slots are back %v after the last lease ended", len(mine), time.Duration(now-last)*time.Microsecond)
				}
				if time.Now().After(deadline) {
					t.Fatalf("%d of %d slots are back", len(mine), held)
				}
			}
			if g.Admit(ctx, gate.Call{}).Allowed() {
				t.Errorf("%d of %d slots are taken", held+1, held)
			}
			for _, a := range mine {
				a.Done(nil)
			}
		})
	}
}

func serverTime(t *testing.T, server *redis.Client) time.Time {
	t.Helper()
	now, err := server.Time(context.Background()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// BR-129: no key outlives its leases, whoever forgot them.
func TestBR129_NoKeyWithoutALease(t *testing.T) {
	ctx := context.Background()
	addr := redistest.Start(t, redistest.Single).Addr()
	server := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = server.Close() })
	const lease = 300 * time.Millisecond
	for i, store := range []driver.Store{overGoRedis(t, addr, 2), overRueidis(t, addr)} {
		g := gate.Must(gate.New(gate.Config{Name: fmt.Sprintf("g%d", i), Store: store, StoreTimeout: steady,
			Limiters: []gate.Limiter{gate.ConcurrentRequests{Name: "slots", Max: 5, Key: gate.Const("k"), LeaseTime: lease}}}))
		key := g.StoreKey("slots", "k")
		for range 10 {
			g.Admit(ctx, gate.Call{}).Done(nil)
		}
		if err := g.Close(ctx); err != nil {
			t.Fatal(err)
		}
		if n := server.Exists(ctx, key).Val(); n != 0 {
			t.Errorf("all was released, and the key %s is there", key)
		}
		g = gate.Must(gate.New(gate.Config{Name: fmt.Sprintf("g%d", i), Store: store, StoreTimeout: steady,
			Limiters: []gate.Limiter{gate.ConcurrentRequests{Name: "slots", Max: 5, Key: gate.Const("k"), LeaseTime: lease}}}))
		g.Admit(ctx, gate.Call{}) // and never Done
		if ttl := server.PTTL(ctx, key).Val(); ttl <= 0 || ttl > 2*lease+2*time.Millisecond {
			t.Errorf("the key lives for %v; the lease for %v", ttl, lease)
		}
		closing, cancel := context.WithTimeout(ctx, time.Millisecond)
		_ = g.Close(closing) // renews no more
		cancel()
		for deadline := time.Now().Add(steady); server.Exists(ctx, key).Val() != 0; <-time.After(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the key %s is still there", key)
			}
		}
	}
}
