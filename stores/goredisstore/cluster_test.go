package goredisstore_test

import (
	"crypto/tls"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/conformance/faulttest"
	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/stores/goredisstore"
)

// onCluster returns a factory of stores whose clients have these options.
func onCluster(options redis.ClusterOptions) faulttest.NewStoreOn {
	return func(tb testing.TB, addrs []string) driver.Store {
		o := options
		o.Addrs = addrs
		client := redis.NewClusterClient(&o)
		tb.Cleanup(func() { _ = client.Close() })
		return goredisstore.New(client)
	}
}

// TestClusterFaults: what happens to one node, or to a slot, is felt there only, and limits hold.
func TestClusterFaults(t *testing.T) {
	faulttest.RunCluster(t, onCluster(redis.ClusterOptions{}))
}

// TestSentinelFaults: the primary may be another one from one moment to the next.
func TestSentinelFaults(t *testing.T) {
	faulttest.RunSentinel(t, func(tb testing.TB, addrs []string) driver.Store {
		client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: redistest.PrimaryName, SentinelAddrs: addrs})
		tb.Cleanup(func() { _ = client.Close() })
		return goredisstore.New(client)
	})
}

// TestReplicaReads: whatever the user said about reads.
func TestReplicaReads(t *testing.T) {
	for name, options := range map[string]redis.ClusterOptions{
		"ReadOnly": {ReadOnly: true}, "RouteByLatency": {RouteByLatency: true}, "RouteRandomly": {RouteRandomly: true},
	} {
		t.Run(name, func(t *testing.T) { faulttest.RunReplicaReads(t, onCluster(options)) })
	}
}

// TestUnreachable: neither a name that nobody knows nor a server that does not speak TLS keeps anybody waiting.
func TestUnreachable(t *testing.T) {
	t.Run("DNS", func(t *testing.T) {
		faulttest.RunUnreachable(t, func(tb testing.TB, _ string) driver.Store { return on(redis.Options{})(tb, "headgate.invalid:6379") })
	})
	t.Run("TLS", func(t *testing.T) { faulttest.RunUnreachable(t, on(redis.Options{TLSConfig: &tls.Config{}})) })
}
