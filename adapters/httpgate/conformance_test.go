package httpgate_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/headgate-go/headgate/adapters/httpgate"
	"github.com/headgate-go/headgate/conformance/adaptertest"
	"github.com/headgate-go/headgate/core/gate"
)

func TestConformance(t *testing.T) { adaptertest.Run(t, newSite) }

func newSite(tb testing.TB, s adaptertest.Site) string {
	mux := http.NewServeMux()
	for _, route := range s.Routes {
		h := mount(s.Route, handler(s, route.Do))
		if _, ok := route.InGroup(); ok {
			h = mount(s.Group, h)
		}
		mux.Handle(route.Method+" "+strings.NewReplacer(":id", "{id}", "*", "{rest...}").Replace(route.Pattern), h)
	}
	h := keep(s, adaptertest.UserHeader, adaptertest.UserValue, s.Unmatched(mux))
	h = keep(s, adaptertest.TenantHeader, adaptertest.TenantValue, mount(s.App, h))
	return s.Serve(tb, s.Recover(h))
}

func mount(gates []*gate.Gate, h http.Handler) http.Handler {
	for i := len(gates) - 1; i >= 0; i-- {
		h = httpgate.Middleware(gates[i])(h)
	}
	return h
}

func keep(s adaptertest.Site, field, name string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		value := r.Header.Get(field)
		if !s.Known(name, value) {
			_ = s.Failed(adaptertest.HTTP(w), 401, nil)
			return
		}
		next.ServeHTTP(w, r.WithContext(gate.WithValue(r.Context(), name, value)))
	})
}

func handler(s adaptertest.Site, do adaptertest.Behaviour) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = s.Handle(do, adaptertest.Native{Response: adaptertest.HTTP(w), Writer: w, Request: r,
			Admission: httpgate.Admission(r), Context: r.Context()})
	})
}
