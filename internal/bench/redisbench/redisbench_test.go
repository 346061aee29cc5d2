package redisbench

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/internal/bench/rounds"
	"github.com/headgate-go/headgate/stores/redisscript"
)

var write = flag.Bool("write", false, "write the table into BENCHMARKS.md")

const (
	document = "../../../BENCHMARKS.md"
	section  = "redis"
	command  = "GOWORK=off go test -count=1 -run=NONE -bench=Redis -benchtime=1x -timeout=20m ./redisbench -args -write"
)

// BenchmarkRedis is "make bench-redis": a plan of rounds, which takes its own time whatever -benchtime says.
func BenchmarkRedis(b *testing.B) {
	defer rounds.SetProcessors()()
	// Many short rounds: what a machine that others share does to a ratio changes from second to second, and a median of many
	// moves less. Twice the time in six rounds left rows that are the same half apart.
	s := open(b, 10_000, load{warm: 100 * time.Millisecond, measure: 350 * time.Millisecond}, 40_000)
	plan := rounds.Plan{Rounds: 15, Long: 21, Log: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }}
	results, err := plan.Run(s.list)
	if err != nil {
		b.Fatal(err)
	}
	report := s.report(results, rounds.Setting{Make: "bench-redis", Command: command,
		Rounds: fmt.Sprintf("%d interleaved rounds, those of a single caller %d; %v of measuring after %v of warming up; %d keys, all decisions admitted",
			plan.Rounds, plan.Long, s.load.measure, s.load.warm, len(s.keys.names)),
		Extra:   []string{"redis-server " + s.meter.version() + ", one node, no persistence, on the same machine as the callers"},
		Modules: []string{"github.com/go-redis/redis_rate/v10", "github.com/redis/go-redis/v9", "github.com/redis/rueidis"},
	})
	fmt.Fprintln(os.Stderr, report)
	if *write {
		if err := rounds.WriteSection(document, section, report); err != nil {
			b.Fatal(err)
		}
	}
}

func open(t testing.TB, keys int, l load, decisions int) *Suite {
	t.Helper()
	s, err := newSuite(redistest.Start(t, redistest.Single), keys, l, decisions)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Everything runs, and every row gets a number. The numbers mean nothing.
func TestSmoke(t *testing.T) {
	defer rounds.SetProcessors()()
	s := open(t, 2*packed, load{warm: time.Millisecond, measure: 50 * time.Millisecond}, 4*packed)
	results, err := rounds.Plan{Rounds: 1, Long: 2}.Run(s.list)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range s.rows(results) {
		if row.Value.Rounds == 0 || math.IsNaN(row.Value.Median) {
			t.Errorf("%s: no figure", row.What)
		}
		if want := map[bool]int{true: 2, false: 1}[strings.HasSuffix(row.What, "1 caller")]; row.Value.Rounds != want {
			t.Errorf("%s: %d rounds, want %d", row.What, row.Value.Rounds, want)
		}
	}
	share := func(c contender, callers int) float64 {
		return results.Eval(rounds.Of(with(c, callers), "share")).Median
	}
	for _, c := range []contender{redisRate, aloneGoRedis, aloneRueidis} {
		if got := share(c, 64); got != 1 {
			t.Errorf("%s: %v decisions per call, want 1", c.name, got)
		}
	}
	for _, c := range []contender{storeGoRedis, gateGoRedis, storeRueidis, gateRueidis} {
		if got := share(c, 256); got < 2 {
			t.Errorf("%s: %v decisions per call of 256 callers", c.name, got)
		}
	}
	report := s.report(results, rounds.Setting{})
	for _, b := range s.list {
		if !strings.Contains(report, "| "+b.Name+" |") {
			t.Errorf("the report does not show %s", b.Name)
		}
	}
}

// The calls about slots take one each, and their releases leave none.
func TestSlotCalls(t *testing.T) {
	s := open(t, packed, load{}, 0)
	if err := s.meter.reset(redisscript.Script()); err != nil {
		t.Fatal(err)
	}
	held := func(i int) any {
		n, err := s.meter.server.Do("ZCARD", s.keys.slots[i])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	f := flood{name: "acquire", depth: 2, count: packed, command: s.keys.acquire}
	if err := f.send(s.meter.server.Addr(), packed); err != nil {
		t.Fatal(err)
	}
	for i := range packed {
		if n := held(i); n != int64(1) {
			t.Errorf("key %d: %v slots held, want 1", i, n)
		}
	}
	f.undo = s.keys.release
	if _, err := f.pass(s.meter, packed); err != nil {
		t.Fatal(err)
	}
	for i := range packed {
		if n := held(i); n != int64(0) {
			t.Errorf("key %d: %v slots held after the release", i, n)
		}
	}
}

func TestHistogram(t *testing.T) {
	var h, other histogram
	for i := 1; i <= 1000; i++ {
		h.add(time.Duration(i) * time.Microsecond)
	}
	other.add(time.Hour)
	other.add(-time.Second)
	for q, want := range map[float64]float64{0.01: 10, 0.5: 500, 0.99: 990, 1: 1000} {
		if got := h.quantile(q); math.Abs(got-want) > want/32 {
			t.Errorf("quantile %v: %v us, want %v", q, got, want)
		}
	}
	h.merge(&other)
	if got := h.quantile(1); got < 3.4e9 || got > 3.8e9 {
		t.Errorf("the longest is %v us, want an hour", got)
	}
	if got := new(histogram).quantile(0.5); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// BENCHMARKS.md has the place, and the Makefile the command that the report tells.
func TestDocuments(t *testing.T) {
	for file, wants := range map[string][]string{
		document:            {"<!-- " + section + " -->", "<!-- " + clusterSection + " -->"},
		"../../../Makefile": {command, clusterCommand},
	} {
		text, err := os.ReadFile(file)
		for _, want := range wants {
			if err != nil || !strings.Contains(string(text), want) {
				t.Errorf("%s does not contain %q (error %v)", file, want, err)
			}
		}
	}
}
