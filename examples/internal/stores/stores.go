// Package stores opens the store that an example is told to use. Changing the client changes one line.
package stores

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/stores/goredisstore"
	"github.com/headgate-go/headgate/stores/rueidisstore"
)

// Clients are the names that Open knows.
const Clients = "goredis or rueidis"

// Open returns a store on the server at url, redis://..., through a client. Close ends both. It waits for the server no
// longer than ctx: go-redis connects at the first decision, rueidis at once.
func Open(ctx context.Context, client, url string) (store driver.Store, close func(), err error) {
	switch client {
	case "goredis":
		options, err := redis.ParseURL(url)
		if err != nil {
			return nil, nil, fmt.Errorf("stores: %w", err)
		}
		options.ContextTimeoutEnabled = true
		redis.SetLogger(quiet{})
		rdb := redis.NewClient(options)
		store := goredisstore.New(rdb)
		return store, func() { _, _ = store.Close(), rdb.Close() }, nil
	case "rueidis":
		options, err := rueidis.ParseURL(url)
		if err != nil {
			return nil, nil, fmt.Errorf("stores: %w", err)
		}
		options.DisableCache, options.AlwaysPipelining = true, true
		conn, err := connect(ctx, options)
		if err != nil {
			return nil, nil, fmt.Errorf("stores: %w", err)
		}
		store := rueidisstore.New(conn)
		return store, func() { _ = store.Close(); conn.Close() }, nil
	}
	return nil, nil, fmt.Errorf("stores: client %q is neither %s", client, Clients)
}

// quiet is the log of go-redis, which has a line for each connection that it could not make. The gate has one a second.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// connect tries until the server is there: rueidis.NewClient dials, and a service may start before Redis.
func connect(ctx context.Context, options rueidis.ClientOption) (rueidis.Client, error) {
	for {
		conn, err := rueidis.NewClient(options)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(200 * time.Millisecond):
		}
	}
}
