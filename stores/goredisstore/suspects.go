package goredisstore

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/stores/redisscript"
)

// suspects are the primaries of a cluster that did not answer, or not in time. The client goes on asking them until it learns
// who took their place, and it learns that from a node of its choice: if that is the one that hangs, after ReadTimeout and
// more. Who took a primary's place was a replica of it, so that calls ask a replica first. One that still is a replica sends
// them back, unexecuted, for the price of a round trip.
type suspects struct {
	client  *redis.ClusterClient
	telling atomic.Bool // somebody is about to note one
	some    atomic.Bool // there are some

	mu    sync.Mutex
	nodes map[*redis.Client]bool // of the nodes
}

// late takes note that the primary of a key did not answer, and has the client ask who owns the slots, in the background and
// not more often than it likes. By itself it does so once a minute and when it is redirected. It does not block, which the
// client may do where it does not know the cluster yet.
func (s *suspects) late(key string) {
	if s == nil || !s.telling.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer s.telling.Store(false)
		ctx := context.Background()
		s.client.ReloadState(ctx)
		s.set(ctx, key, true)
	}()
}

func (s *suspects) set(ctx context.Context, key string, suspect bool) {
	node, err := s.client.MasterForKey(ctx, key)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes == nil || len(s.nodes) > maxSuspects {
		s.nodes = map[*redis.Client]bool{}
	}
	if suspect {
		s.nodes[node] = true
	} else {
		delete(s.nodes, node)
	}
	s.some.Store(len(s.nodes) > 0)
}

// maxSuspects bounds what is remembered of nodes that are gone for good.
const maxSuspects = 1000

// has says whether the primary of a key is suspect.
func (s *suspects) has(ctx context.Context, key string) bool {
	if s == nil || !s.some.Load() {
		return false
	}
	node, err := s.client.MasterForKey(ctx, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return err == nil && s.nodes[node]
}

// any says whether a call is for a suspect.
func (s *suspects) any(ctx context.Context, calls []redisscript.Call) bool {
	for i := range calls {
		if s.has(ctx, calls[i].Keys[0]) {
			return true
		}
	}
	return false
}

// answered takes note of a primary that answers.
func (s *suspects) answered(ctx context.Context, key string) {
	if s != nil && s.some.Load() {
		s.set(ctx, key, false)
	}
}

// ask sends a command to a replica of a suspect primary, and says whether it was answered by one that is the primary now.
func (s *suspects) ask(ctx context.Context, key string, cmd once) bool {
	replica, err := s.client.SlaveForKey(ctx, key)
	if err != nil {
		return false
	}
	_ = replica.Process(ctx, cmd)
	err = cmd.Err()
	var answer redis.Error
	switch {
	case err == nil || errors.Is(err, redis.Nil):
		return true
	case !errors.As(err, &answer):
		// It may have been executed: nobody else is to be asked this. The next call tries the primary again.
		s.set(ctx, key, false)
		return true
	}
	return strings.HasPrefix(err.Error(), "NOSCRIPT")
}
