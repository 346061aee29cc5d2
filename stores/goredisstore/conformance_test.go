package goredisstore_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/conformance/storetest"
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/stores/goredisstore"
	"github.com/headgate-go/headgate/stores/redisscript"
)

// open returns a store on the servers of a topology, with a client of its own.
type open func(tb testing.TB, servers *redistest.Server, options *redis.Options) driver.Store

// topologies are the ways to run Redis, and the client for each.
var topologies = []struct {
	topology redistest.Topology
	open     open
}{
	{redistest.Single, func(tb testing.TB, server *redistest.Server, options *redis.Options) driver.Store {
		o := *options
		o.Addr = server.Addr()
		return newStore(tb, redis.NewClient(&o))
	}},
	{redistest.Sentinel, func(tb testing.TB, server *redistest.Server, options *redis.Options) driver.Store {
		return newStore(tb, redis.NewFailoverClient(&redis.FailoverOptions{MasterName: redistest.PrimaryName,
			SentinelAddrs: server.Sentinels().Addrs(), Protocol: options.Protocol}))
	}},
	{redistest.Cluster, func(tb testing.TB, server *redistest.Server, options *redis.Options) driver.Store {
		return newStore(tb, redis.NewClusterClient(&redis.ClusterOptions{Addrs: server.Nodes().Addrs(), Protocol: options.Protocol}))
	}},
}

// protocols are the two ways in which a server can be spoken to.
var protocols = []struct {
	name    string
	options redis.Options
}{
	{"RESP2", redis.Options{Protocol: 2}},
	{"RESP3", redis.Options{Protocol: 3}},
}

// TestConformance: the store admits what the model admits, whatever is between it and the state.
func TestConformance(t *testing.T) {
	for _, top := range topologies {
		t.Run(top.topology.String(), func(t *testing.T) {
			servers := redistest.Start(t, top.topology)
			for _, p := range protocols {
				t.Run(p.name, func(t *testing.T) {
					factory := func(tb testing.TB) driver.Store { return top.open(tb, servers, &p.options) }
					storetest.Run(t, factory)
					storetest.RunWindows(t, factory)
					storetest.RunSlots(t, factory)
					if top.topology != redistest.Cluster { // its promise across subjects is weaker
						storetest.RunSpread(t, factory)
						storetest.RunSlotsSpread(t, factory)
					}
				})
			}
		})
	}
}

// newStore returns a store on client, which is closed with the test. Its timeout is one that a busy machine does not
// exceed: what happens at a deadline is the matter of TestFaults.
func newStore(tb testing.TB, client redis.UniversalClient) driver.Store {
	store := goredisstore.New(client, redisscript.WithTimeout(20*time.Second))
	tb.Cleanup(func() {
		_ = store.Close()
		_ = client.Close()
	})
	return store
}
