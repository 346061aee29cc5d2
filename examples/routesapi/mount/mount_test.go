package mount_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-go/headgate/examples/routesapi/limits"
	"github.com/headgate-go/headgate/examples/routesapi/mount"
	"github.com/headgate-go/headgate/examples/routesapi/service"
	"github.com/headgate-go/headgate/examples/routesapi/tenants"
)

// step is a request and what is to be seen of the answer. The clock stands still between steps, but for later.
type step struct {
	method, path, key, body string
	later                   time.Duration
	want                    seen
}

// seen is the status, what is left of the tightest limit, and how long to wait where that is said.
type seen struct {
	status                       int
	limit, remaining, retryAfter string
}

// Bumper is on the free plan, which bursts to 25 and has 2 slots for solves, of which a request that is let in holds one. No
// other tenant shares its budget, but all of them share an address.
var scenario = []step{
	{"GET", "/healthz", "", "", 0, seen{200, "", "", ""}},
	{"GET", "/v1/routes/r1", "", "", 0, seen{401, "250", "249", ""}},
	{"GET", "/v1/routes/r1", "key-invented", "", 0, seen{401, "250", "248", ""}},
	{"POST", "/v1/routes", "key-bumper", stops(3), 0, seen{201, "2", "1", ""}}, // one of two slots is less than 22 of 25 stops
	{"GET", "/v1/routes/r1", "key-bumper", "", 0, seen{200, "25", "21", ""}},
	{"GET", "/v1/routes/r2", "key-bumper", "", 0, seen{404, "25", "20", ""}},
	{"GET", "/v1/routes/r1", "key-acme", "", 0, seen{404, "250", "244", ""}}, // bumper's route is not acme's
	{"POST", "/v1/routes", "key-bumper", `{"stops":`, 0, seen{400, "250", "243", ""}},
	{"POST", "/v1/routes", "key-bumper", stops(1), 0, seen{400, "250", "242", ""}},
	{"POST", "/v1/routes", "key-bumper", strings.Repeat(" ", 40_000), 0, seen{413, "250", "241", ""}},
	{"POST", "/v1/routes", "key-bumper", stops(18), 0, seen{201, "25", "2", ""}},
	{"POST", "/v1/routes", "key-bumper", stops(12), 0, seen{429, "25", "2", "2"}},
	{"POST", "/v1/routes", "key-bumper", stops(26), 0, seen{429, "25", "2", ""}}, // more than the burst: no use waiting
	{"GET", "/v1/routes/r1", "key-bumper", "", 0, seen{200, "25", "1", ""}},
	{"POST", "/v1/routes", "key-bumper", stops(12), 2200 * time.Millisecond, seen{201, "25", "0", ""}},
	{"GET", "/v1/routes/r1", "key-bumper", "", 0, seen{429, "25", "0", "1"}},
	{"POST", "/v1/routes", "key-globex", stops(60), 0, seen{201, "20", "19", ""}}, // unlimited stops, 20 slots
	{"GET", "/v1/analytics/distance", "key-globex", "", 0, seen{200, "25", "24", ""}},
	{"GET", "/v1/analytics/weather", "key-globex", "", 0, seen{404, "25", "23", ""}},
	{"GET", "/v2/routes", "key-globex", "", 0, seen{404, "250", "245", ""}}, // what the tenant gate refused is given back here
	{"POST", "/v1/routes", "key-acme", places(20, 9), 0, seen{201, "4", "3", ""}},
	{"GET", "/v1/routes/r1", "key-acme", "", 0, seen{200, "100", "90", ""}}, // 9 places were charged, not 20 stops
	{"GET", "/v1/analytics/solves", "key-acme", "", 0, seen{200, "100", "89", ""}},
}

func TestTheSameAnswersOnEveryFramework(t *testing.T) {
	first := ""
	for _, framework := range mount.Frameworks() {
		var transcript strings.Builder
		server := start(t, framework)
		for i, s := range scenario {
			server.later(s.later)
			resp, body := server.ask(t, s.method, s.path, s.key, s.body)
			h := resp.Header
			got := seen{resp.StatusCode, h.Get("RateLimit-Limit"), h.Get("RateLimit-Remaining"), h.Get("Retry-After")}
			if got != s.want {
				t.Errorf("%s: step %d: %s %s: got %+v, want %+v", framework, i+1, s.method, s.path, got, s.want)
			}
			for _, name := range []string{"Date", "Server", "Connection"} {
				h.Del(name)
			}
			fmt.Fprintf(&transcript, "%d %s %s\n%d\n", i+1, s.method, s.path, resp.StatusCode)
			_ = h.Write(&transcript) // sorted; a Builder takes everything
			fmt.Fprintf(&transcript, "\n%s\n\n", body)
		}
		if first == "" {
			first = transcript.String()
		} else if transcript.String() != first {
			t.Errorf("%s answers otherwise than %s:\n%s", framework, mount.Frameworks()[0], difference(first, transcript.String()))
		}
	}
}

// Whoever invents a key per request gets no further than the limit of the address.
func TestInventedKeysAreNoBypass(t *testing.T) {
	for _, framework := range mount.Frameworks() {
		server := start(t, framework)
		unauthorized := 0
		for n := range 300 {
			resp, body := server.ask(t, "GET", "/v1/analytics/distance", fmt.Sprintf("invented-%d", n), "")
			switch {
			case resp.StatusCode == 401:
				unauthorized++
			case resp.StatusCode != 429 || !strings.Contains(body, `"policy":"client"`):
				t.Fatalf("%s: request %d: status %d: %s", framework, n+1, resp.StatusCode, body)
			}
		}
		if unauthorized != 250 {
			t.Errorf("%s: %d of 300 invented keys were looked up; the burst is 250", framework, unauthorized)
		}
		if resp, _ := server.ask(t, "GET", "/healthz", "", ""); resp.StatusCode != 200 {
			t.Errorf("%s: a health check from that address: status %d, want 200", framework, resp.StatusCode)
		}
	}
}

// server is an API whose clock stands still unless it is turned.
type server struct {
	base  string
	gates *limits.Gates
	clock atomic.Int64
	http  *http.Client
}

func start(t *testing.T, framework string) *server {
	t.Helper()
	s := &server{http: &http.Client{Transport: &http.Transport{}}}
	s.clock.Store(time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC).UnixNano())
	table := tenants.Sample()
	gates, err := limits.New(table, limits.Config{Clock: func() time.Time { return time.Unix(0, s.clock.Load()) }})
	if err != nil {
		t.Fatal(err)
	}
	s.gates = gates
	api, err := mount.On(framework, service.New(table), gates)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.base = "http://" + ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- api.Serve(ln) }()
	t.Cleanup(func() {
		s.http.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // the test's own is over
		defer cancel()
		for _, err := range []error{api.Shutdown(ctx), <-served, gates.Close(ctx)} {
			if err != nil {
				t.Errorf("%s: the end: %v", framework, err)
			}
		}
	})
	return s
}

func (s *server) later(d time.Duration) { s.clock.Add(int64(d)) }

func (s *server) ask(t *testing.T, method, path, key, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("X-Api-Key", key)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// stops is a request for a route through n stops in a row.
func stops(n int) string { return places(n, n) }

// places is a request for a route through n stops, which are at fewer places.
func places(n, places int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{"lat":48.%02d,"lng":11.5}`, i%places)
	}
	return `{"stops":[` + strings.Join(list, ",") + `]}`
}

// difference is the first line in which two transcripts differ, of both.
func difference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return fmt.Sprintf("line %d: %q\nline %d: %q", i+1, as[i], i+1, bs[i])
		}
	}
	return fmt.Sprintf("%d lines and %d lines", len(as), len(bs))
}
