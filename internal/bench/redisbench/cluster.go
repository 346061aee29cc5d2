package redisbench

import (
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/internal/bench/rounds"
	"github.com/headgate-go/headgate/stores/goredisstore"
	"github.com/headgate-go/headgate/stores/redisscript"
	"github.com/headgate-go/headgate/stores/rueidisstore"
)

// ClusterSuite is the Redis part on clusters of one, two and three primaries.
type ClusterSuite struct {
	load load
	list []rounds.Benchmark
}

// primaries are the sizes of the clusters.
var primaries = []int{1, 2, 3}

// clusterCallers is how many callers there are.
const clusterCallers = 256

// partitions is how many hash slots the keys of a partitioned keyset share: 16 for each of three nodes. A store that gave
// all tenants of a partition one hash tag would have such keys.
const partitions = 48

// clusterWays are the clients on a cluster.
var clusterWays = []struct {
	name string
	open func(addrs []string) (driver.Store, func(), error)
}{
	{"go-redis", func(addrs []string) (driver.Store, func(), error) {
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
		return goredisstore.New(client), func() { _ = client.Close() }, nil
	}},
	{"rueidis", func(addrs []string) (driver.Store, func(), error) {
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addrs, DisableCache: true, AlwaysPipelining: true})
		if err != nil {
			return nil, nil, err
		}
		return rueidisstore.New(client), client.Close, nil
	}},
}

// clusterName is the name of a benchmark.
func clusterName(client string, primaries int, partitioned bool) string {
	name := fmt.Sprintf("headgate, %s, %d primaries", client, primaries)
	if primaries == 1 {
		name = fmt.Sprintf("headgate, %s, 1 primary", client)
	}
	if partitioned {
		name += fmt.Sprintf(", keys in %d slots", partitions)
	}
	return name
}

// newClusterSuite prepares the measuring on clusters, each given by its first server, in the order of primaries.
func newClusterSuite(clusters []*redistest.Server, keys int, l load) (*ClusterSuite, error) {
	spread, err := newKeyset(keys)
	if err != nil {
		return nil, err
	}
	parted := partedKeyset(keys)
	s := &ClusterSuite{load: l}
	for i, server := range clusters {
		m := clusterMeter{server.Nodes()}
		for _, way := range clusterWays {
			for _, set := range []*keyset{spread, parted} {
				s.list = append(s.list, rounds.Benchmark{Name: clusterName(way.name, primaries[i], set == parted), Run: func() (rounds.Sample, error) {
					return s.run(m, way.open, set)
				}})
			}
		}
	}
	return s, nil
}

// partedKeyset is a keyset whose keys lie in a few slots, evenly spread over all of them.
func partedKeyset(n int) *keyset {
	k := &keyset{}
	store := redisscript.New(&recorder{})
	defer store.Close()
	const every = 16384 / partitions
	for i := 0; len(k.names) < n; i++ {
		k.add(store, i)
		if last := len(k.stored) - 1; redisscript.Slot(k.stored[last])%every != 0 {
			k.names, k.subjects, k.stored, k.requests = k.names[:last], k.subjects[:last], k.stored[:last], k.requests[:last]
		}
	}
	return k
}

func (s *ClusterSuite) run(m clusterMeter, open func([]string) (driver.Store, func(), error), keys *keyset) (rounds.Sample, error) {
	if err := m.reset(redisscript.Script()); err != nil {
		return nil, err
	}
	store, hangUp, err := open(m.nodes.Addrs())
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close(); hangUp() }()
	decide := make([]func(int) error, clusterCallers)
	for i := range decide {
		decide[i] = askStore(store, keys)
	}
	sample, err := s.load.run(m, decide, len(keys.names))
	if err != nil {
		return nil, err
	}
	n := float64(len(m.nodes.Servers()))
	sample["each"] = sample["rate"] / n
	sample["ceiling"] = 1e6 / sample["cpu"]
	return sample, nil
}

// clusterMeter reads what all servers of a cluster spend together.
type clusterMeter struct{ nodes *redistest.Nodes }

func (m clusterMeter) reset(scripts ...string) error {
	for _, server := range m.nodes.Servers() {
		if err := (meter{server}).reset(scripts...); err != nil {
			return err
		}
	}
	return nil
}

func (m clusterMeter) read() (sum spent, err error) {
	for _, server := range m.nodes.Servers() {
		one, err := meter{server}.read()
		if err != nil {
			return spent{}, err
		}
		sum = sum.plus(one)
	}
	return sum, nil
}

// rows compare clusters of several primaries with one of a single one, and the two ways to lay keys out.
func (s *ClusterSuite) rows(r *rounds.Results) []rounds.Row {
	var rows []rounds.Row
	row := func(what, ours, theirs, figure, unit string) {
		a, b := rounds.Of(ours, figure), rounds.Of(theirs, figure)
		rows = append(rows, rounds.Row{What: what, Value: r.Eval(rounds.Ratio(a, b)),
			Detail: fmt.Sprintf("%s against %s %s", rounds.Number(r.Eval(a).Median), rounds.Number(r.Eval(b).Median), unit)})
	}
	for _, way := range clusterWays {
		one := clusterName(way.name, 1, false)
		for _, n := range primaries[1:] {
			many := clusterName(way.name, n, false)
			row(fmt.Sprintf("decisions per second and node, %s, %d primaries against 1", way.name, n), many, one, "each", "/s")
			row(fmt.Sprintf("ceiling of a node (1e6 / server us per decision), %s, %d primaries against 1", way.name, n), many, one, "ceiling", "/s")
		}
		for _, n := range primaries {
			row(fmt.Sprintf("ceiling of a node, keys in %d slots against all slots, %s, %s", partitions, way.name, primariesOf(n)),
				clusterName(way.name, n, true), clusterName(way.name, n, false), "ceiling", "/s")
			row(fmt.Sprintf("decisions per second, keys in %d slots against all slots, %s, %s", partitions, way.name, primariesOf(n)),
				clusterName(way.name, n, true), clusterName(way.name, n, false), "rate", "/s")
		}
	}
	return rows
}

func primariesOf(n int) string {
	if n == 1 {
		return "1 primary"
	}
	return fmt.Sprintf("%d primaries", n)
}

// report is the section of BENCHMARKS.md.
func (s *ClusterSuite) report(r *rounds.Results, setting rounds.Setting) string {
	return setting.String() + "\n" + rounds.Table(s.rows(r)) + "\nMedians of every benchmark:\n\n" + r.Medians(s.list,
		rounds.Column{Title: "decisions/s", Figure: "rate"}, rounds.Column{Title: "decisions/s and node", Figure: "each"},
		rounds.Column{Title: "p50 us", Figure: "p50"}, rounds.Column{Title: "p99 us", Figure: "p99"},
		rounds.Column{Title: "server CPU us per decision", Figure: "cpu"}, rounds.Column{Title: "script us per decision", Figure: "execution"},
		rounds.Column{Title: "decisions per call", Figure: "share"}, rounds.Column{Title: "1e6 / server CPU us", Figure: "ceiling"})
}
