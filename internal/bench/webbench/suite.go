package webbench

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/headgate-go/headgate/internal/bench/rounds"
)

// suite is the part of whole requests.
type suite struct{ list []rounds.Benchmark }

func entries() []entry {
	return slices.Concat(netHTTP(), ginEntries(), echoEntries(), fiberEntries())
}

func newSuite(measure time.Duration) *suite {
	s := &suite{}
	for _, e := range entries() {
		s.list = append(s.list, rounds.Benchmark{Name: e.String(), Run: func() (rounds.Sample, error) { return e.run(measure) }})
	}
	return s
}

// run measures the time and the allocations of a request, after one of every client.
func (e entry) run(d time.Duration) (rounds.Sample, error) {
	serve := e.open(e.limit)
	for n := range clients {
		serve(n)
	}
	runtime.GC() // what others left behind is not this one's to clear
	if _, _, err := e.drive(serve, d/8); err != nil {
		return nil, err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	made, took, err := e.drive(serve, d)
	runtime.ReadMemStats(&after)
	if err != nil {
		return nil, err
	}
	return rounds.Sample{
		"ns":     float64(took.Nanoseconds()) / float64(made),
		"allocs": math.Round(100*float64(after.Mallocs-before.Mallocs)/float64(made)) / 100, // the runtime's own are no whole hundredth
		"bytes":  float64(after.TotalAlloc-before.TotalAlloc) / float64(made),
	}, nil
}

// drive lets every client ask in turn.
func (e entry) drive(serve site, d time.Duration) (made int, took time.Duration, err error) {
	start := time.Now()
	for ; took < d; took = time.Since(start) {
		for n := range clients {
			if got := serve(n); got != e.status() {
				return 0, 0, fmt.Errorf("webbench: %v: status %d instead of %d", e, got, e.status())
			}
		}
		made += clients
	}
	return made, took, nil
}

// rows are the targets for whole requests.
func (s *suite) rows(r *rounds.Results) (rows []rounds.Row) {
	of := func(framework, name, figure string) rounds.Expr {
		return rounds.Of(entry{framework: framework, name: name}.String(), figure)
	}
	added := func(framework, name, figure string) rounds.Expr {
		return rounds.Minus(of(framework, name, figure), of(framework, bare, figure))
	}
	row := func(what string, a, b rounds.Expr, unit string, target rounds.Target) {
		rows = append(rows, rounds.Row{What: what, Value: r.Eval(rounds.Ratio(a, b)), Target: target,
			Detail: fmt.Sprintf("%s against %s %s", rounds.Number(r.Eval(a).Median), rounds.Number(r.Eval(b).Median), unit)})
	}
	for _, c := range []struct {
		framework, ours, theirs string
		target                  float64
	}{
		{onGin, gated, peerUlule, 0.25}, {onHTTP, gated, peerHTTPRate, 0.25}, {onHTTP, gated, peerTollbooth, 0.1},
		{onEcho, silent, own, 0.65}, {onEcho, gated, own, 1.4}, {onFiber, gated, own, 0.65},
	} {
		row(fmt.Sprintf("time added in %s, %s against %s", c.framework, c.ours, c.theirs), added(c.framework, c.ours, "ns"),
			added(c.framework, c.theirs, "ns"), "ns", rounds.AtMost(c.target))
	}
	for _, c := range []struct {
		framework string
		target    float64
	}{{onHTTP, 3}, {onGin, 3}, {onEcho, 4}, {onFiber, 1}} {
		rows = append(rows, rounds.Row{What: "allocations added in " + c.framework + ", " + twice,
			Value: r.Eval(added(c.framework, twice, "allocs")), Target: rounds.AtMost(c.target), Detail: "allocations"})
	}
	for _, framework := range []string{onHTTP, onGin, onEcho, onFiber} {
		row("a 429 against an allowed request in "+framework+", whole requests", of(framework, refused, "ns"), of(framework, gated, "ns"), "ns", rounds.AtMost(1.5))
	}
	return rows
}

// report is the section of BENCHMARKS.md.
func (s *suite) report(r *rounds.Results, setting rounds.Setting) string {
	return setting.String() + "\n" + rounds.Table(s.rows(r)) + "\nMedians of every benchmark:\n\n" + r.Medians(s.list,
		rounds.Column{Title: "ns per request", Figure: "ns"}, rounds.Column{Title: "allocations", Figure: "allocs"},
		rounds.Column{Title: "B allocated", Figure: "bytes"})
}
