package main

import (
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-go/headgate/core/limit"

	"github.com/headgate-go/headgate/examples/routesapi/limits"
	"github.com/headgate-go/headgate/examples/routesapi/tenants"
)

// width is that of the report, in columns.
const width = 96

var titles = map[string]string{"gin": "Gin", "echo": "Echo", "fiber": "Fiber", "nethttp": "net/http"}

// opening tells what is going to happen, before the wait.
func opening(out io.Writer, framework string, clients int, morning time.Duration) {
	fmt.Fprintf(out, "\nA BAD MORNING AT THE ROUTE-PLANNING API\n\n")
	fmt.Fprintf(out, "%s, counters in this process, real sockets. A route costs its stops, everything else costs 1;\n", titles[framework])
	fmt.Fprintf(out, "what turns out to be the same place is given back when the route is planned.\n")
	fmt.Fprintf(out, "The demo plays the load balancer too, so every client has an address of its own.\n\n")
	row := func(cells ...any) { line(out, "  %-10s %-23s %-21s %s", cells...) }
	row("limiter", "each", "requests", "limit")
	under(out, 10, 23, 21, 29)
	row("client", "address", "all but /healthz", ruleText(limits.PerClient))
	row("tenant", "tenant, plan free", "all with an API key", ruleText(limits.Of(tenants.Free)))
	row("", "        plan team", "", ruleText(limits.Of(tenants.Team)))
	row("", "        plan enterprise", "", "  "+ruleText(limits.Of(tenants.Enterprise)))
	row("solves", "tenant, plan free", "POST /v1/routes", slotsText(tenants.Free))
	row("", "        plan team", "", slotsText(tenants.Team))
	row("", "        plan enterprise", "", slotsText(tenants.Enterprise))
	row("analytics", "tenant", "GET /v1/analytics/*", ruleText(limits.Analytics))
	fmt.Fprintf(out, "\n%d clients send for %s ...\n\n", clients, whole(morning))
}

func ruleText(r limit.Rule) string {
	if r == limit.Unlimited() {
		return "unlimited"
	}
	count, _ := r.Rate()
	return fmt.Sprintf("%3d a second, bursts to %3d", count, r.Capacity())
}

func slotsText(plan tenants.Plan) string { return fmt.Sprintf("%3d at a time", limits.Solves(plan)) }

// traffic tells what everybody sent, and what became of it.
func traffic(out io.Writer, results []*result) {
	row := func(cells ...any) { line(out, "  %-10s %-5s %-47s %6s %6s %6s  %s", cells...) }
	row("client", "plan", "what it does", "sent", "let in", "429", "by")
	under(out, 10, 5, 47, 6, 6, 6, -9)
	for _, r := range results {
		row(r.name, r.plan, r.does, thousands(r.sent), thousands(r.letIn), thousands(r.refusals()), byLimiter(r.refused))
	}
	fmt.Fprintln(out)
}

// byLimiter names the limiters that refused, with their counts if there are several.
func byLimiter(refused map[string]int) string {
	var list []string
	for policy, n := range refused {
		if len(refused) == 1 {
			return policy
		}
		list = append(list, fmt.Sprintf("%s %d", policy, n))
	}
	sort.Strings(list)
	return strings.Join(list, ", ")
}

// timing tells how much those who ran into a rate got of what they asked for, and when.
func timing(out io.Writer, results []*result) {
	row := func(cells ...any) { line(out, "  %-10s %11s %16s %12s %12s %13s  %s", cells...) }
	row("", "cost", "what the limit", "first 429", "Retry-After", "let in again", "waited as")
	row("client", "let in", "allows", "after", "said", "after", "told")
	under(out, 10, 11, 16, 12, 12, 13, -15)
	for _, r := range results {
		if r.limit == nil || r.limit.slots != nil {
			continue
		}
		low, high := r.allowed()
		row(r.name, thousands(r.cost), thousands(low)+" to "+thousands(high), seconds(r.refusedAt), whole(r.told),
			seconds(r.again), whole(r.waited)+": "+map[bool]string{true: "let in", false: "REFUSED"}[r.admitted])
	}
	fmt.Fprintln(out)
}

// holding tells how much those who ran into slots got, how many at a time, and what is left of their budget.
func holding(out io.Writer, results []*result) {
	row := func(cells ...any) { line(out, "  %-10s %11s %16s %12s %12s %13s  %s", cells...) }
	row("", "solves", "what the slots", "first 429", "Retry-After", "at a time,", "stops left")
	row("client", "let in", "allow", "after", "said", "at most", "afterwards")
	under(out, 10, 11, 16, 12, 12, 13, -15)
	for _, r := range results {
		if r.limit == nil || r.limit.slots == nil {
			continue
		}
		low, high := r.fitting()
		row(r.name, thousands(r.letIn), thousands(low)+" to "+thousands(high), seconds(r.refusedAt), whole(r.told),
			fmt.Sprintf("%d of %d", r.most, r.limit.slots.count), fmt.Sprintf("%d of %d", r.left, r.limit.rule.Capacity()))
	}
	fmt.Fprintln(out)
}

// refusal shows a refusal by a rate and one by slots, as they came over the wire.
func refusal(out io.Writer, results []*result) {
	shown := map[bool]bool{}
	for _, r := range results {
		if len(r.raw) == 0 || shown[r.limit.slots != nil] {
			continue
		}
		shown[r.limit.slots != nil] = true
		fmt.Fprintf(out, "The first refusal of %s, as it came over the wire (the body is one line, wrapped here):\n\n", r.name)
		for text := range strings.Lines(strings.TrimSuffix(string(r.raw), "\r\n")) {
			for _, part := range wrap(strings.TrimRight(text, "\r\n"), width-4) {
				line(out, "    %s", part)
			}
		}
		fmt.Fprintln(out)
	}
}

// wrap breaks a text that is longer than the width, behind a blank or comma if there is one.
func wrap(text string, width int) (parts []string) {
	for len(text) > width {
		at := strings.LastIndexAny(text[:width], " ,") + 1
		if at == 0 {
			at = width
		}
		parts, text = append(parts, text[:at]), text[at:]
	}
	return append(parts, text)
}

// verdict lists the findings. The error says what is wrong; nil if nothing is.
func verdict(out io.Writer, findings []finding) error {
	var errs []error
	for _, f := range findings {
		word := "ok  "
		if f.err != nil {
			word = "FAIL"
			errs = append(errs, f.err)
		}
		fmt.Fprintf(out, "  %s  %s\n", word, f.what)
	}
	fmt.Fprintln(out)
	if len(errs) > 0 {
		return fmt.Errorf("the numbers are not what the limits say:\n%w", errors.Join(errs...))
	}
	return nil
}

// line writes a line without blanks at its end.
func line(out io.Writer, format string, cells ...any) {
	fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf(format, cells...), " "))
}

// under draws a line under a table's head, columns of these widths with a blank between; a negative width is one more
// blank in front.
func under(out io.Writer, widths ...int) {
	text := " "
	for _, w := range widths {
		if w < 0 {
			text, w = text+" ", -w
		}
		text += " " + strings.Repeat("-", w)
	}
	fmt.Fprintln(out, text)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func whole(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }

func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
