package rueidisstore_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/conformance/storetest"
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/stores/redisscript"
	"github.com/headgate-go/headgate/stores/rueidisstore"
)

// topologies are the ways to run Redis, and the client's options for each.
var topologies = []struct {
	topology redistest.Topology
	options  func(*redistest.Server) rueidis.ClientOption
}{
	{redistest.Single, func(server *redistest.Server) rueidis.ClientOption {
		return rueidis.ClientOption{InitAddress: []string{server.Addr()}}
	}},
	{redistest.Sentinel, func(server *redistest.Server) rueidis.ClientOption {
		return rueidis.ClientOption{InitAddress: server.Sentinels().Addrs(),
			Sentinel: rueidis.SentinelOption{MasterSet: redistest.PrimaryName}}
	}},
	{redistest.Cluster, func(server *redistest.Server) rueidis.ClientOption {
		return rueidis.ClientOption{InitAddress: server.Nodes().Addrs()}
	}},
}

// TestConformance: the store admits what the model admits, whatever is between it and the state.
func TestConformance(t *testing.T) {
	for _, top := range topologies {
		t.Run(top.topology.String(), func(t *testing.T) {
			servers := redistest.Start(t, top.topology)
			factory := func(tb testing.TB) driver.Store { return newStore(tb, top.options(servers)) }
			storetest.Run(t, factory)
			storetest.RunWindows(t, factory)
			storetest.RunSlots(t, factory)
			if top.topology != redistest.Cluster { // its promise across subjects is weaker
				storetest.RunSpread(t, factory)
				storetest.RunSlotsSpread(t, factory)
			}
		})
	}
}

// newStore returns a store with a client of its own, which is closed with the test. Its timeout is one that a busy machine
// does not exceed: what happens at a deadline is the matter of TestFaults.
func newStore(tb testing.TB, options rueidis.ClientOption) driver.Store {
	client, err := rueidis.NewClient(options)
	if err != nil {
		tb.Fatalf("the client: %v", err)
	}
	store := rueidisstore.New(client, redisscript.WithTimeout(20*time.Second))
	tb.Cleanup(func() {
		_ = store.Close()
		client.Close()
	})
	return store
}
