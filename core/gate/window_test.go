package gate_test

import (
	"maps"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// What a client sees of windows, in every dialect. The tests' clock begins with a minute, at 08:00 UTC.
func TestWindowsOnTheWire(t *testing.T) {
	berlin := time.FixedZone("UTC+1", 3600)
	tests := []struct {
		name  string
		b     bucket
		want  map[string]string
		quota string
	}{
		{"fixed, allowed", bucket{limit.Window(10, time.Minute), nil, 20 * time.Second, 1}, map[string]string{
			"Ratelimit-Limit": "10", "Ratelimit-Remaining": "9", "Ratelimit-Reset": "40",
			"Ratelimit-Policy": `"p";q=10;w=60`, "Ratelimit": `"p";r=9;t=54`}, ""},
		{"fixed, refused", bucket{limit.Window(10, time.Minute), []int{10}, 50 * time.Second, 1}, map[string]string{
			"Ratelimit-Limit": "10", "Ratelimit-Remaining": "0", "Ratelimit-Reset": "10", "Retry-After": "10",
			"Ratelimit-Policy": `"p";q=10;w=60`, "Ratelimit": `"p";r=0;t=10`}, "10 requests per 1m"},
		{"fixed, cost above the limit", bucket{limit.Window(10, time.Minute), nil, 0, 11}, map[string]string{
			"Ratelimit-Limit": "10", "Ratelimit-Remaining": "10", "Ratelimit-Reset": "60",
			"Ratelimit-Policy": `"p";q=10;w=60`, "Ratelimit": `"p";r=10`}, ""},
		{"sliding, refused", bucket{limit.Sliding(10, time.Minute), []int{10}, 66 * time.Second, 2}, map[string]string{
			"Ratelimit-Limit": "10", "Ratelimit-Remaining": "1", "Ratelimit-Reset": "6", "Retry-After": "6",
			"Ratelimit-Policy": `"p";q=10;w=60`, "Ratelimit": `"p";r=1;t=6`}, "10 requests per 1m"},
		{"daily in a zone, refused", bucket{limit.Daily(5).In(berlin), []int{5}, time.Hour, 1}, map[string]string{
			"Ratelimit-Limit": "5", "Ratelimit-Remaining": "0", "Ratelimit-Reset": "50400", "Retry-After": "50400",
			"Ratelimit-Policy": `"p";q=5;w=86400`, "Ratelimit": `"p";r=0;t=50400`}, "5 requests per day"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, ask := tt.b.gate(t, gate.HeadersStandard|gate.HeadersDraft)
			if got := ask(); !maps.Equal(got, tt.want) {
				t.Errorf("got  %v\nwant %v", got, tt.want)
			}
			if tt.quota == "" {
				return
			}
			message := "Request quota exceeded: " + tt.quota + ". Retry after " + tt.want["Retry-After"] + "s."
			if ref := g.Admit(t.Context(), call("GET /x", "192.0.2.1")).Refusal(); ref == nil || ref.Message != message {
				t.Errorf("%+v\nwant %q", ref, message)
			}
		})
	}
}
