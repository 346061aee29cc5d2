package redisbench

import (
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/internal/bench/rounds"
)

const (
	clusterSection = "cluster"
	clusterCommand = "GOWORK=off go test -count=1 -run=NONE -bench=Cluster -benchtime=1x -timeout=20m ./redisbench -args -write"
)

// BenchmarkCluster is "make bench-redis TOPOLOGY=cluster".
func BenchmarkCluster(b *testing.B) {
	defer rounds.SetProcessors()()
	s := openClusters(b, 10_000, load{warm: 300 * time.Millisecond, measure: time.Second})
	plan := rounds.Plan{Rounds: 6, Log: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }}
	results, err := plan.Run(s.list)
	if err != nil {
		b.Fatal(err)
	}
	report := s.report(results, rounds.Setting{Make: "bench-redis TOPOLOGY=cluster", Command: clusterCommand,
		Rounds: fmt.Sprintf("%d interleaved rounds; %v of measuring after %v of warming up; %d callers, 10000 keys, all decisions admitted",
			plan.Rounds, s.load.measure, s.load.warm, clusterCallers),
		Extra:   []string{"redis-server in cluster mode, no replicas, no persistence, all nodes on the machine of the callers"},
		Modules: []string{"github.com/redis/go-redis/v9", "github.com/redis/rueidis"},
	})
	fmt.Fprintln(os.Stderr, report)
	if *write {
		if err := rounds.WriteSection(document, clusterSection, report); err != nil {
			b.Fatal(err)
		}
	}
}

func openClusters(t testing.TB, keys int, l load) *ClusterSuite {
	t.Helper()
	var clusters []*redistest.Server
	for _, n := range primaries {
		clusters = append(clusters, redistest.Start(t, redistest.Cluster, redistest.WithPrimaries(n), redistest.WithReplicas(0)))
	}
	s, err := newClusterSuite(clusters, keys, l)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every row gets a number, which means nothing here, and keys in few slots share calls.
func TestClusterSmoke(t *testing.T) {
	defer rounds.SetProcessors()()
	s := openClusters(t, 500, load{warm: time.Millisecond, measure: 50 * time.Millisecond})
	results, err := rounds.Plan{Rounds: 1}.Run(s.list)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range s.rows(results) {
		if row.Value.Rounds == 0 || math.IsNaN(row.Value.Median) {
			t.Errorf("%s: no figure", row.What)
		}
	}
	for _, way := range clusterWays {
		apart := results.Eval(rounds.Of(clusterName(way.name, 3, false), "share")).Median
		parted := results.Eval(rounds.Of(clusterName(way.name, 3, true), "share")).Median
		if parted <= apart {
			t.Errorf("%s: %v decisions per call with keys in few slots, %v in all", way.name, parted, apart)
		}
	}
}
