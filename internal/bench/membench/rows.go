package membench

import (
	"fmt"

	"github.com/headgate-go/headgate/internal/bench/rounds"
)

// table collects rows.
type table struct {
	results *rounds.Results
	rows    []rounds.Row
}

func (t *table) median(e rounds.Expr) string { return rounds.Number(t.results.Eval(e).Median) }

// against divides a figure of two limiters in one workload.
func (t *table) against(what string, ours, theirs limiter, workload, figure, unit string, target rounds.Target) {
	a, b := rounds.Of(with(ours, workload), figure), rounds.Of(with(theirs, workload), figure)
	t.rows = append(t.rows, rounds.Row{What: what, Value: t.results.Eval(rounds.Ratio(a, b)), Target: target,
		Detail: fmt.Sprintf("%s against %s %s (%s)", t.median(a), t.median(b), unit, theirs.name)})
}

// plain is a figure as it is.
func (t *table) plain(what string, l limiter, workload, figure, unit string, target rounds.Target) {
	e := rounds.Of(with(l, workload), figure)
	t.rows = append(t.rows, rounds.Row{What: what, Value: t.results.Eval(e), Target: target, Detail: unit})
}

// best is the fastest peer of a workload.
func best(r *rounds.Results, workload string) limiter {
	var names []string
	for _, p := range peers {
		names = append(names, with(p, workload))
	}
	lowest := r.Lowest("ns", names...)
	for _, p := range peers {
		if with(p, workload) == lowest {
			return p
		}
	}
	return peers[0]
}

// rows are the targets for decisions in the process, and what stands beside them without one.
func (s *suite) rows(r *rounds.Results) []rounds.Row {
	t := &table{results: r}
	for _, w := range []struct {
		workload
		target float64
	}{
		{s.uniform[1], 0.75}, {s.uniform[2], 0.75}, {s.zipf[1], 0.75}, {s.zipf[2], 0.75},
		{s.hot[1], 0.85}, {s.refused[1], 0.85}, {s.hot[2], 0.95},
	} {
		t.against(w.name+", against the best peer", headgate, best(r, w.name), w.name, "ns", "ns", rounds.AtMost(w.target))
	}
	for i, target := range []float64{1.35, 1.6} {
		w := s.uniform[i+1].name
		t.against(w+", exact clock, against the open floor", headgate, s.open, w, "ns", "ns", rounds.AtMost(target))
		t.against(w+", exact clock, against the sharded floor", headgate, s.sharded, w, "ns", "ns", rounds.Target{})
		t.against(w+", clock of 1 ms given by the caller, against the open floor on one", headgateCoarse, s.openCoarse, w, "ns", "ns", rounds.AtMost(1.5))
		t.against(w+", through gate.Admit, against the best peer", throughGate, best(r, w), w, "ns", "ns", rounds.Target{})
	}
	t.plain("allocations of a decision, "+s.uniform[1].name, headgate, s.uniform[1].name, "allocs", "allocations", rounds.AtMost(0))
	t.plain("allocations of a decision, "+s.hot[2].name, headgate, s.hot[2].name, "allocs", "allocations", rounds.AtMost(0))
	t.plain("failed decisions under contention, "+s.hot[2].name, headgate, s.hot[2].name, "wrong", "failed", rounds.AtMost(0))

	for _, l := range []limiter{headgate, headgateLarge} {
		t.against("heap per key at 1,000,000 keys, "+l.name+", against go-limiter", l, goLimiter, holds, "bytes", "B", rounds.AtMost(0.36))
		t.plain("heap per key at 1,000,000 keys, "+l.name, l, holds, "bytes", "B", rounds.AtMost(48))
	}
	t.against("one collection with 1,000,000 keys, against go-limiter", headgate, goLimiter, holds, "gc", "ms", rounds.AtMost(0.1))
	t.plain("idle keys are gone, windows after the last of a million came", headgate, sweeps, "gone", "windows", rounds.AtMost(2))
	t.plain("share of their heap that is back after two windows", headgate, sweeps, "back", "", rounds.AtLeast(0.9))
	t.against("slowest call while a million keys are swept, against go-limiter", headgate, goLimiter, sweeps, "slowest", "ms", rounds.AtMost(0.03))
	return t.rows
}

// report is the section of BENCHMARKS.md.
func (s *suite) report(r *rounds.Results, setting rounds.Setting) string {
	return setting.String() + "\n" + rounds.Table(s.rows(r)) + "\nMedians of every benchmark:\n\n" + r.Medians(s.list,
		rounds.Column{Title: "ns per decision", Figure: "ns"}, rounds.Column{Title: "allocations", Figure: "allocs"},
		rounds.Column{Title: "failed in a run", Figure: "wrong"}, rounds.Column{Title: "heap B per key", Figure: "bytes"},
		rounds.Column{Title: "collection ms", Figure: "gc"}, rounds.Column{Title: "slowest call ms", Figure: "slowest"},
		rounds.Column{Title: "share of heap back", Figure: "back"}, rounds.Column{Title: "gone after windows", Figure: "gone"})
}
