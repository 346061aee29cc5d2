package echogate_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/headgate-go/headgate/adapters/echogate"
	"github.com/headgate-go/headgate/conformance/adaptertest"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// discard is a ResponseWriter that allocates nothing itself.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// TestAllocations mounts one gate on the application and on a group, with the three fields and the way back. Echo builds
// its chain anew for each request, so two of the four are the closures that it wants of any middleware.
func TestAllocations(t *testing.T) {
	body := []byte("ok")
	handler := func(c echo.Context) error {
		if !echogate.Admission(c).Allowed() {
			t.Error("refused")
		}
		c.Response().WriteHeader(200)
		_, err := c.Response().Write(body)
		return err
	}
	bare, gated, g := echo.New(), echo.New(), echogate.Middleware(gate.PerClient(limit.PerSecond(1e6)))
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
	adaptertest.Allocations(t, 4, serve(bare), serve(gated))
	if serve(gated)(); w.header.Get("RateLimit-Remaining") == "" {
		t.Error("no fields were sent")
	}
}
