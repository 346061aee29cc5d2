package rueidisstore_test

import (
	"context"
	"flag"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate-go/headgate/conformance/faulttest"
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/stores/rueidisstore"
)

// onDefaults returns a store whose client has default options: none of them made for a limiter.
func onDefaults(tb testing.TB, addr string) driver.Store {
	return onOptions(tb, rueidis.ClientOption{InitAddress: []string{addr}})
}

func onOptions(tb testing.TB, options rueidis.ClientOption) driver.Store {
	s := &late{options: options}
	tb.Cleanup(s.closeClient)
	if err := s.dial(); err == nil {
		return s.Store
	}
	return s
}

// TestFaults: whatever happens to the server or to the way there, requests are answered and nothing is counted twice.
func TestFaults(t *testing.T) {
	t.Parallel()
	t.Run("defaults", func(t *testing.T) { faulttest.Run(t, onDefaults) })
}

// TestSlots: leases are taken, renewed, and given back, whatever the protocol.
func TestSlots(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]rueidis.ClientOption{"RESP2": {AlwaysRESP2: true, DisableCache: true}, "RESP3": {}} {
		t.Run(name, func(t *testing.T) {
			faulttest.RunSlots(t, func(tb testing.TB, addr string) driver.Store {
				o := options
				o.InitAddress = []string{addr}
				return onOptions(tb, o)
			})
		})
	}
}

var pause = flag.Duration("faulttest.pause", faulttest.PauseLength, "how long TestPause stops the server")

// TestPause: a server that hangs leaves nothing behind.
func TestPause(t *testing.T) {
	t.Parallel()
	faulttest.RunPause(t, onDefaults, *pause)
}

// late is the store of a service that starts while Redis is down: rueidis.NewClient dials, so it is called again until it
// can. This is what the documentation of rueidisstore advises.
type late struct {
	*rueidisstore.Store // nil until there is a client
	options             rueidis.ClientOption

	mu      sync.Mutex
	client  rueidis.Client
	dialing bool
}

func (s *late) dial() error {
	client, err := rueidis.NewClient(s.options)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client, s.Store = client, rueidisstore.New(client)
	return nil
}

// get returns the store, and otherwise sees to it that somebody dials.
func (s *late) get() driver.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Store != nil {
		return s.Store
	}
	if !s.dialing {
		s.dialing = true
		go func() {
			_ = s.dial()
			s.mu.Lock()
			defer s.mu.Unlock()
			s.dialing = false
		}()
	}
	return nil
}

var errDown = &driver.Error{Class: driver.ClassOther, Err: context.DeadlineExceeded}

// Decide implements driver.Store.
func (s *late) Decide(ctx context.Context, now time.Time, batch []driver.Entry) error {
	if store := s.get(); store != nil {
		return store.Decide(ctx, now, batch)
	}
	return errDown
}

// Apply implements driver.Store.
func (s *late) Apply(ctx context.Context, now time.Time, changes []driver.Change) error {
	if store := s.get(); store != nil {
		return store.Apply(ctx, now, changes)
	}
	return errDown
}

// Parts implements driver.Parted: a gate asks before there is a client.
func (s *late) Parts() int { return 1 }

// Part implements driver.Parted.
func (s *late) Part(string) int { return 0 }

// Close implements driver.Store.
func (s *late) Close() error {
	if store := s.get(); store != nil {
		return store.Close()
	}
	return nil
}

func (s *late) closeClient() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		s.client.Close()
	}
}
