package adaptertest

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/gate"
)

// testCase is one thing that every adapter must do.
type testCase struct {
	// Name begins with the number of the report that it is a witness of, where there is one.
	Name string
	// Why is printed when it fails.
	Why string

	run func(x *exam)
}

// exam is one run of a case against one adapter.
type exam struct {
	tb      *quietTB
	newSite NewSite
	variant variant
	probe   *probe
	clock   *clock
	watch   *watcher
	logs    *logBuffer
	client  *client
	clients []*client
	pending []*pending

	exchanges []exchange // recorded
	failures  []string
	notes     []string
}

// execute runs c in a goroutine of its own, so that what ends it (a failed site, a dead connection) ends nothing else.
func execute(tb testing.TB, newSite NewSite, c testCase, v variant, patience time.Duration) *exam {
	tb.Helper()
	x := &exam{newSite: newSite, variant: v, clock: &clock{}, watch: newWatcher(), logs: &logBuffer{},
		probe: newProbe(patience)}
	x.tb = &quietTB{TB: tb, x: x}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer x.tb.cleanup()
		defer x.end()
		defer func() {
			if v := recover(); v != nil {
				x.failf("the case cannot go on: %v", v)
			}
		}()
		c.run(x)
	}()
	<-done
	return x
}

// end checks what holds in every case.
func (x *exam) end() {
	close(x.probe.over)
	for _, p := range x.pending {
		<-p.done
	}
	for _, c := range x.clients {
		c.close()
	}
	x.probe.mu.Lock()
	defer x.probe.mu.Unlock()
	for _, f := range x.probe.faults {
		x.failf("%s", f)
	}
}

func (x *exam) failf(format string, args ...any) {
	x.failures = append(x.failures, fmt.Sprintf(format, args...))
}

// notef is logged beside the case: for what frameworks may do differently.
func (x *exam) notef(format string, args ...any) {
	x.notes = append(x.notes, fmt.Sprintf(format, args...))
}

// gate makes a gate on the case's clock and observer, which speaks as the variant does where c does not say otherwise.
func (x *exam) gate(c gate.Config) *gate.Gate {
	x.variant.config(&c)
	c.Clock, c.Observer = x.clock.now, x.watch
	c.Logger = slog.New(slog.NewTextHandler(x.logs, nil))
	g, err := gate.New(c)
	if err != nil {
		x.tb.Fatalf("the case's gate: %v", err)
	}
	x.tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), x.probe.patience)
		defer cancel()
		if err := g.Close(ctx); err != nil {
			x.failf("the gate cannot be closed, as one that holds slots cannot: %v", err)
		}
	})
	return g
}

// limit makes a gate of limiters.
func (x *exam) limit(limiters ...gate.Limiter) *gate.Gate {
	return x.gate(gate.Config{Limiters: limiters})
}

// serve starts the site, and a client that is connected to it.
func (x *exam) serve(s Site) {
	s.probe = x.probe
	base := x.newSite(x.tb, s)
	x.client = x.another(&client{network: "tcp", patience: x.probe.patience})
	if ln := x.probe.listener; x.probe.network == "unix" {
		if ln == nil {
			x.tb.Fatalf("the site does not serve on Site.Listen")
		}
		x.client.network, x.client.address = "unix", ln.Addr().String()
		return
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		x.tb.Fatalf("the site's base URL is %q", base)
	}
	x.client.address = u.Host
}

// app serves routes behind the gates of the application, all of them Write where none are given.
func (x *exam) app(g *gate.Gate, routes ...Route) {
	if len(routes) == 0 {
		routes = []Route{{"GET", "/v1/text", Write}}
	}
	x.serve(Site{App: []*gate.Gate{g}, Routes: routes})
}

// send exchanges a request and records it.
func (x *exam) send(r request) *reply {
	res := x.try(r)
	x.record(r, &res.response)
	return res
}

// try is send without recording: for what differs between frameworks, and for repetitions.
func (x *exam) try(r request) *reply {
	res, err := x.client.do(r)
	if err != nil {
		x.failf("%s: no response: %v", r, err)
		runtime.Goexit()
	}
	return &reply{response: *res, x: x, r: r}
}

// ran checks how often handlers have run so far.
func (x *exam) ran(want int) {
	if got := int(x.probe.handled.Load()); got != want {
		x.failf("handlers ran %d times; want %d", got, want)
	}
}

// letThrough checks how often the application's gates have let a request through, to the middleware behind them.
func (x *exam) letThrough(want int) {
	if got := int(x.probe.behind.Load()); got != want {
		x.failf("the middleware behind the application's gates ran %d times; want %d", got, want)
	}
}

// events returns all events, and ends the case where there are not n.
func (x *exam) events(n int) []seen {
	list := x.watch.await(n, x.probe.patience)
	if len(list) != n {
		x.failf("the observer saw %d events; want %d", len(list), n)
		runtime.Goexit()
	}
	return list
}

// saw returns the last of n events.
func (x *exam) saw(n int) seen {
	list := x.events(n)
	if n == 0 {
		return seen{}
	}
	return list[n-1]
}

// outcomes checks the n-th event, which is the last, as "policy outcome (reason)".
func (x *exam) outcomes(n int, want string) {
	if got := x.saw(n).outcomes(); got != want {
		x.failf("event %d: the outcomes are %q; want %q", n, got, want)
	}
}

// errorHandled checks how often the error handler ran so far.
func (x *exam) errorHandled(want int) []error {
	x.probe.mu.Lock()
	defer x.probe.mu.Unlock()
	if got := len(x.probe.failures); got != want {
		x.failf("the site's error handler ran %d times; want %d", got, want)
	}
	return x.probe.failures
}

// fewer is n, or an n-th part of it where many adapters are tried.
func (x *exam) fewer(n, part int) int {
	if x.probe.patience < patience {
		return n / part
	}
	return n
}

// megabytes is n of them, or less where many adapters are tried: still too much for any buffer.
func (x *exam) megabytes(n int) int { return x.fewer(n<<20, 16) }

// bigFile makes the file that File sends.
func (x *exam) bigFile(size int) {
	x.probe.file = filepath.Join(x.tb.TempDir(), "file.bin")
	if err := os.WriteFile(x.probe.file, []byte(strings.Repeat("headgate", size/8)), 0o600); err != nil {
		x.tb.Fatal(err)
	}
}

// quietTB collects what a site reports, so that Failures can return it, and ends a case's servers with the case.
type quietTB struct {
	testing.TB
	x        *exam
	mu       sync.Mutex
	cleanups []func()
}

func (q *quietTB) Helper()                   {}
func (q *quietTB) Error(args ...any)         { q.x.failf("%s", fmt.Sprint(args...)) }
func (q *quietTB) Errorf(f string, a ...any) { q.x.failf(f, a...) }
func (q *quietTB) Fail()                     { q.x.failf("the site failed") }
func (q *quietTB) Failed() bool              { return len(q.x.failures) > 0 }

func (q *quietTB) FailNow() {
	q.Fail()
	runtime.Goexit()
}

func (q *quietTB) Fatal(args ...any) {
	q.Error(args...)
	runtime.Goexit()
}

func (q *quietTB) Fatalf(f string, a ...any) {
	q.Errorf(f, a...)
	runtime.Goexit()
}

// Cleanup runs f at the end of the case.
func (q *quietTB) Cleanup(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.cleanups = append(q.cleanups, f)
}

func (q *quietTB) cleanup() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := len(q.cleanups) - 1; i >= 0; i-- {
		q.cleanups[i]()
	}
}
