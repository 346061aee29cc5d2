package httpgate_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/headgate-go/headgate/adapters/httpgate"
	"github.com/headgate-go/headgate/conformance/adaptertest"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// discard is a ResponseWriter that allocates nothing itself.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// TestAllocations mounts one gate twice, with the three fields and the way back.
func TestAllocations(t *testing.T) {
	body := []byte("ok")
	bare := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
	g := gate.PerClient(limit.PerSecond(1e6))
	gated := httpgate.Middleware(g)(httpgate.Middleware(g)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !httpgate.Admission(r).Allowed() {
			t.Error("refused")
		}
		bare(w, r)
	})))
	w, r := discard{http.Header{}}, httptest.NewRequest("GET", "/v1/text", nil)
	serve := func(h http.Handler) func() {
		return func() {
			clear(w.header)
			h.ServeHTTP(w, r)
		}
	}
	adaptertest.Allocations(t, 2, serve(bare), serve(gated))
	if serve(gated)(); w.header.Get("RateLimit-Remaining") == "" {
		t.Error("no fields were sent")
	}
}
