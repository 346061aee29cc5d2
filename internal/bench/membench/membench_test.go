package membench

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/internal/bench/rounds"
)

var write = flag.Bool("write", false, "write the table into BENCHMARKS.md")

const (
	document = "../../../BENCHMARKS.md"
	section  = "memory"
	command  = "GOWORK=off go test -count=1 -run=NONE -bench=Memory -benchtime=1x -timeout=20m ./membench -args -write"
)

// BenchmarkMemory is the first part of "make bench-memory": a plan of rounds, which takes its own time whatever
// -benchtime says.
func BenchmarkMemory(b *testing.B) {
	defer rounds.SetProcessors()()
	s := newSuite(size{keys: 100_000, million: 1_000_000, measure: 150 * time.Millisecond})
	plan := rounds.Plan{Rounds: 6, Log: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }}
	results, err := plan.Run(s.list)
	if err != nil {
		b.Fatal(err)
	}
	report := s.report(results, rounds.Setting{Make: "bench-memory", Command: command,
		Rounds: fmt.Sprintf("%d interleaved rounds, %v a workload after every key was asked for once", plan.Rounds, s.size.measure),
		Modules: []string{"golang.org/x/time", "github.com/sethvargo/go-limiter", "github.com/ulule/limiter/v3",
			"github.com/throttled/throttled/v2", "github.com/go-chi/httprate", "github.com/failsafe-go/failsafe-go"}})
	fmt.Fprintln(os.Stderr, report)
	if *write {
		if err := rounds.WriteSection(document, section, report); err != nil {
			b.Fatal(err)
		}
	}
}

// Everything but the sweeps, which take their time, runs, and every row gets a number. The numbers mean nothing.
func TestSmoke(t *testing.T) {
	t.Parallel() // the sweep below waits
	s := newSuite(size{keys: 200, million: 200, measure: time.Millisecond})
	var list []rounds.Benchmark
	for _, b := range s.list {
		if !strings.HasPrefix(b.Name, sweeps) {
			list = append(list, b)
		}
	}
	results, err := rounds.Plan{Rounds: 1}.Run(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range s.rows(results) {
		if swept := strings.Contains(row.What, "swept") || strings.Contains(row.What, "windows"); swept != math.IsNaN(row.Value.Median) {
			t.Errorf("%s: %+v", row.What, row.Value)
		}
	}
	report := s.report(results, rounds.Setting{})
	for _, b := range s.list {
		if !strings.Contains(report, "| "+b.Name+" |") {
			t.Errorf("the report does not show %s", b.Name)
		}
	}
}

// A limiter admits what its quota says, or what is measured is something else.
func TestQuotas(t *testing.T) {
	floors := []limiter{{"open", openFloor(8, exact)}, {"sharded", shardedFloor(exact)}, {"open, coarse", openFloor(8, coarse)}}
	for _, l := range append(append([]limiter{headgate, headgateCoarse, throughGate}, peers...), floors...) {
		for quota, want := range map[quota]bool{plenty: true, scarce: false} {
			o := l.open(quota)
			ask := o.taker()
			for _, key := range []string{"a", "b", "c", "d"} {
				if !ask(key) {
					t.Errorf("%s: the first request of %s was refused", l.name, key)
				}
			}
			if got := ask("a"); got != want {
				t.Errorf("%s, quota %d: the second request: %v, want %v", l.name, quota, got, want)
			}
			o.close()
		}
	}
}

// The sharded floor finds every key again after it grew.
func TestShardedFloorGrows(t *testing.T) {
	o := shardedFloor(exact)(scarce)
	ask, names := o.taker(), keyNames(20_000)
	for _, want := range []bool{true, false} {
		for _, key := range names {
			if got := ask(key); got != want {
				t.Fatalf("%s: %v, want %v", key, got, want)
			}
		}
	}
}

// A sweep is seen: keys go, their heap comes back. On a store of few keys it takes as long as on one of many.
func TestSweeping(t *testing.T) {
	t.Parallel()
	sample, err := sweeping(headgate, 2000)
	if err != nil || sample["slowest"] <= 0 || math.IsNaN(sample["back"]) || sample["gone"] <= 0.5 {
		t.Errorf("sweeping: %v, error %v", sample, err)
	}
}

// BENCHMARKS.md has the place, and the Makefile the command that the report tells.
func TestDocuments(t *testing.T) {
	for file, want := range map[string]string{document: "<!-- " + section + " -->", "../../../Makefile": command} {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s does not contain %q (error %v)", file, want, err)
		}
	}
}
