package goredisstore_test

import (
	"flag"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/conformance/faulttest"
)

var kills = flag.Int("faulttest.kills", faulttest.Kills, "how many primaries TestKills kills")

// TestKills: a primary that dies costs its tenants' limits for a moment, and nobody else anything.
func TestKills(t *testing.T) {
	faulttest.RunKills(t, onCluster(redis.ClusterOptions{}), *kills)
}
