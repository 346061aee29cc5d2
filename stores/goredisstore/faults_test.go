package goredisstore_test

import (
	"flag"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/headgate-go/headgate/conformance/faulttest"
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/stores/goredisstore"
)

// The client's own log has a line for each dial that fails.
func init() { logging.Disable() }

// on returns a factory of stores whose clients have these options: none of them made for a limiter.
func on(options redis.Options) faulttest.NewStore {
	return func(tb testing.TB, addr string) driver.Store {
		o := options
		o.Addr = addr
		client := redis.NewClient(&o)
		tb.Cleanup(func() { _ = client.Close() })
		return goredisstore.New(client)
	}
}

// TestFaults: whatever happens to the server or to the way there, requests are answered and nothing is counted twice.
func TestFaults(t *testing.T) {
	t.Parallel()
	t.Run("defaults", func(t *testing.T) { faulttest.Run(t, on(redis.Options{})) })
	t.Run("pool_of_2", func(t *testing.T) { faulttest.RunQuick(t, on(redis.Options{PoolSize: 2})) })
}

// TestSlots: leases are taken, renewed, and given back, whatever the protocol.
func TestSlots(t *testing.T) {
	t.Parallel()
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) { faulttest.RunSlots(t, on(p.options)) })
	}
}

var pause = flag.Duration("faulttest.pause", faulttest.PauseLength, "how long TestPause stops the server")

// TestPause: a server that hangs leaves nothing behind.
func TestPause(t *testing.T) {
	t.Parallel()
	faulttest.RunPause(t, on(redis.Options{}), *pause)
}
