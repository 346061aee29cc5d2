package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	primaries = 3
	hashSlots = 16384
)

// cluster is three primaries with a replica each, on this machine.
type cluster struct {
	nodes []*node // the first three began as primaries; the replica of the i-th is the one three further
	dir   string
}

// folder is where nodes keep what they know of each other. They wait for the disk at every change of it, and decide nothing
// meanwhile: in memory, a busy disk is not taken for a failover.
func folder() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return os.TempDir()
}

// newCluster returns when the nodes are one cluster, and replicas are in sync.
func newCluster(ctx context.Context) (c *cluster, err error) {
	program, err := serverProgram()
	if err != nil {
		return nil, err
	}
	c = &cluster{}
	if c.dir, err = os.MkdirTemp(folder(), "headgate-cluster-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.stop()
		}
	}()
	for range 2 * primaries {
		n, err := startNode(ctx, program, c.dir)
		if err != nil {
			return nil, err
		}
		c.nodes = append(c.nodes, n)
	}
	for i, n := range c.nodes[:primaries] {
		// Primaries whose epochs are equal would have to sort that out first.
		if _, err := n.text(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1); err != nil {
			return nil, err
		}
		if _, err := n.text(ctx, "CLUSTER", "ADDSLOTSRANGE", hashSlots*i/primaries, hashSlots*(i+1)/primaries-1); err != nil {
			return nil, err
		}
	}
	// Every pair meets: hearing of others through others takes seconds.
	for i, n := range c.nodes {
		for _, other := range c.nodes[:i] {
			if _, err := n.text(ctx, "CLUSTER", "MEET", "127.0.0.1", other.port, other.bus); err != nil {
				return nil, err
			}
		}
	}
	for i, n := range c.nodes[primaries:] {
		if err := await(ctx, 10*time.Second, func() error {
			_, err := n.text(ctx, "CLUSTER", "REPLICATE", c.nodes[i].id)
			return err
		}); err != nil {
			return nil, err
		}
	}
	return c, await(ctx, 20*time.Second, func() error { return c.trouble(ctx) })
}

// trouble says what is missing until all nodes that run know each other and serve.
func (c *cluster) trouble(ctx context.Context) error {
	for i, n := range c.nodes {
		view, err := n.text(ctx, "CLUSTER", "NODES")
		if err != nil {
			return err
		}
		for _, word := range []string{"handshake", "fail", "noaddr"} {
			if strings.Contains(view, word) {
				return fmt.Errorf("the node on port %d has another one as %q", n.port, word)
			}
		}
		if strings.Count(view, "slave") != primaries {
			return fmt.Errorf("the node on port %d does not know all replicas yet", n.port)
		}
		info, err := n.text(ctx, "CLUSTER", "INFO")
		if err != nil {
			return err
		}
		if !strings.Contains(info, "cluster_state:ok") {
			return fmt.Errorf("the node on port %d does not serve yet", n.port)
		}
		if i < primaries {
			continue
		}
		if info, err = n.text(ctx, "INFO", "replication"); err != nil {
			return err
		}
		if !strings.Contains(info, "master_link_status:up") {
			return fmt.Errorf("the replica on port %d is not in sync yet", n.port)
		}
	}
	return nil
}

func (c *cluster) stop() {
	for _, n := range c.nodes {
		n.kill()
	}
	_ = os.RemoveAll(c.dir)
}

// addrs are what a client is given.
func (c *cluster) addrs() []string {
	var list []string
	for _, n := range c.nodes {
		list = append(list, n.addr())
	}
	return list
}

// owner returns the primary of a slot, by its place among the nodes, as the first that answers sees it.
func (c *cluster) owner(ctx context.Context, slot int) (int, error) {
	var errs []error
	for _, n := range c.nodes {
		shards, err := n.admin.ClusterShards(ctx).Result()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, shard := range shards {
			if !slices.ContainsFunc(shard.Slots, func(r redis.SlotRange) bool { return r.Start <= int64(slot) && int64(slot) <= r.End }) {
				continue
			}
			return slices.IndexFunc(c.nodes, func(n *node) bool {
				return slices.ContainsFunc(shard.Nodes, func(of redis.Node) bool { return of.ID == n.id && of.Role == "master" })
			}), nil
		}
		return 0, fmt.Errorf("slot %d belongs to nobody", slot)
	}
	return 0, errors.Join(errs...)
}

// move gives a slot with its keys to another primary, under traffic. In the middle it stays half here and half there for a
// while, as it would with many keys: a tenant's rate on one node, and its slots on the other.
func (c *cluster) move(ctx context.Context, slot, from, to int, half time.Duration) error {
	source, target := c.nodes[from], c.nodes[to]
	if _, err := target.text(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", source.id); err != nil {
		return err
	}
	if _, err := source.text(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", target.id); err != nil {
		return err
	}
	if _, err := c.migrate(ctx, slot, source, target); err != nil {
		return err
	}
	wait(ctx, half)
	for {
		if moved, err := c.migrate(ctx, slot, source, target); err != nil || !moved {
			if err != nil {
				return err
			}
			break
		}
	}
	// The new owner first: as long as the old one does not know it, it sends clients on.
	for _, n := range append([]*node{target, source}, c.nodes[:primaries]...) {
		if _, err := n.text(ctx, "CLUSTER", "SETSLOT", slot, "NODE", target.id); err != nil {
			return err
		}
	}
	return nil
}

// migrate moves one key, if there is one.
func (c *cluster) migrate(ctx context.Context, slot int, from, to *node) (moved bool, err error) {
	keys, err := from.admin.ClusterGetKeysInSlot(ctx, slot, 1).Result()
	if err != nil || len(keys) == 0 {
		return false, err
	}
	_, err = from.text(ctx, "MIGRATE", "127.0.0.1", to.port, keys[0], 0, 5000)
	return true, err
}

// promoted waits until the replica of a primary that died is the primary.
func (c *cluster) promoted(ctx context.Context, dead int) (*node, error) {
	heir := c.nodes[dead+primaries]
	return heir, await(ctx, 20*time.Second, func() error {
		role, err := heir.text(ctx, "INFO", "replication")
		if err == nil && !strings.Contains(role, "role:master") {
			err = fmt.Errorf("the replica on port %d has not taken over", heir.port)
		}
		return err
	})
}

// wait is over after d, or with ctx.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
