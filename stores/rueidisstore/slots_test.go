package rueidisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/stores/redisscript"
	"github.com/headgate-go/headgate/stores/rueidisstore"
)

// protocols are the two ways in which a server can be spoken to.
var protocols = []struct {
	name    string
	options rueidis.ClientOption
}{
	{"RESP2", rueidis.ClientOption{AlwaysRESP2: true, DisableCache: true}},
	{"RESP3", rueidis.ClientOption{}},
}

var (
	rate  = driver.NewBucket(5, time.Hour).WithBurst(5)
	slots = driver.NewSlots(2)
)

// lease is the ID of a number, with bytes that text would not survive.
func lease(n byte) driver.ID { return driver.ID{0: 0xff, 1: '\r', 2: '\n', 15: n} }

// request is an entry with a rate, slots, and shadow copies of both.
func request(n byte) []driver.Entry {
	claim := func(policy string, rule driver.Rule, id byte) driver.Claim {
		return driver.Claim{Policy: policy, Subject: "s", Rule: rule, Cost: 1, Shadow: policy == "shadow", Lease: lease(id), LeaseFor: time.Minute}
	}
	return []driver.Entry{{Claims: []driver.Claim{claim("p", rate, n), claim("p", slots, n),
		claim("shadow", rate, n), claim("shadow", slots, n+100)}}}
}

func change(kind driver.ChangeKind, n byte) driver.Change {
	return driver.Change{Kind: kind, Policy: "p", Subject: "s", Rule: slots, Lease: lease(n), LeaseFor: time.Minute}
}

func calls(t *testing.T, srv *redistest.Server, command string) int64 {
	t.Helper()
	stats, err := srv.CommandStats()
	if err != nil {
		t.Fatal(err)
	}
	return stats[command].Calls
}

func do(t *testing.T, srv *redistest.Server, args ...string) any {
	t.Helper()
	reply, err := srv.Do(args...)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// TestSlots: what a lease's life is made of, as the client sends it, also when the server forgets the script.
func TestSlots(t *testing.T) {
	t.Parallel()
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			srv := redistest.Start(t, redistest.Single)
			options := p.options
			options.InitAddress = []string{srv.Addr()}
			store := newStore(t, options).(*rueidisstore.Store)
			do(t, srv, "SCRIPT", "LOAD", redisscript.Script())
			for n, admitted := range []bool{true, true, false} {
				do(t, srv, "CONFIG", "RESETSTAT")
				batch := request(byte(n))
				if err := store.Decide(t.Context(), time.Time{}, batch); err != nil || batch[0].Err != nil {
					t.Fatal(err, batch[0].Err)
				}
				if got := batch[0].Claims[1].Result; got.Allowed != admitted || got.Remaining != max(0, 1-n) {
					t.Errorf("request %d: %+v", n, got)
				}
				if sha, text := calls(t, srv, "evalsha"), calls(t, srv, "eval"); sha != 1 || text != 0 {
					t.Errorf("request %d: %d EVALSHA and %d EVAL; want one EVALSHA for all claims", n, sha, text)
				}
			}
			do(t, srv, "SCRIPT", "FLUSH")
			changes := []driver.Change{change(driver.Renew, 0), change(driver.Renew, 7), change(driver.Release, 1)}
			if err := store.Apply(t.Context(), time.Time{}, changes); err != nil || changes[0].Lost || !changes[1].Lost {
				t.Errorf("renewed a lease and one that never was: lost %t, %t (error %v)", changes[0].Lost, changes[1].Lost, err)
			}
			if got := do(t, srv, "ZCARD", store.KeyName("p", "s", slots)); got != int64(1) {
				t.Errorf("%v leases after a release of one of two", got)
			}
			if err := store.Reset(t.Context(), "p", "s"); err != nil {
				t.Error(err)
			}
			if got := do(t, srv, "EXISTS", store.KeyName("p", "s", slots), store.KeyName("p", "s", rate)); got != int64(0) {
				t.Errorf("%v keys after a reset", got)
			}
			if got := do(t, srv, "EXISTS", store.KeyName("shadow", "s", slots), store.KeyName("shadow", "s", rate)); got != int64(2) {
				t.Errorf("%v keys of the other policy after a reset", got)
			}
			do(t, srv, "SET", store.KeyName("p", "s", slots), "x")
			err := store.Apply(t.Context(), time.Time{}, []driver.Change{change(driver.Release, 1)})
			if driver.ClassOf(err) != driver.ClassOther {
				t.Errorf("a release from what is no set: %v", err)
			}
		})
	}
}

// TestSlotsOfASilentServer: a release and a reset keep their deadlines with a client that does not know them; and a slot that
// is taken when its caller is gone is given back.
func TestSlotsOfASilentServer(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{srv.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	store := rueidisstore.New(client)
	if err := store.Decide(t.Context(), time.Time{}, request(0)); err != nil {
		t.Fatal(err)
	}
	srv.Pause()
	for name, f := range map[string]func(ctx context.Context) error{
		"release": func(ctx context.Context) error {
			return store.Apply(ctx, time.Time{}, []driver.Change{change(driver.Release, 9)})
		},
		"reset":  func(ctx context.Context) error { return store.Reset(ctx, "q", "s") },
		"decide": func(ctx context.Context) error { return store.Decide(ctx, time.Time{}, request(1)) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		start := time.Now()
		if err := f(ctx); driver.ClassOf(err) != driver.ClassTimeout {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("%s: an answer after %v", name, took)
		}
		cancel()
	}
	srv.Resume()
	if err := store.Close(); err != nil { // waits for the calls under way, and for what follows from them
		t.Fatal(err)
	}
	if got := calls(t, srv, "zadd"); got != 4 {
		t.Errorf("%d slots taken, want 4: two of each request", got)
	}
	if got := do(t, srv, "ZCARD", store.KeyName("p", "s", slots)); got != int64(1) {
		t.Errorf("%v slots held, want only that of the first request", got)
	}
}
