package rueidisstore_test

import (
	"crypto/tls"
	"testing"

	"github.com/redis/rueidis"

	"github.com/headgate-go/headgate/conformance/faulttest"
	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/stores/rueidisstore"
)

// onSeveral returns a factory of stores whose clients have these options.
func onSeveral(options rueidis.ClientOption) faulttest.NewStoreOn {
	return func(tb testing.TB, addrs []string) driver.Store {
		o := options
		o.InitAddress = addrs
		client, err := rueidis.NewClient(o)
		if err != nil {
			tb.Fatalf("the client: %v", err)
		}
		tb.Cleanup(client.Close)
		return rueidisstore.New(client)
	}
}

// TestClusterFaults: what happens to one node, or to a slot, is felt there only, and limits hold.
func TestClusterFaults(t *testing.T) {
	faulttest.RunCluster(t, onSeveral(rueidis.ClientOption{}))
}

// TestSentinelFaults: the primary may be another one from one moment to the next.
func TestSentinelFaults(t *testing.T) {
	faulttest.RunSentinel(t, onSeveral(rueidis.ClientOption{Sentinel: rueidis.SentinelOption{MasterSet: redistest.PrimaryName}}))
}

// TestReplicaReads: whatever the user said about reads.
func TestReplicaReads(t *testing.T) {
	faulttest.RunReplicaReads(t, onSeveral(rueidis.ClientOption{SendToReplicas: func(cmd rueidis.Completed) bool { return cmd.IsReadOnly() }}))
}

// TestUnreachable: neither a name that nobody knows nor a server that does not speak TLS keeps anybody waiting.
func TestUnreachable(t *testing.T) {
	t.Run("DNS", func(t *testing.T) {
		faulttest.RunUnreachable(t, func(tb testing.TB, _ string) driver.Store { return onDefaults(tb, "headgate.invalid:6379") })
	})
	t.Run("TLS", func(t *testing.T) {
		faulttest.RunUnreachable(t, func(tb testing.TB, addr string) driver.Store {
			return onOptions(tb, rueidis.ClientOption{InitAddress: []string{addr}, TLSConfig: &tls.Config{}})
		})
	})
}
