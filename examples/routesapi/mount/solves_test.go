package mount_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/examples/routesapi/mount"
)

// Bumper may have two solves at a time. One that finds no slot costs nothing; one that is done gives its slot back.
func TestSolvesHaveSlots(t *testing.T) {
	for _, framework := range mount.Frameworks() {
		t.Run(framework, func(t *testing.T) {
			s := start(t, framework)
			first := s.gates.Tenant.Take(t.Context(), "solves", 1, "bumper")
			second := s.gates.Tenant.Take(t.Context(), "solves", 1, "bumper")
			defer second.Done(nil)

			resp, body := s.ask(t, "POST", "/v1/routes", "key-bumper", stops(10))
			h := resp.Header
			if got, want := (seen{resp.StatusCode, h.Get("RateLimit-Limit"), h.Get("RateLimit-Remaining"), h.Get("Retry-After")}),
				(seen{429, "2", "0", "1"}); got != want || !strings.Contains(body, `"policy":"solves"`) {
				t.Errorf("a third solve: %+v, want %+v: %s", got, want, body)
			}
			if resp, _ := s.ask(t, "POST", "/v1/routes", "key-acme", stops(2)); resp.StatusCode != 201 {
				t.Errorf("another tenant's solve: status %d, want 201", resp.StatusCode)
			}
			s.left(t, "tenant", 25) // the refusal took none

			first.Done(nil)
			if resp, body := s.ask(t, "POST", "/v1/routes", "key-bumper", stops(10)); resp.StatusCode != 201 {
				t.Errorf("with a slot free: status %d: %s", resp.StatusCode, body)
			}
			s.left(t, "tenant", 15)
			s.left(t, "solves", 1)
		})
	}
}

// A solve holds its slot while it runs, and no longer: its caller may go away.
func TestWhoGoesAwayHoldsNoSlot(t *testing.T) {
	for _, framework := range mount.Frameworks() {
		t.Run(framework, func(t *testing.T) {
			s := start(t, framework)
			seconds, report := "40", `{"given_up":1,"most":1,"report":"solves","running":0}`
			if framework == "fiber" { // which does not see that the caller went: the search goes on to its end
				seconds, report = "3", `{"given_up":0,"most":1,"report":"solves","running":0}`
			}
			body := strings.Replace(places(10, 6), "{", `{"seconds":`+seconds+",", 1)
			ctx, leave := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, "POST", s.base+"/v1/routes", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Api-Key", "key-bumper")
			gone := make(chan error, 1)
			go func() {
				resp, err := s.http.Do(req)
				if err == nil {
					resp.Body.Close()
				}
				gone <- err
			}()
			s.waitUntilLeft(t, "solves", 1)
			s.left(t, "tenant", 15) // the estimate: every stop
			leave()
			if err := <-gone; err == nil {
				t.Error("it was answered before it left")
			}
			s.waitUntilLeft(t, "solves", 2)
			if got := s.remaining(t, "tenant"); got < 19 || got > 24 {
				t.Errorf("%d left, want 19: six places were worked on, or fewer where it left at once", got)
			}
			if _, got := s.ask(t, "GET", "/v1/analytics/solves", "key-bumper", ""); got != report {
				t.Errorf("the report is %s, want %s", got, report)
			}
		})
	}
}

// remaining asks what bumper has left. It is on the free plan, whose limits are those that the gate knows without a request.
func (s *server) remaining(t *testing.T, policy string) int {
	t.Helper()
	d, err := s.gates.Tenant.Usage(t.Context(), policy, "bumper")
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

func (s *server) left(t *testing.T, policy string, want int) {
	t.Helper()
	if got := s.remaining(t, policy); got != want {
		t.Errorf("%s: %d left, want %d", policy, got, want)
	}
}

func (s *server) waitUntilLeft(t *testing.T, policy string, want int) {
	t.Helper()
	next, patience := time.NewTicker(2*time.Millisecond), time.After(20*time.Second)
	defer next.Stop()
	for s.remaining(t, policy) != want {
		select {
		case <-next.C:
		case <-patience:
			t.Fatalf("%s: %d left, want %d; waited 20s", policy, s.remaining(t, policy), want)
		}
	}
}
