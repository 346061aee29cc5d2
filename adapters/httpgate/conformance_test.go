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
		if strings.HasPrefix(route.Pattern, adaptertest.GroupPrefix) {
			h = mount(s.Group, h)
		}
		mux.Handle(route.Method+" "+strings.NewReplacer(":id", "{id}", "*", "{rest...}").Replace(route.Pattern), h)
	}
	matched := s.Unmatched(mux)
	app := mount(s.App, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, ok := adaptertest.Authenticate(r.Header.Get(adaptertest.UserHeader))
		if !ok {
			s.Failure(401, nil).Respond(w)
			return
		}
		matched.ServeHTTP(w, r.WithContext(gate.WithValue(r.Context(), adaptertest.UserValue, user)))
	}))
	return s.Serve(tb, s.Recover(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tenant := r.Header.Get(adaptertest.TenantHeader)
		app.ServeHTTP(w, r.WithContext(gate.WithValue(r.Context(), adaptertest.TenantValue, tenant)))
	})))
}

func mount(gates []*gate.Gate, h http.Handler) http.Handler {
	for i := len(gates) - 1; i >= 0; i-- {
		h = httpgate.Middleware(gates[i])(h)
	}
	return h
}

func handler(s adaptertest.Site, do adaptertest.Behaviour) http.Handler {
	return s.LaterHTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Handled()
		if a, ok := do.Answer(); ok {
			a.Respond(w)
		} else if do == adaptertest.Report {
			adaptertest.ReportAnswer(httpgate.Admission(r), gate.FromContext(r.Context())).Respond(w)
		} else {
			s.HTTP(w, r, do)
		}
	}))
}
