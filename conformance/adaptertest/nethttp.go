package adaptertest

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Serve serves a framework that is built on net/http, over HTTP/1.1 and unencrypted HTTP/2, behind http.TimeoutHandler for
// requests with the field TimeoutHeader, and returns the base URL. What the server logs is a failure of the case.
func (s Site) Serve(tb testing.TB, h http.Handler) (baseURL string) {
	tb.Helper()
	ln := s.Listen(tb)
	limited := http.TimeoutHandler(h, TimeLimit, "late\n")
	outermost := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(TimeoutHeader) != "" {
			limited.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
	srv := &http.Server{Handler: outermost, ErrorLog: log.New(faultWriter{s.probe}, "", 0), Protocols: new(http.Protocols)}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = srv.Serve(ln) }()
	tb.Cleanup(func() { _ = srv.Close() })
	return "http://" + ln.Addr().String()
}

// faultWriter takes what net/http's server logs, "superfluous response.WriteHeader call" for example.
type faultWriter struct{ p *probe }

func (w faultWriter) Write(b []byte) (int, error) {
	line, _, _ := strings.Cut(string(b), "\n")
	w.p.fault("the server logged: %s", line)
	return len(b), nil
}

// serveHTTP does with net/http's means what a framework has no other way of.
func (s Site) serveHTTP(w http.ResponseWriter, r *http.Request, do Behaviour) {
	rc := http.NewResponseController(w)
	switch do {
	case Error, WrappedError, PlainError:
		_ = s.Failed(HTTP(w), do.Fails(), ErrHandler)
	case ReadBody:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			s.probe.fault("the handler could not read the body: %v", err)
		}
		_ = HTTP(w).write(text(200, string(body)))
	case Goexit:
		runtime.Goexit()
	case Stream:
		w.Header().Set("Content-Type", StreamType)
		s.Stream(w, rc.Flush)
	case Endless:
		w.Header().Set("Content-Type", StreamType)
		s.Endless(w, rc.Flush)
	case Abort:
		_, err := io.WriteString(w, AbortedText)
		s.probe.flushed(errors.Join(err, rc.Flush()))
		panic(http.ErrAbortHandler)
	case TimedOut:
		// A handler that returns with its context may be taken for one that was in time: both are there at once.
		answered := make(chan struct{})
		defer close(answered)
		http.TimeoutHandler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-answered }), TimeLimit, "late\n").ServeHTTP(w, r)
	case Hijack, HijackAway:
		conn, _, err := rc.Hijack()
		if err != nil {
			s.probe.fault("the handler could not hijack: %v", err)
			return
		}
		if do == HijackAway {
			go SwitchAndEcho(conn)
			return
		}
		SwitchAndEcho(conn)
	case Deadlines:
		soon := time.Now().Add(patience)
		if err := errors.Join(rc.SetReadDeadline(soon), rc.SetWriteDeadline(soon)); err != nil {
			s.probe.fault("the handler could not set a deadline: %v", err)
		}
		_ = HTTP(w).write(text(200, Text))
	case File:
		f, err := os.Open(s.File())
		if err != nil {
			s.probe.fault("%v", err)
			return
		}
		defer func() { _ = f.Close() }()
		http.ServeContent(w, r, "file.bin", time.Time{}, f)
	default:
		_ = HTTP(w).write(unavailable())
	}
}

// HTTP writes responses with net/http's means.
func HTTP(w http.ResponseWriter) Response {
	return Response{w.Header().Set, func(status int, body []byte) error {
		w.WriteHeader(status)
		if body != nil {
			_, _ = w.Write(body) // a client that is gone reads no second response either
		}
		return nil
	}}
}

// Recover is the recovery of a site on plain net/http, which has none.
func (s Site) Recover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler {
				panic(v)
			}
			err, _ := v.(error)
			_ = s.Failed(HTTP(w), 500, err)
		}()
		next.ServeHTTP(w, r)
	})
}

// Unmatched answers for mux, in the suite's words, the requests that no pattern of it matches.
func (s Site) Unmatched(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		mux.ServeHTTP(rec, r)
		_ = s.Failed(HTTP(w), rec.Code, nil)
	})
}
