package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/limit"
)

// goodTable is a morning as it should be.
func goodTable() []*result {
	begin := time.Unix(1_700_000_000, 0)
	row := func(name string, sent, letIn, cost int, c *ceiling) *result {
		r := &result{client: client{name: name, plan: "team", does: "something", limit: c}, sent: sent, letIn: letIn, cost: cost,
			refused: map[string]int{}, first: begin, last: begin.Add(12 * time.Second)}
		if c != nil {
			r.refused[c.policy] = sent - letIn
			r.refusedAt, r.told, r.again = time.Second, 2*time.Second, 1200*time.Millisecond
			r.waited, r.admitted = 2*time.Second, true
			r.raw = []byte("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 2\r\n\r\n" + strings.Repeat("x", 500))
		}
		return r
	}
	holder := row("holder", 380, 44, 176, &ceiling{"solves", limit.PerSecond(20), &slots{4, time.Second}}) // 24 to 48
	holder.told, holder.left, holder.most = time.Second, 100, 4
	holder.again, holder.waited, holder.admitted = 0, 0, false
	return []*result{
		row("calm", 60, 60, 168, nil),
		row("loop", 2000, 80, 80, &ceiling{"tenant", limit.PerSecond(5), nil}), // 60 to 85
		row("poller", 240, 85, 85, &ceiling{"analytics", limit.PerSecond(5), nil}),
		row("monitor", 120, 120, 0, nil),
		holder,
	}
}

func problems(table []*result) (n int, text string) {
	for _, f := range check(table) {
		if f.err != nil {
			n++
			text += f.err.Error() + "\n"
		}
	}
	return n, text
}

func TestCheckAcceptsWhatTheLimitsSay(t *testing.T) {
	if n, text := problems(goodTable()); n > 0 {
		t.Errorf("a good table is not accepted: %s", text)
	}
	fast := goodTable()
	fast[1].cost = 85 // the burst and the rate, to the last token
	fast[4].letIn, fast[4].refused["solves"] = 48, 332
	if n, text := problems(fast); n > 0 {
		t.Errorf("the upper bound itself is not accepted: %s", text)
	}
}

func TestCheckFindsWrongNumbers(t *testing.T) {
	const calm, loop, poller, monitor, holder = 0, 1, 2, 3, 4
	for name, c := range map[string]struct {
		spoil func(table []*result)
		want  string
	}{
		"the calm tenant was refused":      {func(t []*result) { t[calm].letIn--; t[calm].refused["tenant"]++ }, "calm: refused 1 times"},
		"a health check was refused":       {func(t []*result) { t[monitor].letIn--; t[monitor].refused["client"]++ }, "monitor: refused 1 times"},
		"the limit lets too much in":       {func(t []*result) { t[loop].cost = 86 }, "loop: a cost of 86 was let in; its limit says 60 to 85"},
		"the limit lets too little in":     {func(t []*result) { t[loop].cost = 59 }, "its limit says 60 to 85"},
		"nobody is limited":                {func(t []*result) { t[loop].letIn, t[loop].refused = 2000, nil }, "loop: never refused"},
		"another limiter refused":          {func(t []*result) { t[poller].refused = map[string]int{"tenant": 155} }, `refused by "tenant", not by "analytics"`},
		"requests got lost":                {func(t []*result) { t[loop].sent++ }, "sent 2001 requests, and 2000"},
		"an answer of another kind":        {func(t []*result) { t[calm].wrong = []string{"GET /: status 500"} }, "calm: GET /: status 500"},
		"nothing was sent":                 {func(t []*result) { t[calm].sent, t[calm].letIn = 0, 0 }, "calm: sent nothing"},
		"Retry-After of zero":              {func(t []*result) { t[loop].told = 0 }, "Retry-After was 0s"},
		"Retry-After too long":             {func(t []*result) { t[loop].told = 9 * time.Second }, "let in 1.2s after a refusal that said 9s"},
		"never let in again":               {func(t []*result) { t[loop].again = 0 }, "never let in again"},
		"refused after waiting as told":    {func(t []*result) { t[poller].admitted = false }, "poller: waited 2s as told, and was refused again"},
		"no refusal to wait for":           {func(t []*result) { t[poller].waited = 0 }, "not refused any more"},
		"nobody to compare with":           {func(t []*result) { t[calm].limit, t[monitor].limit = t[loop].limit, t[loop].limit }, "there must be clients"},
		"nobody who asks for more than he": {func(t []*result) { t[loop].limit, t[poller].limit, t[holder].limit = nil, nil, nil }, "there must be clients"},
		"one solve more than slots":        {func(t []*result) { t[holder].most = 5 }, "holder: 5 at a time; it has 4 slots"},
		"a slot that nobody got":           {func(t []*result) { t[holder].most = 3 }, "holder: 3 at a time; it has 4 slots"},
		"the slots let too many in":        {func(t []*result) { t[holder].letIn, t[holder].refused["solves"] = 49, 331 }, "49 were let in; its slots say 24 to 48"},
		"the slots let too few in":         {func(t []*result) { t[holder].letIn, t[holder].refused["solves"] = 23, 357 }, "its slots say 24 to 48"},
		"refused solves were charged":      {func(t []*result) { t[holder].left = 99 }, "99 of 100 were left afterwards"},
		"more left than there can be":      {func(t []*result) { t[holder].left = 101 }, "101 of 100 were left"},
		"the slots refuse nobody":          {func(t []*result) { t[holder].sent, t[holder].refused = 44, nil }, "holder: never refused"},
		"the rate refuses the holder":      {func(t []*result) { t[holder].refused = map[string]int{"solves": 335, "tenant": 1} }, `refused by "tenant", not by "solves"`},
		"another wait for a slot":          {func(t []*result) { t[holder].told = 3 * time.Second }, "Retry-After was 3s, not 1s"},
	} {
		table := goodTable()
		c.spoil(table)
		if n, text := problems(table); n == 0 || !strings.Contains(text, c.want) {
			t.Errorf("%s: found %q; wanted %q", name, text, c.want)
		}
	}
}

func TestVerdictIsAnErrorThatSaysWhatIsWrong(t *testing.T) {
	var out bytes.Buffer
	if err := verdict(&out, check(goodTable())); err != nil || strings.Contains(out.String(), "FAIL") {
		t.Errorf("a good table: error %v, output\n%s", err, &out)
	}
	bad := goodTable()
	bad[1].cost = 1000
	out.Reset()
	if err := verdict(&out, check(bad)); err == nil || !strings.Contains(err.Error(), "loop: a cost of 1000") || !strings.Contains(out.String(), "FAIL") {
		t.Errorf("a bad table: error %v, output\n%s", err, &out)
	}
}

func TestReportFitsTheScreen(t *testing.T) {
	var out bytes.Buffer
	var table []*result
	for _, c := range clients() {
		like := 0
		if c.limit != nil {
			like = map[bool]int{true: 1, false: 4}[c.limit.slots == nil]
		}
		r := goodTable()[like]
		r.client = c
		table = append(table, r)
	}
	opening(&out, "nethttp", len(table), shortest)
	traffic(&out, table)
	timing(&out, table)
	holding(&out, table)
	refusal(&out, table)
	for text := range strings.Lines(out.String()) {
		text = strings.TrimSuffix(text, "\n")
		if len(text) > 100 || text != strings.TrimRight(text, " ") {
			t.Errorf("%d columns: %q", len(text), text)
		}
	}
}

func TestWrapLosesNothing(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("x", 25), "one two three four five", "a,b,c,d,e,f,g,h"} {
		parts := wrap(text, 10)
		if strings.Join(parts, "") != text {
			t.Errorf("%q became %q", text, parts)
		}
		for _, p := range parts {
			if len(p) > 10 {
				t.Errorf("%q: part %q is longer than 10", text, p)
			}
		}
	}
}
