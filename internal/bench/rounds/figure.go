package rounds

import (
	"math"
	"slices"
)

// Expr is computed from what one round measured. NaN: the round cannot say.
type Expr func(Round) float64

// Of is a figure of a benchmark.
func Of(benchmark, figure string) Expr {
	return func(r Round) float64 {
		if v, ok := r[benchmark][figure]; ok {
			return v
		}
		return math.NaN()
	}
}

// Ratio is a / b.
func Ratio(a, b Expr) Expr { return func(r Round) float64 { return a(r) / b(r) } }

// Minus is a - b.
func Minus(a, b Expr) Expr { return func(r Round) float64 { return a(r) - b(r) } }

// Figure is what the rounds say of an [Expr].
type Figure struct {
	Median, Low, High float64
	Rounds            int // that could say something; 0: none, and the others are NaN
}

// Eval computes e in every round. What is neither finite nor defined in a round is left out.
func (r *Results) Eval(e Expr) Figure {
	var values []float64
	for _, round := range r.rounds {
		if v := e(round); !math.IsNaN(v) && !math.IsInf(v, 0) {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return Figure{Median: math.NaN(), Low: math.NaN(), High: math.NaN()}
	}
	return Figure{Median: Median(values), Low: slices.Min(values), High: slices.Max(values), Rounds: len(values)}
}

// Lowest returns which of the benchmarks has the lowest median of a figure; the first of equals.
func (r *Results) Lowest(figure string, benchmarks ...string) string {
	best, lowest := "", math.Inf(1)
	for _, name := range benchmarks {
		if m := r.Eval(Of(name, figure)).Median; m < lowest {
			best, lowest = name, m
		}
	}
	return best
}

// Median returns the middle of the values, or the mean of the two in the middle; NaN of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	v := slices.Sorted(slices.Values(values))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
