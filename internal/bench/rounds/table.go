package rounds

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Target is what a row should reach; the zero value is no target.
type Target struct {
	limit float64
	sign  string
}

// AtMost is a target that lower values meet.
func AtMost(limit float64) Target { return Target{limit, "<="} }

// AtLeast is a target that higher values meet.
func AtLeast(limit float64) Target { return Target{limit, ">="} }

// String returns the target as tables show it; empty if there is none.
func (t Target) String() string {
	if t.sign == "" {
		return ""
	}
	return t.sign + " " + Number(t.limit)
}

// Verdict says whether a value meets the target, and by how much it does or does not.
func (t Target) Verdict(value float64) string {
	if t.sign == "" {
		return ""
	}
	if math.IsNaN(value) {
		return "not measured"
	}
	gap := value - t.limit
	if t.sign == ">=" {
		gap = -gap
	}
	by := Number(math.Abs(gap))
	if t.limit != 0 {
		by = fmt.Sprintf("%.0f %%", 100*math.Abs(gap/t.limit))
	}
	if gap <= 0 {
		return "met, by " + by
	}
	return "**not met**, by " + by
}

// Row is one comparison.
type Row struct {
	What   string
	Value  Figure
	Target Target
	Detail string // the absolute figures behind it
}

// Table returns rows as Markdown.
func Table(rows []Row) string {
	var b strings.Builder
	b.WriteString("| | measured | lowest to highest of the rounds | target | | figures |\n|---|---:|---:|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s to %s of %d | %s | %s | %s |\n", r.What, Number(r.Value.Median), Number(r.Value.Low),
			Number(r.Value.High), r.Value.Rounds, r.Target, r.Target.Verdict(r.Value.Median), r.Detail)
	}
	return b.String()
}

// Column is a figure of every benchmark in a table of medians.
type Column struct {
	Title, Figure string
}

// Medians returns the medians of the benchmarks' figures as Markdown, in the order of the list.
func (r *Results) Medians(list []Benchmark, columns ...Column) string {
	var b strings.Builder
	b.WriteString("| |")
	for _, c := range columns {
		b.WriteString(" " + c.Title + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(columns)) + "\n")
	for _, benchmark := range list {
		b.WriteString("| " + benchmark.Name + " |")
		for _, c := range columns {
			b.WriteString(" " + Number(r.Eval(Of(benchmark.Name, c.Figure)).Median) + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Number prints a figure with three digits or more: 0.123, 4.56, 78.9, 12,345. NaN is empty.
func Number(x float64) string {
	abs := math.Abs(x)
	switch {
	case math.IsNaN(x):
		return ""
	case abs >= 100:
		return commas(strconv.FormatFloat(x, 'f', 0, 64))
	case abs >= 10:
		return trim(strconv.FormatFloat(x, 'f', 1, 64))
	case abs >= 1 || abs < 0.0005:
		return trim(strconv.FormatFloat(x, 'f', 2, 64))
	}
	return trim(strconv.FormatFloat(x, 'f', 3, 64))
}

func trim(s string) string {
	s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	if s == "-0" {
		return "0"
	}
	return s
}

func commas(s string) string {
	digits := len(strings.TrimPrefix(s, "-"))
	for at := len(s) - 3; digits > 3; at, digits = at-3, digits-3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}
