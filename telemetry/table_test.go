package telemetry

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// The table is what is exported: every instrument, its unit, description, buckets and attributes, and no other.
func TestTableIsWhatIsExported(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	o := NewObserver(WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))), WithTenants(1),
		WithTenantName(func(gate.Request, gate.Decision) string { return "acme" }))
	d := gate.Decision{Gate: "api", Policy: "p", LimitType: "request_rate", Outcome: gate.OutcomeDenied, Reason: gate.ReasonLimit, Cost: 1, Limit: 1,
		Rule: limit.PerSecond(1), Err: &driver.Error{Class: driver.ClassTimeout, Err: errors.New("no answer")}}
	e := gate.Event{Context: context.Background(), Gate: "api", Duration: time.Second, Decisions: []gate.Decision{d}, Breaker: "open"}
	for _, kind := range []gate.EventKind{gate.Decided, gate.LeaseStarted, gate.LeaseEnded, gate.BreakerChanged, gate.Sampled, gate.SettingsChanged} {
		e.Kind = kind
		o.Observe(e)
	}
	o.ledger.lease("p").add(e.Context, false, 1) // or there is nothing left to export
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	exported := map[string]metricdata.Metrics{}
	for _, m := range all.ScopeMetrics[0].Metrics {
		exported[m.Name] = m
	}
	for _, i := range instruments {
		m, ok := exported[i.name]
		if !ok {
			t.Errorf("%s is not exported", i.name)
			continue
		}
		delete(exported, i.name)
		if m.Unit != i.unit || m.Description != i.about {
			t.Errorf("%s: unit %q, %q", i.name, m.Unit, m.Description)
		}
		var set attribute.Set
		matches := false
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			set = data.DataPoints[0].Attributes
			matches = data.IsMonotonic == (i.kind == counter || i.kind == observableCounter)
		case metricdata.Gauge[int64]:
			set = data.DataPoints[0].Attributes
			matches = i.kind == observableGauge
		case metricdata.Histogram[float64]:
			set = data.DataPoints[0].Attributes
			matches = i.kind == histogram && slices.Equal(data.DataPoints[0].Bounds, i.buckets)
		}
		if !matches {
			t.Errorf("%s is a %T", i.name, m.Data)
		}
		var keys []attribute.Key
		for _, a := range set.ToSlice() {
			keys = append(keys, a.Key)
		}
		want := slices.Sorted(slices.Values(i.attributes))
		if !slices.Equal(keys, want) {
			t.Errorf("%s has %v, the table says %v", i.name, keys, want)
		}
	}
	for name := range exported {
		t.Errorf("%s is not in the table", name)
	}
}

// The closed list of error classes is core/driver's, and none is missing.
func TestErrorClasses(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../core/driver/errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Class") {
			return true
		}
		word, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if found++; !slices.Contains(errorClasses, driver.Class(word)) {
			t.Errorf("%s is not in the list", spec.Names[0].Name)
		}
		return true
	})
	if found != len(errorClasses)-1 {
		t.Errorf("%d classes in core/driver, %d in the list", found, len(errorClasses)-1)
	}
	if c := classOf(driver.ErrClosed); errorClasses[c] != driver.ClassClosed {
		t.Errorf("%q", errorClasses[c])
	}
}

// Every outcome has a rank of its own, so that the span of a request says the same however many limiters it met.
func TestEveryOutcomeHasARank(t *testing.T) {
	seen := map[int]bool{}
	for _, word := range words(func(i int) string { return gate.Outcome(i).String() }) {
		seen[rankOf(word)] = true
	}
	if len(seen) != len(ranks) {
		t.Errorf("%d outcomes have %d ranks", len(ranks), len(seen))
	}
	if rank(gate.Outcome(200)) != 0 || rankOf("nonsense") != 0 {
		t.Error("what is unknown has a rank")
	}
}

// Routes beyond the bound are counted together, and a route's text is our own.
func TestPlacesAreBounded(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	o := NewObserver(WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithCardinalityLimit(0))))
	e := gate.Event{Kind: gate.Decided, Context: context.Background(), Gate: "api", Decisions: []gate.Decision{{Gate: "api", Policy: "p"}}}
	for i := range 3 * mostPlaces {
		e.Route = "/generated/" + strconv.Itoa(i)
		o.Observe(e)
	}
	if n := len(*o.ledger.places.Load()); n != mostPlaces+1 {
		t.Errorf("%d places", n)
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if m.Name != decisions.name {
			continue
		}
		var total, others int64
		for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
			total += p.Value
			if v, _ := p.Attributes.Value(keyRoute); v.AsString() == other {
				others = p.Value
			}
		}
		if total != 3*mostPlaces || others != 2*mostPlaces {
			t.Errorf("%d decisions, %d of them under other routes", total, others)
		}
	}
}

// words reads a closed list of words: they end where the next one is unknown.
func words(word func(i int) string) (list []string) {
	for i := 0; word(i) != "unknown"; i++ {
		if w := word(i); w != "" {
			list = append(list, w)
		}
	}
	return list
}
