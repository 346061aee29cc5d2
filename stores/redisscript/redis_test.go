package redisscript

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
)

// What happens to a store when the server, or the way to it, misbehaves.

// class asks for one claim and returns the class of the failure.
func class(ctx context.Context, s *Store) driver.Class {
	return driver.ClassOf(s.Decide(ctx, time.Time{}, entry(claimOn("c", five, 1))))
}

func TestBR052_ServerForgetsTheScript(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	s, key, rule := openStore(t, srv.Addr()), subject(t, ""), bucket(1, time.Minute, 5)
	stat := func(name string) int64 {
		stats, err := srv.CommandStats()
		if err != nil {
			t.Fatal(err)
		}
		return stats[name].Calls
	}
	for i := range 2 {
		admits(t, "before", one(t, s, time.Time{}, key, rule, 1), true, 4-i)
	}
	do(t, srv, "SCRIPT", "FLUSH")
	do(t, srv, "CONFIG", "RESETSTAT")
	for i := range 10 {
		admits(t, fmt.Sprint("after, request ", i), one(t, s, time.Time{}, key, rule, 1), i < 3, max(0, 2-i))
	}
	equal(t, "EVALSHA", stat("evalsha"), int64(10))
	equal(t, "EVAL", stat("eval"), int64(1))

	// In a pack of three limiters.
	do(t, srv, "SCRIPT", "FLUSH")
	batch := entry(claimOn(key+"1", rule, 1), claimOn(key+"2", rule, 1), claimOn(key, rule, 0))
	if err := s.Decide(t.Context(), time.Time{}, batch); err != nil {
		t.Fatal(err)
	}
	admits(t, "pack", batch[0].Claims[0].Result, true, 4)
	equal(t, "EVAL", stat("eval"), int64(2))

	srv.Restart() // empty
	if _, err := s.client.EvalSHA(t.Context(), SHA(), nil, nil); err == nil {
		t.Fatal("the old connection survived")
	}
	for i := range 7 {
		admits(t, fmt.Sprint("after the restart, request ", i), one(t, s, time.Time{}, key, rule, 1), i < 5, max(0, 4-i))
	}
}

// Answers made up by a proxy: every one is a failure with a class, none a decision.
func TestBR058_BR063_StrangeAnswers(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, redistest.Start(t, redistest.Single).Addr())
	s := openStore(t, proxy.Addr())
	number := func(reply string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(reply), reply) }
	for reply, want := range map[string]driver.Class{
		"-CLUSTERDOWN The cluster is down\r\n":      driver.ClassClusterDown,
		"-LOADING Redis is loading the dataset\r\n": driver.ClassLoading,
		"-TRYAGAIN Multiple keys request\r\n":       driver.ClassClusterDown,
		"-MASTERDOWN Link with MASTER is down\r\n":  driver.ClassClusterDown,
		"-NOAUTH Authentication required.\r\n":      driver.ClassAuth,
		"-NOPERM this user has no permissions\r\n":  driver.ClassAuth,
		"-BUSY Redis is busy running a script.\r\n": driver.ClassBusy,
		"-ERR unknown command 'EVALSHA'\r\n":        driver.ClassOther,
		"-NOSCRIPT No matching script.\r\n":         driver.ClassNoScript,
		"-ERR NOSCRIPT No matching script.\r\n":     driver.ClassNoScript,
		":0\r\n":                                    driver.ClassProtocol,
		":1\r\n":                                    driver.ClassProtocol,
		"*0\r\n":                                    driver.ClassProtocol,
		"*1\r\n:1\r\n":                              driver.ClassProtocol,
		"*-1\r\n":                                   driver.ClassProtocol,
		"$-1\r\n":                                   driver.ClassProtocol,
		"+OK\r\n":                                   driver.ClassProtocol,
		number("0"):                                 driver.ClassProtocol,
		number(""):                                  driver.ClassProtocol,
		number(doubles(1)):                          driver.ClassProtocol,
		number(doubles(1, 0, 0)):                    driver.ClassProtocol,
		number(doubles(0.5, 0)):                     driver.ClassProtocol,
		number(doubles(6, 0)):                       driver.ClassProtocol, // above the burst
		number(doubles(1, -1)):                      driver.ClassProtocol,
		"#f\r\n":                                    driver.ClassOther, // RESP3 to a RESP2 client
		",0.0\r\n":                                  driver.ClassOther,
		"nonsense\r\n":                              driver.ClassOther,
		"$16\r\nshort\r\n":                          driver.ClassTimeout, // the rest never comes
	} {
		proxy.Garbage(reply)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if want == driver.ClassTimeout {
			ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
		}
		equal(t, strconv.Quote(reply), class(ctx, s), want)
		cancel()
	}
	proxy.Pass()
	equal(t, "afterwards", class(t.Context(), s), driver.Class(""))
}

func TestWaysToFail(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	proxy := redistest.StartProxy(t, srv.Addr())
	s := openStore(t, proxy.Addr())
	for _, c := range []struct {
		name  string
		fault func()
		want  driver.Class
	}{
		{"pass", proxy.Pass, ""},
		{"refuse", proxy.Refuse, driver.ClassOther},
		{"silence", proxy.Silence, driver.ClassTimeout},
		{"drop", proxy.Drop, driver.ClassOther},
		{"cut", func() { proxy.Cut(7) }, driver.ClassOther},
		{"delay", func() { proxy.Delay(5 * time.Second) }, driver.ClassTimeout},
		{"stopped", func() { proxy.Pass(); srv.Pause() }, driver.ClassTimeout},
		{"resumed", srv.Resume, ""},
		{"killed", srv.Stop, driver.ClassOther},
		{"restarted", srv.Restart, ""},
	} {
		c.fault()
		timeout := 20 * time.Second
		if c.want == driver.ClassTimeout {
			timeout = 50 * time.Millisecond
		}
		start := time.Now()
		for i := range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			got := class(ctx, s)
			cancel()
			if c.want == "" && i == 0 && got == driver.ClassOther {
				continue // a connection from before the fault
			}
			equal(t, c.name, got, c.want)
		}
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("%s: three decisions took %v", c.name, took)
		}
	}
}

// A call of a caller that gave up may still be executed, and is never sent twice.
func TestTimedOutCallIsSentOnce(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	proxy := redistest.StartProxy(t, srv.Addr())
	s := openStore(t, proxy.Addr())
	equal(t, "first", class(t.Context(), s), driver.Class(""))
	proxy.Delay(200 * time.Millisecond)
	before := proxy.Commands()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	equal(t, "slow", class(ctx, s), driver.ClassTimeout)
	equal(t, "close", s.Close(), nil)
	equal(t, "commands", proxy.Commands()-before, int64(1))
}

// The server's own words.
func TestServerErrors(t *testing.T) {
	t.Parallel()
	primary := redistest.Start(t, redistest.Replica)
	replica := primary.Peers()[0]
	single := func(args ...string) *redistest.Server {
		return redistest.Start(t, redistest.Single, redistest.WithArgs(args...))
	}
	for _, c := range []struct {
		name  string
		srv   *redistest.Server
		setup [][]string
		want  driver.Class
		text  string
	}{
		{"replica", replica, nil, driver.ClassReadOnly, "read only replica"},
		{"replica without its primary", replica, [][]string{{"CONFIG", "SET", "replica-serve-stale-data", "no"},
			{"REPLICAOF", "127.0.0.1", "1"}}, driver.ClassClusterDown, "MASTERDOWN"},
		{"out of memory", single(), [][]string{{"CONFIG", "SET", "maxmemory", "1"}}, driver.ClassOOM, "OOM"},
		{"too few replicas", single(), [][]string{{"CONFIG", "SET", "min-replicas-to-write", "1"}}, driver.ClassOOM, "NOREPLICAS"},
		{"cluster without slots", single("--cluster-enabled", "yes"), nil, driver.ClassClusterDown, "CLUSTERDOWN"},
		{"password", single(), [][]string{{"CONFIG", "SET", "requirepass", "x"}}, driver.ClassAuth, "NOAUTH"},
		{"no scripts", single(), [][]string{{"ACL", "SETUSER", "default", "-evalsha", "-eval"}}, driver.ClassAuth, "+evalsha"},
		{"no writes", single(), [][]string{{"ACL", "SETUSER", "default", "-set"}}, driver.ClassAuth, "+evalsha"},
		{"no keys", single(), [][]string{{"ACL", "SETUSER", "default", "resetkeys", "~app:*"}}, driver.ClassAuth, "+evalsha"},
		{"no command", single("--rename-command", "EVALSHA", ""), nil, driver.ClassOther, "EVALSHA and EVAL are needed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, args := range c.setup {
				do(t, c.srv, args...)
			}
			s := openStore(t, c.srv.Addr())
			for range 2 {
				err := s.Decide(t.Context(), time.Time{}, entry(claimOn("c", five, 1)))
				if driver.ClassOf(err) != c.want || !strings.Contains(err.Error(), c.text) {
					t.Errorf("%v; want class %s and %q", err, c.want, c.text)
				}
			}
		})
	}
	t.Run("busy", func(t *testing.T) {
		srv := single("--busy-reply-threshold", "1")
		conn, err := redistest.Dial(srv.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		done := make(chan error)
		go func() {
			_, err := conn.Do("EVAL", "while true do end", "0")
			done <- err
		}()
		s := openStore(t, srv.Addr())
		for class(t.Context(), s) != driver.ClassBusy { // once the script runs
			if t.Context().Err() != nil {
				return
			}
		}
		do(t, srv, "SCRIPT", "KILL")
		if err := <-done; err == nil {
			t.Error("the endless script ended")
		}
		equal(t, "afterwards", class(t.Context(), s), driver.Class(""))
	})
}

// A foreign value of another type is an error and stays as it is; one of the right type and a wrong length is a fresh key.
func TestForeignValues(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	s := openStore(t, srv.Addr())
	name := func(key string) string { return s.KeyName("p", key, five) }
	do(t, srv, "HSET", name("bad"), "a", "b")
	for _, batch := range [][]driver.Entry{
		entry(claimOn("bad", five, 1)),
		entry(claimOn("good", five, 1), claimOn("bad", five, 1)),
		append(entry(claimOn("good", five, 1)), entry(claimOn("bad", five, 1))...),
	} {
		err := s.Decide(t.Context(), at(0), batch)
		if driver.ClassOf(err) != driver.ClassOther || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("error %v", err)
		}
	}
	equal(t, "type", do(t, srv, "TYPE", name("bad")), "hash")
	equal(t, "nothing was taken", do(t, srv, "EXISTS", name("good")), int64(0))

	h := newHarness(t, srv, script)
	for _, key := range []string{"", "x", strings.Repeat("x", 16), strings.Repeat("x", 25)} {
		do(t, srv, "SET", name(key), key)
		admits(t, key, one(t, s, at(0), key, five, 1), true, 4)
		if got := life(t, srv, name(key)); got < 3_590_000 || got > 3_600_002 {
			t.Errorf("the key lives %d ms more", got)
		}
	}
	// The other way round: what was a bucket is a fresh window.
	w := win{op: opFixed, limit: 3, d: 60e6}
	reply, _, lives, _, err := h.call(at(0).UnixMicro(), []string{name("x")}, head(1, w.encode(1, flagLast, 1)))
	if err != nil || !strings.HasPrefix(reply, doubles(0)) || lives[0] <= 0 {
		t.Errorf("%q, %v", reply, err)
	}
	// And no slots on a string.
	_, _, _, _, err = h.call(0, []string{name("x")}, head(0, slotRecord(opSlots, flagLast, 1, 1, 1e6, "0123456789abcdef")))
	if answer := redistest.Error(""); !errors.As(err, &answer) || !strings.HasPrefix(string(answer), "WRONGTYPE") {
		t.Errorf("slots on a string: %v", err)
	}
}

// BR-062: all digits of a time survive, in states and in scores.
func TestBR062_LargeNumbers(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	s, h := openStore(t, srv.Addr()), newHarness(t, srv, script)
	century := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	rule := bucket(1000, time.Second, 2000)
	for i := range 1000 {
		now := century.Add(time.Duration(i) * time.Microsecond)
		admits(t, "call", one(t, s, now, "k", rule, 1), true, 1999-i+i/1000)
		state := do(t, srv, "GET", s.KeyName("p", "k", rule)).(string)
		if got := double([]byte(state[16:])); got != float64(now.UnixMicro()) {
			t.Fatalf("time %.0f, want %d", got, now.UnixMicro())
		}
	}
	key := h.fresh()
	for i := range 3 {
		id := fmt.Sprintf("id-%013d", 2-i)
		if _, _, _, _, err := h.call(century.UnixMicro()+int64(i), []string{key}, head(0, slotRecord(opSlots, flagLast, 1, 9, 1e6, id))); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "scores", do(t, srv, "ZRANGE", key, "0", "-1", "WITHSCORES"), []any{"id-0000000000002", "4102444801000000",
		"id-0000000000001", "4102444801000001", "id-0000000000000", "4102444801000002"})
}

// Keys end by the server's clock once they equal fresh ones, and never earlier.
func TestRealExpiry(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	s, rule := openStore(t, srv.Addr()), bucket(100, time.Second, 10)
	const keys = 200
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			key := subject(t, fmt.Sprint(i))
			start := time.Now()
			if r := one(t, s, time.Time{}, key, rule, 5); !r.Allowed || r.Remaining != 5 {
				t.Errorf("%+v", r)
			}
			for do(t, srv, "EXISTS", s.KeyName("p", key, rule)) == int64(1) {
				if time.Since(start) > 20*time.Second {
					t.Error("the key does not end")
					return
				}
			}
			if age := time.Since(start); age < 50*time.Millisecond {
				t.Errorf("the key ended after %v", age)
			}
		})
	}
	wg.Wait()
}
