package telemetry

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"

	"github.com/headgate-go/headgate/core/gate"
)

const docsFile = "../docs/telemetry.md"

var write = flag.Bool("write", false, "write the generated sections of docs/telemetry.md")

// The lists in docs/telemetry.md are those in the code. "go test ./telemetry -run Docs -args -write" writes them again.
func TestDocsAreUpToDate(t *testing.T) {
	text, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	got := text
	for name, section := range map[string]string{"instruments": instrumentDocs(), "attributes": attributeDocs()} {
		first, last := []byte("<!-- "+name+" -->\n"), []byte("<!-- /"+name+" -->\n")
		from, to := bytes.Index(got, first), bytes.Index(got, last)
		if from < 0 || to < from {
			t.Fatalf("%s has no section %q", docsFile, name)
		}
		got = bytes.Join([][]byte{got[:from], first, []byte("\n" + section + "\n"), got[to:]}, nil)
	}
	switch {
	case bytes.Equal(got, text):
	case *write:
		if err := os.WriteFile(docsFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is not what the code says; run: go test ./telemetry -run Docs -args -write", docsFile)
	}
}

func instrumentDocs() string {
	var b strings.Builder
	for _, i := range instruments {
		fmt.Fprintf(&b, "### %s\n\n%s.\n\n", i.name, i.about)
		fmt.Fprintf(&b, "- %s, unit `%s`; in Prometheus `%s`\n", i.kind, i.unit, prometheusName(i))
		var keys []string
		for _, key := range i.attributes {
			keys = append(keys, "`"+string(key)+"`")
		}
		fmt.Fprintf(&b, "- attributes: %s\n", strings.Join(keys, ", "))
		if i.buckets != nil {
			fmt.Fprintf(&b, "- buckets: %s\n", strings.Trim(fmt.Sprint(i.buckets), "[]"))
		}
		b.WriteString("\n")
	}
	return strings.TrimSpace(b.String()) + "\n"
}

// prometheusName is what exporters make of a name by the rules for Prometheus; internal/xtest compares it with a scrape.
func prometheusName(i instrument) string {
	name := strings.ReplaceAll(i.name, ".", "_")
	switch i.unit {
	case "s":
		name += "_seconds"
	case "1":
		name += "_ratio"
	}
	if i.kind == counter || i.kind == observableCounter {
		name += "_total"
	}
	return name
}

func attributeDocs() string {
	list := func(words ...string) string { return "`" + strings.Join(words, "`, `") + "`" }
	var classes []string
	for _, class := range errorClasses[1:] {
		classes = append(classes, string(class))
	}
	var b strings.Builder
	b.WriteString("| attribute | says | values |\n|---|---|---|\n")
	for _, a := range []struct {
		key          attribute.Key
		says, values string
	}{
		{keyGate, "which gate", "`Config.Name`"},
		{keyPolicy, "which limiter", "its `Name`"},
		{keyLimitType, "what kind of limiter", "`request_rate`, `concurrent_requests`, `fleet_usage`, `worker_utilization`, `admission_queue`"},
		{keyOutcome, "what it made of the request", list(words(func(i int) string { return gate.Outcome(i).String() })...)},
		{keyReason, "why, where the outcome does not say; left out otherwise", list(words(func(i int) string { return gate.Reason(i).String() })...)},
		{keyMode, "the limiter's mode for this request", list(words(func(i int) string { return gate.Mode(i).String() })...) + "; what is `off` is not counted"},
		{keyRoute, "the matched route", "the framework's template, else that of `Config.Routes`; `" + unmatched + "` where there is none, `" + other + "` beyond " +
			fmt.Sprint(mostPlaces) + " of them"},
		{keyErrorType, "how the store failed; left out where it did not", list(classes...)},
		{keyStore, "the kind of store that was asked", "the name of its package: `memory`, `goredisstore`, `rueidisstore`, or your own's"},
		{keyEnd, "how a slot came to its end", list(words(func(i int) string { return gate.LeaseEnd(i).String() })...)},
		{keyState, "a state of the store's breaker", list(breakerStates...)},
		{keyTenant, "whose refusals", "the digest of the key, or what `WithTenantName` says; `" + other + "` for all who are not among the first"},
	} {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", a.key, a.says, a.values)
	}
	return b.String()
}
