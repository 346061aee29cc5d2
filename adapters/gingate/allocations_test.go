package gingate_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/headgate-go/headgate/adapters/gingate"
	"github.com/headgate-go/headgate/conformance/adaptertest"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// discard is a ResponseWriter that allocates nothing itself.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// TestAllocations mounts one gate on the engine and on a group, with the three fields and the way back.
func TestAllocations(t *testing.T) {
	body := []byte("ok")
	handler := func(c *gin.Context) {
		if !gingate.Admission(c).Allowed() {
			t.Error("refused")
		}
		c.Status(200)
		_, _ = c.Writer.Write(body)
	}
	bare, gated, g := gin.New(), gin.New(), gingate.Middleware(gate.PerClient(limit.PerSecond(1e6)))
	bare.Group("/v1").GET("/text", handler)
	gated.Use(g)
	gated.Group("/v1", g).GET("/text", handler)
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
