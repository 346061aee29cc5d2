package rounds_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headgate-go/headgate/internal/bench/rounds"
)

func TestMedian(t *testing.T) {
	for _, tc := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{7}, 7},
		{[]float64{9, 1, 5}, 5},
		{[]float64{9, 1, 5, 7}, 6},
		{[]float64{1, 1, 1, 1000}, 1},
	} {
		before := slices.Clone(tc.values)
		if got := rounds.Median(tc.values); got != tc.want {
			t.Errorf("Median(%v) = %v, want %v", tc.values, got, tc.want)
		}
		if !slices.Equal(before, tc.values) {
			t.Errorf("Median changed its argument: %v", tc.values)
		}
	}
	if !math.IsNaN(rounds.Median(nil)) {
		t.Error("the median of nothing is a number")
	}
}

// A machine that becomes slower from round to round slows all benchmarks of a round alike: figures of two rounds say
// nothing, and the ratio within each is right.
func TestMedianOfRatios(t *testing.T) {
	turn := 0
	drifting := func(factor float64) func() (rounds.Sample, error) {
		return func() (rounds.Sample, error) {
			slow := math.Pow(10, float64(turn/2)) // both benchmarks of a round see the same machine
			turn++
			return rounds.Sample{"ns": factor * slow}, nil
		}
	}
	results, err := rounds.Plan{Rounds: 5}.Run([]rounds.Benchmark{{Name: "a", Run: drifting(3)}, {Name: "b", Run: drifting(2)}})
	if err != nil {
		t.Fatal(err)
	}
	got := results.Eval(rounds.Ratio(rounds.Of("a", "ns"), rounds.Of("b", "ns")))
	if got.Median != 1.5 || got.Low != 1.5 || got.High != 1.5 || got.Rounds != 5 {
		t.Errorf("on a machine that slows down: %+v, want 1.5 in every round", got)
	}
	if got := results.Eval(rounds.Minus(rounds.Of("a", "ns"), rounds.Of("b", "ns"))); got.Median != 100 || got.High != 10000 {
		t.Errorf("differences: %+v", got)
	}
	if got := results.Eval(rounds.Of("a", "nothing")); !math.IsNaN(got.Median) || got.Rounds != 0 {
		t.Errorf("a figure that nobody measured: %+v", got)
	}
	if got := results.Lowest("ns", "a", "b"); got != "b" {
		t.Errorf("Lowest = %q", got)
	}
}

// Every round holds every benchmark once, in an order of its own; long benchmarks go on alone.
func TestInterleaving(t *testing.T) {
	var ran []string
	var list []rounds.Benchmark
	for i := range 8 {
		name := fmt.Sprint("b", i)
		list = append(list, rounds.Benchmark{Name: name, Long: i < 2, Run: func() (rounds.Sample, error) {
			ran = append(ran, name)
			return rounds.Sample{"n": float64(len(ran))}, nil
		}})
	}
	var lines []string
	plan := rounds.Plan{Rounds: 6, Long: 9, Rand: rand.New(rand.NewPCG(1, 2)), Log: func(format string, args ...any) {
		lines = append(lines, fmt.Sprintf(format, args...))
	}}
	results, err := plan.Run(list)
	if err != nil {
		t.Fatal(err)
	}
	if want := 6*8 + 3*2; len(ran) != want {
		t.Fatalf("%d runs, want %d", len(ran), want)
	}
	orders := map[string]bool{}
	for n := range 6 {
		round := ran[n*8 : n*8+8]
		orders[strings.Join(round, " ")] = true
		for _, b := range list {
			if !slices.Contains(round, b.Name) {
				t.Errorf("round %d has no %s: %v", n+1, b.Name, round)
			}
		}
	}
	if len(orders) < 5 {
		t.Errorf("%d different orders in 6 rounds", len(orders))
	}
	for n, want := range map[string]int{"b0": 9, "b1": 9, "b2": 6} {
		if got := results.Eval(rounds.Of(n, "n")).Rounds; got != want {
			t.Errorf("%s ran in %d rounds, want %d", n, got, want)
		}
	}
	if len(lines) != 9 || !strings.HasPrefix(lines[8], "round 9 of 9: 2 benchmarks in ") {
		t.Errorf("log: %q", lines)
	}
}

func TestFailures(t *testing.T) {
	broken := errors.New("broken")
	fine := func() (rounds.Sample, error) { return rounds.Sample{}, nil }
	if _, err := (rounds.Plan{Rounds: 1}).Run([]rounds.Benchmark{{Name: "x", Run: fine}, {Name: "x", Run: fine}}); err == nil {
		t.Error("two benchmarks of one name")
	}
	_, err := rounds.Plan{Rounds: 1}.Run([]rounds.Benchmark{{Name: "x", Run: func() (rounds.Sample, error) { return nil, broken }}})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "round 1: x") {
		t.Errorf("error %v", err)
	}
}

func TestVerdict(t *testing.T) {
	for _, tc := range []struct {
		target rounds.Target
		value  float64
		want   string
	}{
		{rounds.AtMost(1.6), 1.2, "met, by 25 %"},
		{rounds.AtMost(1.6), 1.6, "met, by 0 %"},
		{rounds.AtMost(0.5), 0.75, "**not met**, by 50 %"},
		{rounds.AtLeast(3), 4.5, "met, by 50 %"},
		{rounds.AtLeast(5), 4, "**not met**, by 20 %"},
		{rounds.AtMost(0), 0, "met, by 0"},
		{rounds.AtMost(0), 3, "**not met**, by 3"},
		{rounds.AtMost(1), math.NaN(), "not measured"},
		{rounds.Target{}, 7, ""},
	} {
		if got := tc.target.Verdict(tc.value); got != tc.want {
			t.Errorf("%v of %v: %q, want %q", tc.target, tc.value, got, tc.want)
		}
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 0.00001: "0", 0.1234: "0.123", 0.5: "0.5", 1: "1", 1.557: "1.56", 45.67: "45.7", 999: "999", 1234: "1,234",
		1234567: "1,234,567", -0.25: "-0.25", -1234: "-1,234", -0.000001: "0", 100: "100",
	} {
		if got := rounds.Number(x); got != want {
			t.Errorf("Number(%v) = %q, want %q", x, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	results, err := rounds.Plan{Rounds: 3}.Run([]rounds.Benchmark{{Name: "a", Run: func() (rounds.Sample, error) {
		return rounds.Sample{"ns": 12}, nil
	}}})
	if err != nil {
		t.Fatal(err)
	}
	got := rounds.Table([]rounds.Row{{What: "a", Value: results.Eval(rounds.Of("a", "ns")), Target: rounds.AtMost(10), Detail: "ns"}})
	want := "| a | 12 | 12 to 12 of 3 | <= 10 | **not met**, by 20 % | ns |\n"
	if !strings.HasSuffix(got, want) {
		t.Errorf("table:\n%s\nwant it to end:\n%s", got, want)
	}
	got = results.Medians([]rounds.Benchmark{{Name: "a"}}, rounds.Column{Title: "ns", Figure: "ns"}, rounds.Column{Title: "B", Figure: "bytes"})
	if want := "| | ns | B |\n|---|---:|---:|\n| a | 12 |  |\n"; got != want {
		t.Errorf("medians:\n%s\nwant:\n%s", got, want)
	}
}

func TestReport(t *testing.T) {
	defer rounds.SetProcessors()()
	text := rounds.Setting{Make: "bench-x", Command: "go test x", Rounds: "6 rounds", Extra: []string{"redis-server 7"},
		Modules: []string{"github.com/headgate-go/headgate/internal/bench"}}.String()
	for _, want := range []string{"`make bench-x`", "`go test x`", "6 rounds", "redis-server 7", "GOMAXPROCS 2", "cores", "internal/bench"} {
		if !strings.Contains(text, want) {
			t.Errorf("the setting does not say %q:\n%s", want, text)
		}
	}

	file := filepath.Join(t.TempDir(), "B.md")
	if err := os.WriteFile(file, []byte("before\n<!-- x -->\nold\n<!-- /x -->\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // writing again changes nothing more
		if err := rounds.WriteSection(file, "x", "new\n"); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if want := "before\n<!-- x -->\n\nnew\n\n<!-- /x -->\nafter\n"; err != nil || string(got) != want {
		t.Errorf("file %q, error %v; want %q", got, err, want)
	}
	if err := rounds.WriteSection(file, "y", "new"); err == nil {
		t.Error("a section that is not there was written")
	}
}
