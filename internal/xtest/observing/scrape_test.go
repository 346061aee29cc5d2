package observing_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metricsql"
	"github.com/goccy/go-yaml"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
	"github.com/headgate-go/headgate/telemetry"
)

const (
	dashboardFile = "../../../telemetry/dashboards/headgate.json"
	alertsFile    = "../../../telemetry/alerts/headgate.yaml"
	alertsTest    = "../../../telemetry/alerts/headgate_test.yaml"
	runbookFile   = "../../../docs/alerts.md"
	metricsFile   = "../../../docs/telemetry.md"
)

// unreachable is a store that is not there.
type unreachable struct{}

func (unreachable) Decide(context.Context, time.Time, []driver.Entry) error {
	return &driver.Error{Class: driver.ClassTimeout, Err: errors.New("no answer")}
}
func (unreachable) Apply(context.Context, time.Time, []driver.Change) error { return nil }
func (unreachable) Close() error                                            { return nil }

// scrape lets gates decide in every way and returns what Prometheus reads of it: the labels of every series, by name.
func scrape(t *testing.T) map[string][]labelSet {
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		t.Fatal(err)
	}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	o := telemetry.NewObserver(telemetry.WithMeterProvider(meters), telemetry.WithTenants(5))
	now := time.Unix(1_900_000_000, 0)
	for name, store := range map[string]driver.Store{"api": nil, "down": unreachable{}} {
		c := gate.Config{Name: name, Store: store, Observer: o, Logger: slog.New(slog.DiscardHandler), Limiters: []gate.Limiter{
			gate.RequestRate{Name: "tenant", Limit: limit.PerDay(1).WithBurst(1)},
			gate.RequestRate{Name: "next", Mode: gate.Shadow, Limit: limit.PerDay(1).WithBurst(1)},
		}}
		if store == nil {
			c.Clock = func() time.Time { return now }
		}
		g := gate.Must(gate.New(c))
		for range 20 {
			g.Admit(context.Background(), gate.Call{Operation: "GET /x", Addr: "192.0.2.1"})
		}
		if err := g.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	lease := gate.Event{Context: context.Background(), Gate: "api", Decisions: []gate.Decision{{Gate: "api", Policy: "solves"}}}
	for _, kind := range []gate.EventKind{gate.LeaseStarted, gate.LeaseStarted, gate.LeaseEnded} {
		lease.Kind = kind
		o.Observe(lease)
	}

	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.PanicOnError}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	series := map[string][]labelSet{}
	for name, family := range families {
		names := []string{name}
		if family.GetType() == dto.MetricType_HISTOGRAM {
			names = []string{name + "_bucket", name + "_count", name + "_sum"}
		}
		for _, m := range family.GetMetric() {
			set := labelSet{}
			for _, l := range m.GetLabel() {
				set[l.GetName()] = l.GetValue()
			}
			for _, n := range names {
				one := maps.Clone(set)
				if strings.HasSuffix(n, "_bucket") {
					one["le"] = "1"
				}
				series[n] = append(series[n], one)
			}
		}
	}
	return series
}

type labelSet map[string]string

// usable says what is wrong with an expression, for somebody who has these series: metrics that are not there, labels that
// they do not have, words that no label says.
func usable(expr string, series map[string][]labelSet) error {
	var errs []error
	for variable, stand := range map[string]string{"$__rate_interval": "5m", "$__range": "1h", "$gate": ".*", "$policy": ".*"} {
		expr = strings.ReplaceAll(expr, variable, stand)
	}
	root, err := metricsql.Parse(expr)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	metricsql.VisitAll(root, func(node metricsql.Expr) {
		metric, ok := node.(*metricsql.MetricExpr)
		if !ok {
			return
		}
		for _, filters := range metric.LabelFilterss {
			name := filters[0].Value
			sets := series[name]
			if filters[0].Label != "__name__" || len(sets) == 0 {
				errs = append(errs, fmt.Errorf("there is no metric %q", name))
			}
			for _, set := range sets {
				for label := range set {
					known[label] = true
				}
			}
			for _, f := range filters[1:] {
				if !slices.ContainsFunc(sets, func(s labelSet) bool { _, ok := s[f.Label]; return ok }) {
					errs = append(errs, fmt.Errorf("%s has no label %q", name, f.Label))
				}
				errs = append(errs, spelled(f))
			}
		}
	})
	metricsql.VisitAll(root, func(node metricsql.Expr) {
		if a, ok := node.(*metricsql.AggrFuncExpr); ok {
			for _, label := range a.Modifier.Args {
				if !known[label] {
					errs = append(errs, fmt.Errorf("by (%s): no metric of the expression has that label", label))
				}
			}
		}
	})
	return errors.Join(errs...)
}

// spelled checks the words of labels whose values are a closed list.
func spelled(f metricsql.LabelFilter) error {
	words := map[string][]string{"headgate_state": {"closed", "open", "half_open"}}
	for o := gate.Outcome(0); o.String() != "unknown"; o++ {
		words["headgate_outcome"] = append(words["headgate_outcome"], o.String())
	}
	for mode := gate.Enforce; mode <= gate.Off; mode++ {
		words["headgate_mode"] = append(words["headgate_mode"], mode.String())
	}
	for _, word := range strings.Split(f.Value, "|") {
		if list := words[f.Label]; list != nil && !slices.Contains(list, word) {
			return fmt.Errorf("%s is never %q", f.Label, word)
		}
	}
	return nil
}

// Every query of the dashboard finds what it asks for in what is really exported.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Templating struct {
			List []struct{ Name, Definition string }
		}
		Panels []struct {
			Title, Type string
			GridPos     struct{ X, Y, W, H int }
			Targets     []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	series := scrape(t)
	asked := map[string]bool{}
	for _, p := range dashboard.Panels {
		if (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("panel %q is a %s with %d queries", p.Title, p.Type, len(p.Targets))
		}
		for _, target := range p.Targets {
			if err := usable(target.Expr, series); err != nil {
				t.Errorf("panel %q: %s\n%v", p.Title, target.Expr, err)
			}
			for name := range series {
				if strings.Contains(target.Expr, name) {
					asked[name] = true
				}
			}
		}
		for _, q := range dashboard.Panels {
			if p.Title != q.Title && p.GridPos.X < q.GridPos.X+q.GridPos.W && q.GridPos.X < p.GridPos.X+p.GridPos.W &&
				p.GridPos.Y < q.GridPos.Y+q.GridPos.H && q.GridPos.Y < p.GridPos.Y+p.GridPos.H {
				t.Errorf("panels %q and %q lie on each other", p.Title, q.Title)
			}
		}
	}
	for _, v := range dashboard.Templating.List {
		inner, ok := strings.CutPrefix(strings.TrimSuffix(v.Definition, ")"), "label_values(")
		if !ok {
			continue
		}
		comma := strings.LastIndex(inner, ", ")
		if err := usable("sum by ("+inner[comma+2:]+") ("+inner[:comma]+")", series); err != nil {
			t.Errorf("variable %s: %v", v.Name, err)
		}
	}
	for name := range series {
		if strings.HasPrefix(name, "headgate_") && !asked[name] && !strings.HasSuffix(name, "_sum") && !strings.HasSuffix(name, "duration_seconds_count") {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// The trap works: each of these expressions has one thing wrong.
func TestUnusableExpressions(t *testing.T) {
	series := scrape(t)
	for expr, want := range map[string]string{
		`sum(rate(headgate_decision_total[5m]))`:                                `no metric "headgate_decision_total"`,
		`headgate_decisions_total{policy="tenant"}`:                             `no label "policy"`,
		`sum by (outcome) (headgate_decisions_total)`:                           `by (outcome)`,
		`headgate_decisions_total{headgate_outcome=~"denied|shedded"}`:          `never "shedded"`,
		`headgate_store_breaker_ratio{headgate_state="half-open"}`:              `never "half-open"`,
		`sum by (headgate_gate (headgate_decisions_total)`:                      `unexpected token`,
		`headgate_tenant_refusals_total{headgate_mode="dark"} > 1`:              `never "dark"`,
		`rate(headgate_decision_duration_seconds{headgate_outcome="shed"}[1m])`: `no metric "headgate_decision_duration_seconds"`,
	} {
		if err := usable(expr, series); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", expr, err, want)
		}
	}
}

// Every alert is a rule that Prometheus reads, asks for what is really exported, and has an entry in the runbook; promtool,
// where it is on the machine, also plays what makes each fire.
func TestAlerts(t *testing.T) {
	text, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.UnmarshalWithOptions(text, &rules, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	runbook, err := os.ReadFile(runbookFile)
	if err != nil {
		t.Fatal(err)
	}
	series := scrape(t)
	entries := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllSubmatch(runbook, -1) {
		entries[string(heading[1])] = true
	}
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			if err := usable(rule.Expr, series); err != nil {
				t.Errorf("%s: %v", rule.Alert, err)
			}
			if !entries[rule.Alert] {
				t.Errorf("%s has no entry in %s", rule.Alert, runbookFile)
			}
			delete(entries, rule.Alert)
			anchor := "https://github.com/headgate-go/headgate/blob/main/docs/alerts.md#" + strings.ToLower(rule.Alert)
			if rule.Annotations["runbook_url"] != anchor || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" || rule.Labels["severity"] == "" {
				t.Errorf("%s: %v %v", rule.Alert, rule.Labels, rule.Annotations)
			}
		}
	}
	for heading := range entries {
		t.Errorf("%s has an entry for %s, which is no alert", runbookFile, heading)
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Log("promtool is not on this machine; Debian has it in the package prometheus")
		return
	}
	for _, args := range [][]string{{"check", "rules", alertsFile}, {"test", "rules", alertsTest}} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, out)
		}
	}
}

// The names that the documentation gives for Prometheus are those of a scrape.
func TestPrometheusNamesInTheDocs(t *testing.T) {
	text, err := os.ReadFile(metricsFile)
	if err != nil {
		t.Fatal(err)
	}
	series := scrape(t)
	names := regexp.MustCompile("in Prometheus `(\\w+)`").FindAllSubmatch(text, -1)
	for _, match := range names {
		name := string(match[1])
		if series[name] == nil && series[name+"_bucket"] == nil {
			t.Errorf("%s is not in a scrape", name)
		}
	}
	if len(names) < 7 {
		t.Errorf("%d names", len(names))
	}
	for _, query := range regexp.MustCompile(`(?m)^    (.*headgate_.*)$`).FindAllSubmatch(text, -1) {
		if err := usable(string(query[1]), series); err != nil {
			t.Errorf("%s: %v", query[1], err)
		}
	}
}
