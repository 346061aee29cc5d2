package redistest

import "testing"

func TestSentinel(t *testing.T) {
	t.Parallel()
	var srv *Server
	took(t, "sentinels to agree", func() { srv = Start(t, Sentinel) })
	n := srv.Sentinels()
	if n.Primary() != srv || len(srv.Peers()) != 2 || len(n.Addrs()) != 3 || n.Servers()[0].Sentinels() != n || srv.Nodes() != nil {
		t.Fatalf("%d peers, %d sentinels", len(srv.Peers()), len(n.Addrs()))
	}
	expect(t, srv, "OK", "SET", "k", "v")
	expect(t, srv, int64(2), "WAIT", "2", "0")
	expect(t, n.Servers()[2], "OK 3 usable Sentinels. Quorum and failover authorization can be reached", "SENTINEL", "CKQUORUM", PrimaryName)
	if clients, err := srv.Clients(); clients != 0 {
		t.Errorf("%d clients, %v, where only sentinels are connected", clients, err)
	}

	srv.Stop()
	var heir *Server
	took(t, "failover by sentinels", func() { heir = n.AwaitFailover(srv) })
	if heir == srv || n.Primary() != heir {
		t.Fatalf("the primary is %s", n.Primary().Addr())
	}
	expect(t, heir, "v", "GET", "k")
	took(t, "the return of the old primary and of a sentinel", func() {
		n.Servers()[0].Restart()
		srv.Restart()
		n.Await()
	})
	expect(t, srv, "v", "GET", "k")
}
