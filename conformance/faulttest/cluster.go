package faulttest

import (
	"slices"
	"strconv"
	"testing"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/gate"
)

// ClusterCases returns the cases of [RunCluster] in their order.
func ClusterCases() []Case {
	var all []Case
	for _, f := range nodeFaults {
		all = append(all, f.asCase())
	}
	for _, part := range [][]Case{hostileCases, moveCases, takeoverCases(takeovers[1:], func(s *scene) []string { return s.cluster().Addrs() })} {
		all = append(all, part...)
	}
	return all
}

// RunCluster runs every case of a cluster as a subtest, each on a cluster of its own: what happens to single nodes and to
// slots, which must stay theirs.
func RunCluster(t *testing.T, newStore NewStoreOn) {
	runAll(t, ClusterCases(), newStore, clusters)
}

// clusters is how many of them are there at a time. Each is several processes, and cases load them.
const clusters = 3

// roomy is the deadline where the good must be told from the bad: longer than the default, so that a busy machine is not taken
// for a node that hangs.
const roomy = answered / 2

// cluster starts a cluster.
func (s *scene) cluster(options ...redistest.Option) *redistest.Nodes {
	s.server = redistest.Start(s.tb, redistest.Cluster, options...)
	s.nodes = s.server.Nodes()
	return s.nodes
}

// both are the limiters that most cases of clusters have: their keys share a slot, and lie in it as two.
func both(burst int) []gate.Limiter {
	return []gate.Limiter{tenants(burst), gate.ConcurrentRequests{Name: "slots", Max: plenty, Key: gate.Header(tenantHeader), LeaseTime: shortLease}}
}

// owners finds out where tenants live.
type owners struct {
	sv   *service
	list []redistest.Node
}

func (sv *service) owners() owners { return owners{sv, sv.nodes.List()} }

// slot returns the slot of a tenant's keys.
func (o owners) slot(tenant string) int {
	return o.sv.nodes.Slot(o.sv.gate.StoreKey("tenant", secret+tenant))
}

// of returns the primary of a tenant.
func (o owners) of(tenant string) *redistest.Server {
	slot := o.slot(tenant)
	for _, node := range o.list {
		if slices.ContainsFunc(node.Slots, func(r redistest.SlotRange) bool { return r.First <= slot && slot <= r.Last }) {
			return node.Server
		}
	}
	o.sv.fatalf("slot %d has no owner", slot)
	return nil
}

// some returns n tenants of a node, whose names begin so.
func (o owners) some(node *redistest.Server, n int, prefix string) []string {
	var list []string
	for i := 0; len(list) < n; i++ {
		if name := prefix + strconv.Itoa(i); o.of(name) == node {
			list = append(list, name)
		}
	}
	return list
}

// primaries returns the primaries of the cluster.
func (s *scene) primaries() []*redistest.Server {
	var list []*redistest.Server
	for _, node := range s.nodes.List() {
		if node.Primary && len(node.Slots) > 0 {
			list = append(list, node.Server)
		}
	}
	return list
}
