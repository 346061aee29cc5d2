package webbench

import (
	"net"
	"net/http"
	"time"

	"github.com/didip/tollbooth/v8"
	"github.com/didip/tollbooth/v8/limiter"
	"github.com/go-chi/httprate"

	"github.com/headgate-go/headgate/adapters/httpgate"
	"github.com/headgate-go/headgate/core/gate"
)

const onHTTP = "net/http"

// netHTTP are the entries of net/http: handlers of a mux.
func netHTTP() []entry {
	handler := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write(body)
	}
	serve := func(wrap func(http.Handler) http.Handler) site {
		mux := http.NewServeMux()
		mux.Handle("GET "+path, wrap(http.HandlerFunc(handler)))
		return overHTTP(mux)
	}
	mount := func(g *gate.Gate, times int) site {
		return serve(func(h http.Handler) http.Handler {
			if times > 1 {
				plain := h
				h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if httpgate.Admission(r).Allowed() {
						plain.ServeHTTP(w, r)
					}
				})
			}
			for range times {
				h = httpgate.Middleware(g)(h)
			}
			return h
		})
	}
	return append([]entry{
		{onHTTP, bare, most, func(int) site { return serve(func(h http.Handler) http.Handler { return h }) }},
		{onHTTP, peerHTTPRate, most, func(limit int) site { return serve(httprate.LimitBy(limit, time.Hour, peerAddress)) }},
		{onHTTP, peerTollbooth, most, func(limit int) site {
			l := tollbooth.NewLimiter(float64(limit), &limiter.ExpirableOptions{DefaultExpirationTTL: time.Hour})
			l.SetIPLookup(limiter.IPLookup{Name: "RemoteAddr"})
			return serve(tollbooth.HTTPMiddleware(l))
		}},
	}, gates(onHTTP, mount)...)
}

// The peers of net/http.
const (
	peerHTTPRate  = "go-chi/httprate"
	peerTollbooth = "didip/tollbooth"
)

// peerAddress is a key as httprate documents it, of a server without a proxy.
func peerAddress(r *http.Request) (string, error) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return httprate.CanonicalizeIP(host), err
}
