package redistest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// took logs how long something takes: nobody asserts it, and it is good to know.
func took(t *testing.T, what string, do func()) {
	t.Helper()
	start := time.Now()
	do()
	t.Logf("%s took %v", what, time.Since(start).Round(10*time.Millisecond))
}

func TestCluster(t *testing.T) {
	t.Parallel()
	var srv *Server
	took(t, "forming a cluster of six", func() { srv = Start(t, Cluster) })
	n := srv.Nodes()
	servers := n.Servers()
	if len(servers) != 6 || len(n.Addrs()) != 6 || servers[0] != srv || len(srv.Peers()) != 5 {
		t.Fatalf("%d servers with %d addresses, %d peers", len(servers), len(n.Addrs()), len(srv.Peers()))
	}
	for i, node := range n.List() {
		if node.Server != servers[i] || node.Primary != (i < 3) || node.Failing || len(node.Slots) > 1 || node.Server.PID() == 0 {
			t.Errorf("node %d is %+v", i, node)
		}
		if !node.Primary && node.Of != servers[i-3] {
			t.Errorf("node %d is a replica of %v", i, node.Of)
		}
	}
	slot := n.Slot("k")
	if slot != 7629 || n.Owner(slot) != servers[1] || n.Slot("{k}x") != slot {
		t.Fatalf("slot %d", slot)
	}
	expect(t, servers[1], "OK", "SET", "k", "v")
	if _, err := servers[0].Do("GET", "k"); err == nil || err.Error() != "MOVED 7629 "+servers[1].Addr() {
		t.Errorf("another node answers with %v", err)
	}

	servers[1].Stop()
	var heir *Server
	took(t, "failover in the cluster", func() { heir = n.AwaitFailover(servers[1]) })
	if heir != servers[4] || n.Owner(slot) != heir {
		t.Fatal("the wrong node is the owner")
	}
	expect(t, heir, "v", "GET", "k")
	took(t, "the return of the old primary", func() {
		servers[1].Restart()
		n.Await()
	})
	if node := n.List()[1]; node.Primary || node.Of != heir {
		t.Errorf("back is %+v", node)
	}
	expect(t, servers[1], "OK", "READONLY")
	expect(t, servers[1], "v", "GET", "k")

	took(t, "promotion", func() { n.Promote(servers[1]) })
	if n.Owner(slot) != servers[1] || n.AwaitFailover(heir) != servers[1] {
		t.Error("the promoted node is not the owner")
	}
}

func TestMoveSlot(t *testing.T) {
	t.Parallel()
	var srv *Server
	took(t, "forming a cluster of three", func() { srv = Start(t, Cluster, WithReplicas(0)) })
	n := srv.Nodes()
	const slot, keys = 0, 250
	to := n.Servers()[2]
	// "06S" is in slot 0.
	key := func(i int) string { return fmt.Sprintf("{06S}%d", i) }
	if n.Slot(key(0)) != slot || n.Owner(slot) != srv {
		t.Fatalf("%q is in slot %d", key(0), n.Slot(key(0)))
	}
	for i := range keys {
		expect(t, srv, "OK", "SET", key(i), fmt.Sprint(i))
	}

	ask := fmt.Sprintf("ASK %d %s", slot, to.Addr())
	refused := func(s *Server, start string, args ...string) {
		t.Helper()
		if reply, err := s.Do(args...); err == nil || !strings.HasPrefix(err.Error(), start) {
			t.Errorf("%q: %v, %v; want %s", args, reply, err, start)
		}
	}
	m := n.BeginMove(slot, to)
	expect(t, srv, "0", "GET", key(0))
	refused(srv, ask, "GET", key(keys))
	m.Key(key(0), key(1))
	refused(srv, ask, "GET", key(0))
	refused(to, "MOVED", "GET", key(0))
	expect(t, to, "OK", "ASKING")
	expect(t, to, "0", "GET", key(0))
	refused(srv, "TRYAGAIN", "MGET", key(0), key(2))
	expect(t, to, "OK", "ASKING")
	refused(to, "TRYAGAIN", "EVAL", "return 1", "2", key(0), key(2))
	if moved := m.Keys(8); moved != 8 {
		t.Errorf("%d keys were moved", moved)
	}
	expect(t, srv, int64(keys-10), "CLUSTER", "COUNTKEYSINSLOT", "0")
	if clients, err := to.Clients(); clients != 0 {
		t.Errorf("%d clients, %v, where only the other node moves keys", clients, err)
	}

	took(t, "the rest of the move", m.Finish)
	refused(srv, "MOVED", "GET", key(0))
	for i := range keys {
		expect(t, to, fmt.Sprint(i), "GET", key(i))
	}
	took(t, "moving it back", func() { n.MoveSlot(slot, srv) })
	expect(t, srv, int64(keys), "DBSIZE")
}

func TestSmallCluster(t *testing.T) {
	t.Parallel()
	took(t, "forming a cluster of one", func() {
		srv := Start(t, Cluster, WithPrimaries(1), WithReplicas(0))
		expect(t, srv, "OK", "SET", "k", "v")
	})
}

// Clients can be cut off from a node which is well and whose replica is in sync.
func TestClusterProxies(t *testing.T) {
	t.Parallel()
	srv := Start(t, Cluster, WithProxies(), WithPrimaries(2))
	n := srv.Nodes()
	servers := n.Servers()
	p := srv.Proxy()
	if n.Addrs()[0] != p.Addr() || p.Addr() == srv.Addr() {
		t.Fatalf("the server at %s has a proxy at %s and is given to clients as %s", srv.Addr(), p.Addr(), n.Addrs()[0])
	}
	c := client(t, p)
	const mine, others = "k", "foo" // slots 7629 and 12182
	if _, err := c.Do("GET", others); err == nil || err.Error() != "MOVED 12182 "+servers[1].Proxy().Addr() {
		t.Fatalf("redirected with %v", err)
	}
	ping(t, c)
	if p.Open() != 1 {
		t.Errorf("%d connections are open; the replica's does not count", p.Open())
	}
	for _, fault := range []func(){p.Silence, p.Refuse, p.Drop, func() { p.Garbage("-LOADING wait\r\n") }, func() { p.Cut(0) }} {
		fault()
		_ = c.SetDeadline(time.Now().Add(50 * time.Millisecond))
		if reply, err := c.Do("GET", mine); err == nil {
			t.Errorf("a client is answered %v", reply)
		}
		expect(t, srv, "OK", "SET", mine, "v")
		expect(t, srv, int64(1), "WAIT", "1", "5000")
		p.Pass()
		c = client(t, p)
		ping(t, c)
	}
	n.Await()
	n.MoveSlot(n.Slot(mine), servers[1])
	if _, err := c.Do("GET", mine); err == nil || err.Error() != "MOVED 7629 "+servers[1].Proxy().Addr() {
		t.Errorf("after the move redirected with %v", err)
	}
	servers[3].Restart()
	n.Await()
	n.Promote(servers[3])
	ping(t, client(t, servers[3].Proxy()))
	if _, err := client(t, p).Do("GET", mine); err == nil || err.Error() != "MOVED 7629 "+servers[3].Proxy().Addr() {
		t.Errorf("after the promotion redirected with %v", err)
	}

	// A proxy does not stand in for a process that has ended, unless it is what keeps that from being noticed.
	last := servers[1].Proxy()
	servers[1].Stop()
	if _, err := Dial(last.Addr()); err == nil {
		t.Error("the proxy of a stopped node accepts")
	}
	last.Silence()
	silent(t, client(t, last))
	last.Pass()
	if _, err := Dial(last.Addr()); err == nil {
		t.Error("the proxy of a stopped node accepts again")
	}
	servers[1].Restart()
	ping(t, client(t, last))
}

func TestAwaitTells(t *testing.T) {
	t.Parallel()
	srv := Start(t, Single)
	err := await(time.Millisecond, []*Server{srv}, func() error { return errors.New("something is missing") })
	for _, part := range []string{"something is missing", fmt.Sprint(srv.port), fmt.Sprint(srv.PID()), "runs", "Ready to accept connections"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v\nlacks %q", err, part)
		}
	}
	srv.Pause()
	if text := tails([]*Server{srv}); !strings.Contains(text, "is paused") || len(running([]*Server{srv})) != 0 {
		t.Error(text)
	}
	srv.Stop()
	if text := tails([]*Server{srv}); !strings.Contains(text, "has ended") || len(running([]*Server{srv})) != 0 {
		t.Error(text)
	}
}

func TestParseNode(t *testing.T) {
	one, two := &Server{port: 1}, &Server{port: 2}
	byID := map[string]*Server{"id1id1id1": one, "id2id2id2": two}
	for line, want := range map[string]Node{
		"id1id1id1 :0@30 myself,master - 0 0 1 connected 0-5 7 9-11 [12->-id2id2id2]": {Server: one, ID: "id1id1id1", Primary: true, bus: 30,
			Slots: []SlotRange{{0, 5}, {7, 7}, {9, 11}}},
		"id2id2id2 127.0.0.1:2@31,host slave,fail? id1id1id1 0 0 1 connected": {Server: two, ID: "id2id2id2", Of: one, Failing: true, bus: 31},
		"made-up 127.0.0.1:2@31 handshake - 0 0 0 disconnected":               {ID: "made-up", bus: 31},
	} {
		if got, err := parseNode(line, byID); !reflect.DeepEqual(got, want) || err != nil {
			t.Errorf("%q: %+v, %v", line, got, err)
		}
	}
	for _, line := range []string{"", "id 127.0.0.1:2@x master - 0 0 1 connected", "id 127.0.0.1:2@1 master - 0 0 1 connected 1-x"} {
		if _, err := parseNode(line, byID); err == nil {
			t.Errorf("%q is accepted", line)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		topology Topology
		opts     []Option
		want     string
	}{
		{Single, []Option{WithReplicas(1)}, "WithReplicas is for [sentinel cluster], not for single"},
		{Sentinel, []Option{WithPrimaries(1)}, "WithPrimaries is for [cluster], not for sentinel"},
		{Replica, []Option{WithProxies(), WithDownAfter(0)}, "WithProxies is for [cluster], not for replica\nWithDownAfter is for"},
		{Cluster, []Option{WithPrimaries(0), WithReplicas(-1)}, "WithPrimaries(0): the smallest is 1\nWithReplicas(-1): the smallest is 0"},
		{Cluster, []Option{WithDownAfter(time.Microsecond)}, "WithDownAfter(1µs): the smallest is 1ms"},
	} {
		if _, err := newOptions(c.topology, c.opts); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v: %v; want %s", c.topology, err, c.want)
		}
	}
	o, err := newOptions(Cluster, []Option{WithPrimaries(1), WithReplicas(0), WithDownAfter(2 * time.Second), WithProxies()})
	if err != nil || o.primaries != 1 || o.replicas != 0 || o.downAfter != 2*time.Second || !o.proxies {
		t.Errorf("%+v, %v", o, err)
	}
}
