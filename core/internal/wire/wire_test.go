package wire_test

import (
	"encoding/json"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/headgate-go/headgate/core/internal/wire"
)

func TestSeconds(t *testing.T) {
	for _, tt := range []struct {
		d           time.Duration
		ceil, retry int64
	}{
		{0, 0, 1}, {1, 1, 1}, {time.Microsecond, 1, 1}, {time.Second, 1, 1}, {time.Second + 1, 2, 2},
		{3900 * time.Millisecond, 4, 4}, {24 * time.Hour, 86400, 86400}, {25 * time.Hour, 90000, 86400},
		{1<<63 - 1, 9223372037, 86400},
	} {
		if got := wire.Ceil(tt.d); got != tt.ceil {
			t.Errorf("Ceil(%v) = %d, want %d", tt.d, got, tt.ceil)
		}
		if got := wire.RetryAfter(tt.d); got != tt.retry {
			t.Errorf("RetryAfter(%v) = %d, want %d", tt.d, got, tt.retry)
		}
	}
}

func TestMessages(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{wire.Rate(100, time.Second, 500, 3), "Request rate limit exceeded: 100 requests/second sustained (bursts to 500). Retry after 3s."},
		{wire.Rate(7, time.Minute, 7, 9), "Request rate limit exceeded: 7 requests/minute sustained (bursts to 7). Retry after 9s."},
		{wire.Rate(7, time.Hour, 7, 9), "Request rate limit exceeded: 7 requests/hour sustained (bursts to 7). Retry after 9s."},
		{wire.Rate(7, 24*time.Hour, 7, 9), "Request rate limit exceeded: 7 requests/day sustained (bursts to 7). Retry after 9s."},
		{wire.Rate(7, 90*time.Second, 7, 9), "Request rate limit exceeded: 7 requests per 1m30s sustained (bursts to 7). Retry after 9s."},
		{wire.Quota(5, "1h", 9), "Request quota exceeded: 5 requests per 1h. Retry after 9s."},
		{wire.Period(2 * time.Hour), "2h"}, {wire.Period(10 * time.Minute), "10m"}, {wire.Period(100 * time.Minute), "1h40m"},
		{wire.Period(10 * time.Second), "10s"}, {wire.Period(1500 * time.Millisecond), "1.5s"}, {wire.Period(time.Hour + time.Second), "1h0m1s"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q\nwant %q", tt.got, tt.want)
		}
	}
}

func TestBodies(t *testing.T) {
	e := wire.Error{Type: wire.TypeRateLimit, Message: "Slow down. See https://docs.example.com/limits?a=1&b=<2>",
		LimitType: "request_rate", Policy: "tenant", RetryAfter: 3}
	want := `{"error":{"type":"rate_limit_error","message":"Slow down. See https://docs.example.com/limits?a=1&b=<2>","limit_type":"request_rate","policy":"tenant","retry_after":3}}`
	if got := string(wire.JSON(e)); got != want {
		t.Errorf("JSON:\n%s\nwant\n%s", got, want)
	}
	want = `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,"detail":"Slow down. See https://docs.example.com/limits?a=1&b=<2>","violated-policies":["tenant","day"],"limit_type":"request_rate","retry_after":3}`
	if got := string(wire.Problem(429, e, []string{"tenant", "day"})); got != want {
		t.Errorf("Problem:\n%s\nwant\n%s", got, want)
	}
	e.RetryAfter = 0
	if got := string(wire.Problem(503, e, nil)); json.Valid([]byte(got)) == false || got[len(got)-2:] != `"}` {
		t.Errorf("Problem without retry_after: %s", got)
	}
}

// Whatever a message holds, the bodies are JSON that says the same.
func FuzzBodies(f *testing.F) {
	f.Add("plain", int64(3))
	f.Add("a\"b\\c\n\x00\x7f\xff\u2028é", int64(0))
	f.Fuzz(func(t *testing.T, message string, retry int64) {
		var got struct {
			Error struct {
				Message    string `json:"message"`
				RetryAfter int64  `json:"retry_after"`
			} `json:"error"`
		}
		if err := json.Unmarshal(wire.JSON(wire.Error{Message: message, RetryAfter: retry}), &got); err != nil {
			t.Fatal(err)
		}
		if utf8.ValidString(message) && got.Error.Message != message || got.Error.RetryAfter != retry {
			t.Errorf("%q, %d came back as %+v", message, retry, got)
		}
		if !json.Valid(wire.Problem(503, wire.Error{Message: message}, []string{message})) {
			t.Error("Problem is not JSON")
		}
	})
}

// BR-160: jitter only adds, at most 20 % and one second.
func TestJitterBounds(t *testing.T) {
	for s := int64(1); s < 1000; s++ {
		for _, random := range []float64{0, 0.3, 0.999999999} {
			if got := wire.Jitter(s, random); got < s || float64(got) > 1.2*float64(s)+1 {
				t.Fatalf("Jitter(%d, %v) = %d", s, random, got)
			}
		}
	}
}
