package examples_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// A stream and a socket hold a slot each for as long as they are open, in every framework, and not for longer.
func TestStreams(t *testing.T) {
	for _, name := range []string{"gin", "echo", "fiber", "nethttp"} {
		t.Run(name, func(t *testing.T) {
			s := streaming{t, start(t, "streams/"+name, "-every", "10ms")}
			endEvents, status, left := s.events()
			if status != http.StatusOK || left != "1" {
				t.Fatalf("the first stream: status %d, %q left", status, left)
			}
			conn, status, left := s.socket()
			if status != http.StatusSwitchingProtocols || left != "0" {
				t.Fatalf("a socket beside it: status %d, %q left", status, left)
			}
			s.full()
			s.echoes(conn)
			s.full()

			if err := conn.Close(websocket.StatusNormalClosure, ""); err != nil {
				t.Error(err)
			}
			endOther := s.soon()
			s.full()
			endEvents()
			conn = s.soonSocket()
			s.echoes(conn)
			s.full()
			_ = conn.CloseNow() // as a client does that is gone
			endOther()
			defer s.soon()()
			defer s.soon()()
			s.full()
		})
	}
}

type streaming struct {
	t    *testing.T
	addr string
}

// events opens a stream and waits for its first event, if it is let in.
func (s streaming) events() (end func(), status int, left string) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+s.addr+"/events", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	end = func() {
		cancel()
		_ = res.Body.Close()
	}
	if res.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, res.Body)
	} else if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil || len(line) < len("data: 00:00:00") {
		s.t.Errorf("the first event is %q, %v", line, err)
	}
	return end, res.StatusCode, res.Header.Get("RateLimit-Remaining")
}

// socket opens a WebSocket, if it is let in.
func (s streaming) socket() (conn *websocket.Conn, status int, left string) {
	s.t.Helper()
	conn, res, err := websocket.Dial(s.t.Context(), "ws://"+s.addr+"/socket", nil)
	if res == nil {
		s.t.Fatal(err)
	}
	return conn, res.StatusCode, res.Header.Get("RateLimit-Remaining")
}

// full checks that neither a stream nor a socket is let in.
func (s streaming) full() {
	s.t.Helper()
	end, status, _ := s.events()
	end()
	if status != http.StatusTooManyRequests {
		s.t.Errorf("a third stream: status %d", status)
	}
	conn, status, left := s.socket()
	if conn != nil {
		_ = conn.CloseNow()
	}
	if status != http.StatusTooManyRequests || left != "0" {
		s.t.Errorf("a third socket: status %d, %q left", status, left)
	}
}

func (s streaming) echoes(conn *websocket.Conn) {
	s.t.Helper()
	if err := conn.Write(s.t.Context(), websocket.MessageText, []byte("hello")); err != nil {
		s.t.Fatal(err)
	}
	if _, got, err := conn.Read(s.t.Context()); string(got) != "hello" || err != nil {
		s.t.Fatalf("the socket answers %q, %v", got, err)
	}
}

// soon opens a stream as soon as it is let in: a slot is free a little after its client is gone.
func (s streaming) soon() (end func()) {
	s.t.Helper()
	s.poll(func() (ok bool) {
		var status int
		if end, status, _ = s.events(); status != http.StatusOK {
			end()
			return false
		}
		return true
	})
	return end
}

func (s streaming) soonSocket() (conn *websocket.Conn) {
	s.t.Helper()
	s.poll(func() bool {
		conn, _, _ = s.socket()
		return conn != nil
	})
	return conn
}

func (s streaming) poll(done func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatal("the slot of a client that is gone is still held")
		}
	}
}
