package xtest_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
	"github.com/headgate-go/headgate/core/memory"
	"github.com/headgate-go/headgate/stores/goredisstore"
	"github.com/headgate-go/headgate/stores/redisscript"
	"github.com/headgate-go/headgate/stores/rueidisstore"
)

// steady is a deadline that a busy machine does not miss.
const steady = 20 * time.Second

// overGoRedis returns a store on a server through go-redis.
func overGoRedis(t *testing.T, addr string, protocol int) driver.Store {
	client := redis.NewClient(&redis.Options{Addr: addr, Protocol: protocol})
	store := goredisstore.New(client, redisscript.WithTimeout(steady))
	t.Cleanup(func() {
		_ = store.Close()
		_ = client.Close()
	})
	return store
}

// overRueidis returns a store on a server through rueidis.
func overRueidis(t *testing.T, addr string) driver.Store {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
	if err != nil {
		t.Fatal(err)
	}
	store := rueidisstore.New(client, redisscript.WithTimeout(steady))
	t.Cleanup(func() {
		_ = store.Close()
		client.Close()
	})
	return store
}

// Services that use different clients on one server share their limits: of 500 requests at once, through four gates,
// exactly as many pass as the limit says. Checked first and taken later, more would.
func TestBR040_BothClientsShareALimit(t *testing.T) {
	addr := redistest.Start(t, redistest.Single).Addr()
	var gates [4]*gate.Gate
	for i, store := range []driver.Store{overGoRedis(t, addr, 2), overRueidis(t, addr), overGoRedis(t, addr, 3), overRueidis(t, addr)} {
		gates[i] = gate.Must(gate.New(gate.Config{Store: store, StoreTimeout: steady, Limiters: []gate.Limiter{
			gate.RequestRate{Name: "tenant", Limit: limit.PerDay(25), Key: gate.Value("tenant")},
		}}))
		t.Cleanup(func() { _ = gates[i].Close(context.Background()) })
	}
	for round := range 50 {
		var passed, undecided atomic.Int64
		var running sync.WaitGroup
		start := make(chan struct{})
		for i := range 500 {
			running.Go(func() {
				<-start
				a := gates[i%len(gates)].Admit(context.Background(), gate.Call{Operation: "GET /",
					Values: map[string]any{"tenant": strconv.Itoa(round)}})
				switch d, _ := a.Decision("tenant"); d.Outcome {
				case gate.OutcomeAllowed:
					passed.Add(1)
				case gate.OutcomeDenied:
				default:
					undecided.Add(1)
				}
			})
		}
		close(start)
		running.Wait()
		if passed.Load() != 25 || undecided.Load() != 0 {
			t.Fatalf("round %d: %d of 500 passed at a limit of 25, and %d were not decided", round, passed.Load(), undecided.Load())
		}
	}
}

// What a limiter answers does not depend on the client, on its protocol, or on whether there is a server at all: RESP2 has
// no booleans and no doubles, RESP3 has, and a fraction cut off on the way is a wait that is too short.
func TestBR063_AllStoresAnswerTheSame(t *testing.T) {
	addr := redistest.Start(t, redistest.Single).Addr()
	inProcess := memory.New()
	t.Cleanup(func() { _ = inProcess.Close() })
	stores := []struct {
		name  string
		store driver.Store
	}{
		{"memory", inProcess}, {"go-redis with RESP2", overGoRedis(t, addr, 2)},
		{"go-redis with RESP3", overGoRedis(t, addr, 3)}, {"rueidis", overRueidis(t, addr)},
	}
	for script := range 20 {
		var want []driver.Entry
		for i, s := range stores {
			// Each has keys of its own: on one server they would see each other's.
			got := play(t, s.store, uint64(script), s.name)
			if i == 0 {
				want = got
				continue
			}
			for step := range got {
				for j := range got[step].Claims {
					g, w := got[step].Claims[j], want[step].Claims[j]
					if g.Result != w.Result {
						t.Fatalf("script %d, step %d, %v at cost %d: %s says %+v, memory %+v", script, step, g.Rule, g.Cost, s.name, g.Result, w.Result)
					}
				}
			}
		}
	}
}

// play runs a script of times, the same for every store, and returns the entries with their results.
func play(t *testing.T, store driver.Store, seed uint64, owner string) []driver.Entry {
	rng := rand.New(rand.NewPCG(seed, 63))
	var rules [3]driver.Rule
	for i := range rules {
		rules[i] = limit.Per(1+rng.IntN(1000), time.Duration(1+rng.IntN(5_000_000))*time.Microsecond).WithBurst(1 + rng.IntN(50))
		if err := rules[i].Validate(); err != nil {
			rules[i] = limit.PerSecond(7).WithBurst(3)
		}
	}
	now := time.Date(2031, 5, 1, 0, 0, 0, 0, time.UTC)
	var played []driver.Entry
	for range 100 {
		now = now.Add(time.Duration(rng.Int64N(int64(20*time.Millisecond)) / 1000 * 1000))
		batch := make([]driver.Entry, 1+rng.IntN(3))
		for i := range batch {
			for j := range 1 + rng.IntN(3) {
				rule := rules[j]
				batch[i].Claims = append(batch[i].Claims, driver.Claim{Policy: "p" + strconv.Itoa(j), Rule: rule,
					Subject: string(driver.AppendSubject(driver.AppendSubject(nil, owner), strconv.FormatUint(seed, 10))),
					Cost:    rng.IntN(rule.Capacity() + 2), Shadow: j > 0 && rng.IntN(4) == 0})
			}
		}
		if err := store.Decide(context.Background(), now, batch); err != nil {
			t.Fatalf("%s: %v", owner, err)
		}
		for i := range batch {
			if batch[i].Err != nil {
				t.Fatalf("%s: %v", owner, batch[i].Err)
			}
		}
		if rng.IntN(5) == 0 {
			c := batch[0].Claims[0]
			err := store.Apply(context.Background(), now, []driver.Change{{Kind: driver.Settle, Policy: c.Policy, Subject: c.Subject,
				Rule: c.Rule, Amount: rng.IntN(7) - 3}})
			if err != nil {
				t.Fatalf("%s: %v", owner, err)
			}
		}
		played = append(played, batch...)
	}
	return played
}
