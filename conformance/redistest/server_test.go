package redistest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestStart(t *testing.T) {
	t.Parallel()
	a, b := Start(t, Single), Start(t, Single)
	if a.Addr() == b.Addr() || strings.HasSuffix(a.Addr(), ":6379") {
		t.Fatalf("addresses %s and %s", a.Addr(), b.Addr())
	}
	if len(a.Peers()) != 0 {
		t.Error("a single server has peers")
	}
	expect(t, a, "OK", "SET", "k", "\x00v\r\n")
	expect(t, a, "\x00v\r\n", "GET", "k")
	expect(t, b, nil, "GET", "k")
	expect(t, a, int64(1), "EXISTS", "k")
	expect(t, a, []any{"\x00v\r\n", nil}, "MGET", "k", "other")
	expect(t, a, "", "ECHO", "")
	_, err := a.Do("GET")
	if answer := Error(""); !errors.As(err, &answer) || !strings.HasPrefix(string(answer), "ERR wrong number") {
		t.Errorf("GET without a key: %v", err)
	}
	expect(t, a, "OK", "FLUSHALL") // the connection is still in step
	save, err := a.Do("CONFIG", "GET", "save")
	if fmt.Sprint(save) != "[save ]" {
		t.Errorf("persistence is on: %v, %v", save, err)
	}
}

func TestCommandStats(t *testing.T) {
	t.Parallel()
	srv := Start(t, Single, WithArgs("--maxmemory", "3mb"))
	expect(t, srv, []any{"maxmemory", "3145728"}, "CONFIG", "GET", "maxmemory")
	expect(t, srv, "OK", "CONFIG", "RESETSTAT")
	for range 3 {
		expect(t, srv, "PONG", "PING")
	}
	stats, err := srv.CommandStats()
	if err != nil || stats["ping"].Calls != 3 {
		t.Errorf("3 PINGs give %+v, %v", stats["ping"], err)
	}
}

func TestStopRestart(t *testing.T) {
	t.Parallel()
	srv := Start(t, Single)
	addr := srv.Addr()
	expect(t, srv, "OK", "SET", "k", "v")
	srv.Stop()
	if _, err := srv.Do("PING"); err == nil {
		t.Fatal("a stopped server answers")
	}
	srv.Stop() // once more is harmless
	srv.Restart()
	expect(t, srv, nil, "GET", "k")
	srv.Restart() // while it runs
	expect(t, srv, nil, "GET", "k")
	if srv.Addr() != addr {
		t.Errorf("the address changed from %s to %s", addr, srv.Addr())
	}
}

func TestPauseResume(t *testing.T) {
	t.Parallel()
	srv := Start(t, Single)
	conn, err := Dial(srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	srv.Pause()
	_ = conn.SetDeadline(time.Now().Add(50 * time.Millisecond))
	if reply, err := conn.Do("PING"); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a paused server answers %v, %v", reply, err)
	}
	srv.Resume()
	expect(t, srv, "PONG", "PING")
	srv.Pause() // and cleanup can end a paused one
}

func TestReplica(t *testing.T) {
	t.Parallel()
	primary := Start(t, Replica)
	replica := primary.Peers()[0]
	if replica.Peers()[0] != primary {
		t.Error("the replica does not know its primary")
	}
	expect(t, primary, "OK", "SET", "k", "v")
	expect(t, primary, int64(1), "WAIT", "1", "0")
	expect(t, replica, "v", "GET", "k")
	if _, err := replica.Do("SET", "k", "w"); err == nil || !strings.HasPrefix(err.Error(), "READONLY") {
		t.Errorf("a replica answers a write with %v", err)
	}
	expect(t, replica, "OK", "REPLICAOF", "NO", "ONE")
	expect(t, replica, "OK", "SET", "k", "w")
}

// A port that is taken is another try, not a failure; and whoever holds it is not mistaken for our server.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	first := Start(t, Single)
	second := &Server{t: t, dir: t.TempDir(), port: first.port}
	t.Cleanup(second.cleanup)
	if err := second.launch(); !errors.Is(err, errPortTaken) {
		t.Fatalf("launch on a taken port: %v", err)
	}
	second.plan.args = []string{"--no-such-option", "1"}
	if err := second.launch(); err == nil || errors.Is(err, errPortTaken) || !strings.Contains(err.Error(), "no-such-option") {
		t.Fatalf("launch with a bad option: %v", err)
	}
}

func TestNoServer(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("HEADGATE_REDIS_SERVER", "")
	if _, err := startProcess(nil); err == nil || !strings.Contains(err.Error(), "make test") {
		t.Errorf("without a server: %v", err)
	}
}

func TestTopologyString(t *testing.T) {
	if s := fmt.Sprint(Single, Replica, Sentinel, Cluster, Topology(9)); s != "single replica sentinel cluster topology 9" {
		t.Error(s)
	}
}

func expect(t *testing.T, srv *Server, want any, args ...string) {
	t.Helper()
	got, err := srv.Do(args...)
	if err != nil || fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
		t.Fatalf("%q: %#v, %v; want %#v", args, got, err, want)
	}
}
