package redistest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"
)

// Topology is what [Start] builds.
type Topology int

const (
	// Single is one server. It is also what the zero value means.
	Single Topology = iota
	// Replica is a primary and one replica of it, in sync when Start returns.
	Replica
	// Sentinel is a primary, two replicas of it and three sentinels, which agree on all of that when Start returns.
	// See [Server.Sentinels].
	Sentinel
	// Cluster is three primaries with one replica each, which serve all slots and know each other when Start returns.
	// See [Server.Nodes].
	Cluster
)

var topologyNames = []string{"single", "replica", "sentinel", "cluster"}

// String returns the topology's name, as tests name their subtests.
func (t Topology) String() string {
	if t < 0 || int(t) >= len(topologyNames) {
		return "topology " + strconv.Itoa(int(t))
	}
	return topologyNames[t]
}

// Option changes how the servers of a topology are started. Start fails the test if an option makes no sense for it.
type Option func(*options)

type options struct {
	args                []string
	primaries, replicas int
	downAfter           time.Duration
	proxies             bool
	problems            []func(Topology) error
}

// WithArgs adds arguments to the command line of every server, but not of sentinels: WithArgs("--maxmemory", "2mb").
// They come after the kit's own, so that they win.
func WithArgs(args ...string) Option {
	return func(o *options) { o.args = append(o.args, args...) }
}

// WithPrimaries sets how many primaries share the slots of a [Cluster] evenly: 1 or more, by default 3.
// With fewer than 3 no majority is left to vote when one dies, so that no replica takes over by itself.
func WithPrimaries(n int) Option {
	return func(o *options) {
		o.primaries = n
		o.check(n >= 1, fmt.Sprintf("WithPrimaries(%d): the smallest is 1", n), "WithPrimaries", Cluster)
	}
}

// WithReplicas sets how many replicas each primary has: 0 or more, by default 1 in a [Cluster] and 2 under a [Sentinel].
func WithReplicas(n int) Option {
	return func(o *options) {
		o.replicas = n
		o.check(n >= 0, fmt.Sprintf("WithReplicas(%d): the smallest is 0", n), "WithReplicas", Sentinel, Cluster)
	}
}

// WithDownAfter sets how long a server of a [Sentinel] or [Cluster] does not answer until the others hold it for dead
// (down-after-milliseconds, cluster-node-timeout): at least a millisecond, by default 1 s. A failover takes some two
// seconds more. On a machine that is very busy for that long servers are held for dead which are not.
func WithDownAfter(d time.Duration) Option {
	return func(o *options) {
		o.downAfter = d
		o.check(d >= time.Millisecond, fmt.Sprintf("WithDownAfter(%v): the smallest is 1ms", d), "WithDownAfter", Sentinel, Cluster)
	}
}

// WithProxies puts a proxy in front of each node of a [Cluster], which announces the proxy's address to clients, so that
// each can be made unreachable for them: see [Server.Proxy]. The nodes themselves talk past the proxies, so that they
// hold such a node for alive; only a replica fetches from its primary through the proxy. Once it is connected, whatever
// the proxy does and counts leaves it alone.
func WithProxies() Option {
	return func(o *options) {
		o.proxies = true
		o.check(true, "", "WithProxies", Cluster)
	}
}

// check notes what is wrong with an option's value, or with using it for a topology at all.
func (o *options) check(ok bool, problem, name string, of ...Topology) {
	o.problems = append(o.problems, func(t Topology) error {
		switch {
		case !slices.Contains(of, t):
			return fmt.Errorf("%s is for %v, not for %v", name, of, t)
		case !ok:
			return errors.New(problem)
		}
		return nil
	})
}

func newOptions(topology Topology, opts []Option) (options, error) {
	o := options{primaries: 3, replicas: 1, downAfter: time.Second}
	if topology == Sentinel {
		o.replicas = 2
	}
	for _, opt := range opts {
		opt(&o)
	}
	var errs []error
	for _, problem := range o.problems {
		errs = append(errs, problem(topology))
	}
	return o, errors.Join(errs...)
}

// patience bounds every wait of the kit: starting, restarting, replication, one command.
// It is generous because the machine may be shared; nothing waits for it when all is well.
const patience = 20 * time.Second

// patient is patience where waits of the servers for each other are part of it.
func (o options) patient() time.Duration { return patience + 5*o.downAfter }

// Start starts the servers of a topology and returns the one to talk to: the primary, of a [Cluster] that of slot 0.
// They are killed when the test ends; if it failed, their logs are shown. Start fails the test if it cannot do its work.
func Start(t testing.TB, topology Topology, opts ...Option) *Server {
	t.Helper()
	o, err := newOptions(topology, opts)
	if err != nil {
		t.Fatalf("redistest: Start: %v", err)
	}
	var servers []*Server
	switch topology {
	case Single:
		servers, err = startAll(t, plan{args: o.args})
	case Replica:
		servers, err = startReplicated(t, 1, o.args)
	case Sentinel:
		servers, err = startSentinels(t, o)
	case Cluster:
		servers, err = startCluster(t, o)
	default:
		err = errors.New("there is no such topology")
	}
	if err != nil {
		t.Fatalf("redistest: start %v: %v", topology, err)
	}
	return servers[0]
}

// startReplicated starts a primary, which comes first, and replicas of it, and returns when they are in sync.
func startReplicated(t testing.TB, replicas int, args []string) ([]*Server, error) {
	servers, err := startAll(t, plan{args: args})
	if err != nil {
		return nil, err
	}
	follow := append([]string{"--replicaof", "127.0.0.1 " + strconv.Itoa(servers[0].port)}, args...)
	others, err := startAll(t, slices.Repeat([]plan{{args: follow}}, replicas)...)
	if err != nil {
		return nil, err
	}
	servers = append(servers, others...)
	befriend(servers)
	return servers, await(patience, servers, func() error {
		for _, s := range others {
			if err := s.inSync(); err != nil {
				return err
			}
		}
		return nil
	})
}

// startAll starts servers side by side.
func startAll(t testing.TB, plans ...plan) ([]*Server, error) {
	servers := make([]*Server, len(plans))
	errs := make(chan error)
	for i, p := range plans {
		s := &Server{t: t, dir: dataDir(t), plan: p}
		t.Cleanup(s.cleanup)
		servers[i] = s
		go func() { errs <- s.start() }()
	}
	var all []error
	for range plans {
		all = append(all, <-errs)
	}
	return servers, errors.Join(all...)
}

// befriend makes each server know the others.
func befriend(servers []*Server) {
	for i, s := range servers {
		s.peers = slices.Concat(servers[:i], servers[i+1:])
	}
}
