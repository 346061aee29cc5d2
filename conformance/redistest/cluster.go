package redistest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// slotCount is how many slots a cluster has.
const slotCount = 16384

// Nodes are the servers of a cluster. Each primary and its replicas stay together: whichever of them is the primary, the
// others are its replicas, and no replica goes over to another primary.
//
// Methods that wait or move something fail the test if that is not done in time, so they belong into the test's own
// goroutine; the others may be called from any.
type Nodes struct {
	t       testing.TB
	servers []*Server
	within  time.Duration // bounds waits
}

// startCluster starts the nodes of a cluster and returns them when they are one.
func startCluster(t testing.TB, o options) ([]*Server, error) {
	p := plan{bus: true, args: append([]string{
		"--cluster-node-timeout", strconv.FormatInt(o.downAfter.Milliseconds(), 10),
		// A replica shall take over however long ago it heard of its primary, and nobody shall give his replicas away.
		"--cluster-replica-validity-factor", "0", "--cluster-allow-replica-migration", "no",
		"--repl-ping-replica-period", "1",
	}, o.args...)}
	if o.proxies {
		p.ready = (*Server).announce
	}
	servers, err := startAll(t, slices.Repeat([]plan{p}, o.primaries*(1+o.replicas))...)
	if err != nil {
		return nil, err
	}
	befriend(servers)
	n := &Nodes{t: t, servers: servers, within: o.patient()}
	for i, s := range servers {
		s.nodes, s.shard = n, i%o.primaries
		if s.id, err = s.text("CLUSTER", "MYID"); err != nil {
			return nil, err
		}
	}
	for i, s := range servers[:o.primaries] {
		first, last := slotCount*i/o.primaries, slotCount*(i+1)/o.primaries-1
		// Primaries whose epochs are equal would have to sort that out first.
		if _, err := s.text("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)); err != nil {
			return nil, err
		}
		if _, err := s.text("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last)); err != nil {
			return nil, err
		}
	}
	if err := await(n.within, servers, n.strangers); err != nil {
		return nil, err
	}
	for _, s := range servers[o.primaries:] {
		if _, err := s.text("CLUSTER", "REPLICATE", servers[s.shard].id); err != nil {
			return nil, err
		}
	}
	return servers, await(n.within, servers, n.trouble)
}

// strangers introduces nodes to each other and says which do not know each other yet. Every pair meets: hearing of others
// through others takes seconds. A handshake that got no answer within a second is forgotten, and is begun again.
func (n *Nodes) strangers() error {
	var errs []error
	for i, s := range n.servers {
		view, err := s.view()
		if err != nil {
			return err
		}
		for j, other := range n.servers {
			at := slices.IndexFunc(view, func(v Node) bool { return v.ID == other.id || v.bus == other.bus })
			if at >= 0 && view[at].ID == other.id {
				continue
			}
			errs = append(errs, fmt.Errorf("the node on port %d does not know that on port %d", s.port, other.port))
			if at < 0 && i < j {
				if _, err := s.text("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(other.port), strconv.Itoa(other.bus)); err != nil {
					return err
				}
			}
		}
	}
	return errors.Join(errs...)
}

// announce puts a proxy in front of a node when it was started for the first time, and lets it announce that. Later there
// is one, of which the command line tells.
func (s *Server) announce() (err error) {
	if s.proxy != nil {
		s.proxy.setDown(false)
		return nil
	}
	if s.proxy, err = startProxy(s.t, s.Addr(), true); err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	for _, setting := range s.announcement() {
		if _, err := s.text("CONFIG", "SET", setting[0], setting[1]); err != nil {
			return err
		}
	}
	return nil
}

// announcement returns the settings that make others learn the proxy's address, and the bus's own.
func (s *Server) announcement() [][2]string {
	host, port, _ := strings.Cut(s.proxy.Addr(), ":")
	return [][2]string{
		{"cluster-announce-ip", host},
		{"cluster-announce-port", port},
		{"cluster-announce-bus-port", strconv.Itoa(s.bus)},
	}
}

// Servers returns all nodes, whatever became of them: first those that began as primaries, in the order of their slots,
// then their replicas.
func (n *Nodes) Servers() []*Server { return slices.Clone(n.servers) }

// Addrs returns the addresses of all nodes as a client is given them: those of the proxies, where there are proxies.
func (n *Nodes) Addrs() []string {
	var addrs []string
	for _, s := range n.servers {
		if s.proxy != nil {
			addrs = append(addrs, s.proxy.Addr())
		} else {
			addrs = append(addrs, s.Addr())
		}
	}
	return addrs
}

// Slot returns the slot of a key; the cluster itself is asked.
func (n *Nodes) Slot(key string) int {
	n.t.Helper()
	slot, err := n.alive().Do("CLUSTER", "KEYSLOT", key)
	if err != nil {
		n.t.Fatalf("redistest: slot of %q: %v", key, err)
	}
	return int(slot.(int64))
}

// alive returns a node that can be asked.
func (n *Nodes) alive() *Server {
	n.t.Helper()
	list := running(n.servers)
	if len(list) == 0 {
		n.t.Fatalf("redistest: no node is running")
	}
	return list[0]
}

// Owner returns the primary that a slot belongs to, as the first running node sees it; nil where it belongs to nobody.
// While something changes nodes see it differently: wait for the change first.
func (n *Nodes) Owner(slot int) *Server {
	n.t.Helper()
	for _, node := range n.List() {
		if node.owns(slot) {
			return node.Server
		}
	}
	return nil
}

// List returns all nodes in the order of [Nodes.Servers], as the first running one sees them.
func (n *Nodes) List() []Node {
	n.t.Helper()
	list, err := n.alive().view()
	if err != nil {
		n.t.Fatalf("redistest: %v", err)
	}
	list = slices.DeleteFunc(list, func(v Node) bool { return v.Server == nil })
	slices.SortFunc(list, func(a, b Node) int { return n.index(a.Server) - n.index(b.Server) })
	return list
}

func (n *Nodes) index(s *Server) int { return slices.Index(n.servers, s) }

// Await waits until the cluster is in order: all nodes that are neither stopped nor paused serve, know each other and agree
// on who of them has which slots, and the replicas among them are in sync with their primaries and known to clients.
func (n *Nodes) Await() {
	n.t.Helper()
	if err := await(n.within, n.servers, n.trouble); err != nil {
		n.t.Fatalf("redistest: the cluster is not in order: %v", err)
	}
}

// AwaitFailover waits until one of the replicas of a primary has become the primary in its place and the cluster is in
// order, as [Nodes.Await] has it, and returns it.
func (n *Nodes) AwaitFailover(from *Server) *Server {
	n.t.Helper()
	var heir *Server
	if err := await(n.within, n.servers, func() error {
		for _, s := range running(n.servers) {
			if s.shard != from.shard || s == from {
				continue
			}
			view, err := s.view()
			if err != nil {
				return err
			}
			if slices.ContainsFunc(view, func(v Node) bool { return v.Server == s && v.Primary }) {
				heir = s
				return n.trouble()
			}
		}
		return errors.New("no replica has become primary")
	}); err != nil {
		n.t.Fatalf("redistest: failover of the node on port %d: %v", from.port, err)
	}
	return heir
}

// Promote makes a replica the primary in place of its primary, which runs and becomes its replica (CLUSTER FAILOVER), and
// waits until the cluster is in order. Nothing is lost, and it works with fewer than three primaries, too.
func (n *Nodes) Promote(replica *Server) {
	n.t.Helper()
	if _, err := replica.text("CLUSTER", "FAILOVER"); err != nil {
		n.t.Fatalf("redistest: promote: %v", err)
	}
	if err := await(n.within, n.servers, func() error {
		view, err := replica.view()
		if err != nil {
			return err
		}
		for _, v := range view {
			if v.Server == replica && !v.Primary {
				return fmt.Errorf("the node on port %d is still a replica", replica.port)
			}
		}
		return n.trouble()
	}); err != nil {
		n.t.Fatalf("redistest: promote: %v", err)
	}
}
