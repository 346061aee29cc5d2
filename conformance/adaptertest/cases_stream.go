package adaptertest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// available notes where a framework cannot do what a case is about.
func (x *exam) available(res *response, what string) bool {
	if res.status != unavailable().status {
		return true
	}
	x.notef("not with this framework: %s", what)
	return false
}

var streamCases = []testCase{
	{"BR115_flush",
		"server-sent events arrive when they are flushed, through the gate as without it, and carry the fields",
		func(x *exam) {
			x.app(x.limit(perMinute("client", 2)), Route{"GET", "/v1/stream", Stream})
			s := x.open(ask("GET /v1/stream"))
			x.letGo(1)
			res := s.end().is(200).text(firstPiece+secondPiece).budget(2, 1, 30).has("Content-Type", StreamType)
			x.record(s.r, &res.response)
			if s := x.saw(1); s.failed() {
				x.failf("the observer saw status %d, error %v, panicked %t", s.result.Status, s.err, s.panicked)
			}
		}},
	{"BR115_hijack",
		"an upgrade fails as soon as a gate is mounted, if its writer hides Hijack; nothing may be written behind it",
		func(x *exam) {
			x.app(x.limit(perMinute("client", 2)), Route{"GET", "/v1/socket", Hijack})
			s, ok := x.upgrade("GET /v1/socket")
			if !ok {
				return
			}
			s.is(101)
			s.echo()
			if s := x.saw(1); s.panicked || s.err != nil {
				x.failf("the observer saw error %v, panicked %t", s.err, s.panicked)
			}
		}},
	{"BR115_deadlines",
		"http.ResponseController must reach the connection through the gate's writer",
		func(x *exam) {
			x.app(x.limit(perMinute("client", 2)), Route{"GET", "/v1/deadline", Deadlines})
			if res := x.try(ask("GET /v1/deadline")); x.available(&res.response, "deadlines of one response") {
				res.passed().budget(2, 1, 30)
			}
		}},
	{"BR115_file",
		"a file of 10 MiB goes the short way from disk to socket, whole",
		func(x *exam) {
			size := x.megabytes(10)
			x.bigFile(size)
			x.app(x.limit(perMinute("client", 2)), Route{"GET", "/v1/file", File})
			res := x.try(ask("GET /v1/file"))
			if !x.available(&res.response, "sending a file") {
				return
			}
			res.is(200).budget(2, 1, 30)
			if len(res.body) != size || bytes.Count(res.body, []byte("headgate")) != size/8 {
				x.failf("%d bytes of the file arrived; want %d", len(res.body), size)
			}
		}},
	{"BR114_abort_handler_passes_through",
		"a recovered http.ErrAbortHandler appends an error page to half a response",
		func(x *exam) {
			x.app(x.limit(perMinute("client", 2)), Route{"GET", "/v1/abort", Abort}, textRoute)
			res := x.try(ask("GET /v1/abort"))
			if !x.available(&res.response, "http.ErrAbortHandler") {
				return
			}
			if string(res.body) != AbortedText {
				res.failf("the body is %q; want the handler's %q", res.body, AbortedText)
			}
			if !res.cut {
				x.notef("the framework's recovery ends an aborted response as if it were whole")
			}
			res.is(200).budget(2, 1, 30)
			if s := x.saw(1); !s.panicked {
				x.failf("the observer saw no panic")
			}
			x.try(ask("GET /v1/text")).passed().budget(2, 0, 60)
		}},
	{"BR114_panic_nil",
		"panic(nil) is a panic too",
		func(x *exam) {
			x.app(x.limit(perMinute("client", 2)), Route{"GET", "/v1/nil", PanicNil})
			if res := x.try(ask("GET /v1/nil")); x.available(&res.response, "panic(nil)") {
				res.is(500).budget(2, 1, 30).text("failed with 500\n")
				if s := x.saw(1); !s.panicked {
					x.failf("the observer saw no panic")
				}
			}
		}},
	{"BR114_goexit",
		"runtime.Goexit, which t.FailNow uses, skips what is not deferred",
		func(x *exam) {
			x.app(x.limit(perMinute("client", 2)), Route{"GET", "/v1/goexit", Goexit}, textRoute)
			res, err := x.client.do(ask("GET /v1/goexit"))
			if err == nil {
				if x.available(res, "runtime.Goexit") {
					x.failf("the status is %d; want a closed connection", res.status)
				}
				return
			}
			if s := x.saw(1); !s.panicked {
				x.failf("the observer was not told that the handler never returned")
			}
			x.try(ask("GET /v1/text")).passed().budget(2, 0, 60)
		}},
}

var uploadCases = []testCase{
	{"BR119_refused_upload",
		"after an early refusal, an unread body must not be taken for the next request, nor leave the client sending",
		func(x *exam) {
			x.app(x.limit(perTenant(1)), Route{"POST", "/v1/upload", ReadBody}, textRoute)
			x.try(ask("GET /v1/text", TenantHeader, "a")).passed()
			big := bytes.Repeat([]byte("GET /v1/text HTTP/1.1\r\nHost: x\r\n\r\n"), x.megabytes(20)/36)
			x.try(ask("POST /v1/upload", TenantHeader, "a").with(big)).refused(1, 0, 60, 60)
			x.try(ask("GET /v1/text", TenantHeader, "b")).passed().budget(1, 0, 60)
			x.ran(2)
			x.saw(3)
		}},
	{"BR119_streams_of_one_connection",
		"half of a hundred parallel HTTP/2 streams are refused; the other half must not suffer from it",
		func(x *exam) {
			const streams, allowed = 100, 50
			x.app(x.limit(perMinute("client", allowed)), Route{"POST", "/v1/echo", ReadBody})
			if !x.speaksHTTP2() {
				x.notef("not with this framework: unencrypted HTTP/2")
				return
			}
			transport := &http.Transport{Protocols: new(http.Protocols)}
			transport.Protocols.SetUnencryptedHTTP2(true)
			defer transport.CloseIdleConnections()
			var ok, refused atomic.Int32
			each(streams, func(int) error {
				res, err := (&http.Client{Transport: transport, Timeout: patience}).Post("http://"+x.client.address+"/v1/echo", TextType,
					strings.NewReader(strings.Repeat("x", 10_000)))
				if err != nil {
					return err
				}
				defer func() { _ = res.Body.Close() }()
				body, err := io.ReadAll(res.Body)
				switch {
				case err != nil:
					return err
				case res.StatusCode == 200 && len(body) == 10_000:
					ok.Add(1)
				case res.StatusCode == 429 && res.Header.Get(fieldRetryAfter) != "":
					refused.Add(1)
				default:
					return fmt.Errorf("status %d with %d bytes", res.StatusCode, len(body))
				}
				return nil
			}, x)
			if ok.Load() != allowed || refused.Load() != streams-allowed {
				x.failf("%d streams passed and %d were refused; want %d and %d", ok.Load(), refused.Load(), allowed, streams-allowed)
			}
		}},
}

var raceCases = []testCase{
	{"BR116_each_request_its_own",
		"contexts and buffers are used again: a key, path or number of another request is a leak between tenants",
		func(x *exam) {
			const clients, requests = 100, 4
			x.app(x.limit(perTenant(requests)), Route{"GET", "/v1/users/:id", Report})
			var wrong atomic.Int32
			each(clients, func(n int) error {
				c := x.client.twin()
				defer c.close()
				for i := range requests + 1 {
					res, err := c.do(ask(fmt.Sprintf("GET /v1/users/%d", n), TenantHeader, fmt.Sprintf("tenant-%d", n)))
					if err != nil {
						return err
					}
					want := fmt.Sprintf("tenant allowed %d/%d\n", requests-1-i, requests)
					if i == requests && res.status != 429 || i < requests && string(res.body) != want {
						wrong.Add(1)
					}
				}
				return nil
			}, x)
			if n := wrong.Load(); n > 0 {
				x.failf("%d of %d responses were wrong", n, clients*(requests+1))
			}
			keys, paths := map[string]string{}, map[string]string{}
			for _, s := range x.events(clients * (requests + 1)) {
				if k, ok := keys[s.path]; ok && k != s.keys() || paths[s.keys()] != "" && paths[s.keys()] != s.path {
					x.failf("the observer saw the key of one request with the path of another: %s", s.path)
					break
				}
				keys[s.path], paths[s.keys()] = s.keys(), s.path
			}
			if len(keys) != clients {
				x.failf("the observer saw %d different paths; want %d", len(keys), clients)
			}
		}},
}

// each runs f for 0 to n-1 at the same time, and fails with the first error.
func each(n int, f func(i int) error, x *exam) {
	var group sync.WaitGroup
	errs := make(chan error, n)
	for i := range n {
		group.Go(func() { errs <- f(i) })
	}
	group.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			x.failf("%v", err)
			return
		}
	}
}

// speaksHTTP2 sends HTTP/2's preface, and looks whether what comes back is a SETTINGS frame.
func (x *exam) speaksHTTP2() bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, x.client.network, x.client.address)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	frame, err := bufio.NewReader(conn).Peek(9)
	return err == nil && frame[3] == 4
}
