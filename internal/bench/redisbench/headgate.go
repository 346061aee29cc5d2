package redisbench

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/stores/goredisstore"
	"github.com/headgate-go/headgate/stores/redisscript"
	"github.com/headgate-go/headgate/stores/rueidisstore"
)

// way is how callers use headgate's stores.
type way int

const (
	together    way = iota // one store for all: they share calls
	alone                  // one store, which sends a call for every decision
	throughGate            // one gate for all
)

// connector connects a client and makes a store on it.
type connector func(addr string, options ...redisscript.Option) (store driver.Store, hangUp func(), err error)

func viaGoRedis(addr string, options ...redisscript.Option) (driver.Store, func(), error) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	return goredisstore.New(client, options...), func() { _ = client.Close() }, nil
}

func viaRueidis(addr string, options ...redisscript.Option) (driver.Store, func(), error) {
	client, err := newRueidis(addr)
	if err != nil {
		return nil, nil, err
	}
	return rueidisstore.New(client, options...), client.Close, nil
}

// timeout is far away: a pause of the machine is to be a slow decision among the others, not one that failed open.
const timeout = time.Minute

func headgate(name string, connect connector, how way) contender {
	return contender{name: name, scripts: []string{redisscript.Script()},
		open: func(addr string, keys *keyset, callers int) ([]func(int) error, func(), error) {
			var options []redisscript.Option
			if how == alone {
				options = append(options, redisscript.WithPackSize(1))
			}
			store, hangUp, err := connect(addr, options...)
			if err != nil {
				return nil, nil, err
			}
			end := func() { _ = store.Close(); hangUp() }
			ask := func() func(int) error { return askStore(store, keys) }
			if how == throughGate {
				g, err := newGate(store)
				if err != nil {
					end()
					return nil, nil, err
				}
				end = func() { _, _ = g.Close(context.Background()), store.Close(); hangUp() }
				ask = func() func(int) error { return askGate(g, keys) }
			}
			decide := make([]func(int) error, callers)
			for i := range decide {
				decide[i] = ask()
			}
			return decide, end, nil
		}}
}

// askStore decides as a gate would, with one entry of one claim. The function is for one caller.
func askStore(store driver.Store, keys *keyset) func(key int) error {
	ctx := driver.WithDeadlineOnly(context.Background(), time.Now().Add(time.Hour))
	batch := []driver.Entry{{Claims: []driver.Claim{{Policy: policy, Rule: rule, Cost: 1}}}}
	return func(key int) error {
		c := &batch[0].Claims[0]
		c.Subject = keys.subjects[key]
		if err := store.Decide(ctx, time.Time{}, batch); err != nil {
			return err
		}
		if batch[0].Err != nil {
			return batch[0].Err
		}
		if !c.Result.Allowed {
			return errRefused
		}
		return nil
	}
}

func newGate(store driver.Store) (*gate.Gate, error) {
	return gate.New(gate.Config{
		Store:        store,
		Limiters:     []gate.Limiter{gate.RequestRate{Name: policy, Limit: rule, Key: gate.Value("tenant")}},
		StoreTimeout: timeout,
		Logger:       slog.New(slog.DiscardHandler), // advice about the client's options
	})
}

func askGate(g *gate.Gate, keys *keyset) func(key int) error {
	ctx := context.Background()
	return func(key int) error {
		a := g.Admit(ctx, keys.requests[key])
		a.Done(nil)
		if d, ok := a.Decision(policy); !ok || d.Outcome != gate.OutcomeAllowed {
			return fmt.Errorf("redisbench: a gate answered %v: %w", d.Outcome, d.Err)
		}
		return nil
	}
}
