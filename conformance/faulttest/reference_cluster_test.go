package faulttest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-go/headgate/conformance/faulttest"
	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/stores/redisscript"
)

// clusterFaults are what is wrong with a client of a cluster; the zero value is nothing.
type clusterFaults struct {
	keepsMap   bool // who has which slots is asked once
	ignoresAsk bool // a redirection for one call is an error
	oneAtATime bool // calls wait for each other
}

// clusterClient is the simplest client of a cluster that is right: one of [client] for each node, and a map of the slots,
// which it asks for again when a node fails or sends it on.
type clusterClient struct {
	faults clusterFaults
	addrs  []string

	one     sync.Mutex // for the fault
	mu      sync.Mutex
	nodes   map[string]*client
	owners  map[int]string // by slot
	asked   time.Time
	loading sync.Mutex
}

func openCluster(tb testing.TB, addrs []string, f clusterFaults) driver.Store {
	c := &clusterClient{faults: f, addrs: addrs, nodes: map[string]*client{}}
	tb.Cleanup(func() {
		for _, node := range c.nodes {
			node.close()
		}
	})
	c.reload()
	return redisscript.New(c, redisscript.WithCluster())
}

func (c *clusterClient) node(addr string) *client {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodes[addr] == nil {
		c.nodes[addr] = &client{addr: addr}
	}
	return c.nodes[addr]
}

func (c *clusterClient) owner(key string) *client {
	slot := redisscript.Slot(key)
	c.mu.Lock()
	addr, ok := c.owners[slot]
	c.mu.Unlock()
	if !ok {
		addr = c.addrs[0]
	}
	return c.node(addr)
}

// reload asks the first node that answers who has which slots.
func (c *clusterClient) reload() {
	if !c.loading.TryLock() {
		return
	}
	defer c.loading.Unlock()
	if c.owners != nil && (c.faults.keepsMap || time.Since(c.asked) < 50*time.Millisecond) {
		return
	}
	c.asked = time.Now()
	for _, addr := range c.addrs {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		reply, err := c.node(addr).do(ctx, []string{"CLUSTER", "SLOTS"})
		cancel()
		list, _ := reply.([]any)
		if err != nil || len(list) == 0 {
			continue
		}
		owners := map[int]string{}
		for _, one := range list {
			entry := one.([]any)
			primary := entry[2].([]any)
			for slot := entry[0].(int64); slot <= entry[1].(int64); slot++ {
				owners[int(slot)] = fmt.Sprintf("%v:%v", primary[0], primary[1])
			}
		}
		c.mu.Lock()
		c.owners = owners
		c.mu.Unlock()
		return
	}
}

func (c *clusterClient) do(ctx context.Context, key string, command []string) (reply any, err error) {
	if c.faults.oneAtATime {
		c.one.Lock()
		defer c.one.Unlock()
	}
	node, before := c.owner(key), []string(nil)
	for range 4 {
		if before != nil {
			reply, err = node.do(ctx, before, command)
		} else {
			reply, err = node.do(ctx, command)
		}
		var answer redistest.Error
		if err != nil && !errors.As(err, &answer) {
			go c.reload()
			return nil, err
		}
		fields := strings.Fields(string(answer))
		switch {
		case len(fields) == 3 && fields[0] == "MOVED":
			node, before = c.node(fields[2]), nil
			go c.reload()
		case len(fields) == 3 && fields[0] == "ASK" && !c.faults.ignoresAsk:
			node, before = c.node(fields[2]), []string{"ASKING"}
		default:
			return reply, err
		}
	}
	return reply, err
}

func (c *clusterClient) eval(ctx context.Context, command, script string, keys, args []string) (string, error) {
	all := append([]string{command, script, fmt.Sprint(len(keys))}, keys...)
	reply, err := c.do(ctx, keys[0], append(all, args...))
	text, _ := reply.(string)
	return text, err
}

func (c *clusterClient) EvalSHA(ctx context.Context, sha string, keys, args []string) (string, error) {
	return c.eval(ctx, "EVALSHA", sha, keys, args)
}

func (c *clusterClient) Eval(ctx context.Context, script string, keys, args []string) (string, error) {
	return c.eval(ctx, "EVAL", script, keys, args)
}

func (c *clusterClient) EvalSHAs(ctx context.Context, sha string, calls []redisscript.Call) {
	var running sync.WaitGroup
	for i := range calls {
		running.Go(func() { calls[i].Reply, calls[i].Err = c.EvalSHA(ctx, sha, calls[i].Keys, calls[i].Args) })
	}
	running.Wait()
}

func (c *clusterClient) Pipe(ctx context.Context, commands [][]string) (err error) {
	for _, command := range commands {
		_, failed := c.do(ctx, command[1], command)
		err = errors.Join(err, failed)
	}
	return err
}

// clusterTwins are the broken clients, and for each the case that is there to catch its kind of fault. A store whose
// breaker is one for all nodes is caught by every row of the table: see driver.Parted.
var clusterTwins = []struct {
	name    string
	faults  clusterFaults
	whole   bool // the store is not told to be in parts
	witness string
}{
	{"asks once who has which slots", clusterFaults{keepsMap: true}, false, "primary_stopped"},
	{"ignores ASK", clusterFaults{ignoresAsk: true}, false, "BR056_slots_moved_under_load"},
	{"makes one call at a time", clusterFaults{oneAtATime: true}, false, "node_pauses_clients"},
	{"fails as a whole", clusterFaults{}, true, "node_drops"},
}

// wholeStore hides that a store has parts.
type wholeStore struct{ driver.Store }

// KeyName is what the store says.
func (s wholeStore) KeyName(policy, subject string, rule driver.Rule) string {
	return s.Store.(driver.KeyNamer).KeyName(policy, subject, rule)
}

// TestClusterTwins proves that each broken client is caught, by the case made for its fault, and that one without a fault is
// not.
func TestClusterTwins(t *testing.T) {
	cases := map[string]faulttest.Case{}
	for _, c := range faulttest.ClusterCases() {
		if _, ok := cases[c.Name]; ok || c.Why == "" {
			t.Errorf("case %s is there twice, or does not say why", c.Name)
		}
		cases[c.Name] = c
	}
	for _, twin := range clusterTwins {
		t.Run(strings.ReplaceAll(twin.name, " ", "_")+"/"+twin.witness, func(t *testing.T) {
			c, ok := cases[twin.witness]
			if !ok {
				t.Fatalf("no case is named %s", twin.witness)
			}
			for _, broken := range []bool{false, true} {
				found := faulttest.FailuresOn(t, c, func(tb testing.TB, addrs []string) driver.Store {
					if !broken {
						return openCluster(tb, addrs, clusterFaults{})
					}
					store := openCluster(tb, addrs, twin.faults)
					if twin.whole {
						return wholeStore{store}
					}
					return store
				})
				if broken != (found != nil) {
					t.Errorf("broken is %t, and it finds %q", broken, found)
				}
				t.Log(strings.Join(found, "\n"))
			}
		})
	}
}
