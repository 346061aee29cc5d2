package fibergate

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/gofiber/fiber/v2/middleware/recover"
)

// patience is for what happens at once where nothing is wrong.
const patience = 10 * time.Second

// hold stands for what a gate holds during a request.
type hold struct {
	trailed bool
	closes  atomic.Int32
	closed  chan struct{}
}

func (h *hold) Close() error {
	if h.closes.Add(1) == 1 {
		close(h.closed)
	}
	return nil
}

// asking does with Trail what a gate does: after Next, unless it panicked.
func asking(seen chan<- *hold) fiber.Handler {
	return func(c *fiber.Ctx) error {
		err := c.Next()
		h := &hold{closed: make(chan struct{})}
		h.trailed = exchange{c}.Trail(h)
		seen <- h
		return err
	}
}

// trailing is an application whose handlers end after they returned, behind one or more askers.
type trailing struct {
	t    *testing.T
	app  *fiber.App
	seen chan *hold
	conn net.Conn
	in   *bufio.Reader
	more chan struct{} // lets a stream or a hijacked connection go on
	errs chan error    // what became of it
}

func newTrailing(t *testing.T, askers int) *trailing {
	s := &trailing{t: t, app: fiber.New(fiber.Config{DisableStartupMessage: true}), seen: make(chan *hold, 8),
		more: make(chan struct{}, 8), errs: make(chan error, 8)}
	s.app.Use(recover.New())
	for range askers {
		s.app.Use(asking(s.seen))
	}
	s.app.All("/text", func(c *fiber.Ctx) error { return c.SendString("text") })
	s.app.All("/stream", func(c *fiber.Ctx) error { s.stream(c); return nil })
	s.app.All("/endless", func(c *fiber.Ctx) error {
		c.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
			var err error
			for piece := strings.Repeat("x", 1<<16); err == nil; {
				_, err = w.WriteString(piece)
				err = errors.Join(err, w.Flush())
			}
			s.errs <- err
		})
		return nil
	})
	s.app.All("/error", func(c *fiber.Ctx) error { s.stream(c); return fiber.ErrTeapot })
	s.app.All("/panic", func(c *fiber.Ctx) error { s.stream(c); panic("on purpose") })
	s.app.All("/timeout", func(c *fiber.Ctx) error { s.stream(c); c.Context().TimeoutError("late"); return nil })
	s.app.All("/socket", func(c *fiber.Ctx) error { s.hijack(c); return nil })
	s.app.All("/late-socket", func(c *fiber.Ctx) error { <-s.more; s.hijack(c); return nil })
	return s
}

// stream sends a first piece, and a second one when more says so.
func (s *trailing) stream(c *fiber.Ctx) {
	c.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
		_, _ = w.WriteString("one,")
		_ = w.Flush()
		<-s.more
		_, err := w.WriteString("two.")
		s.errs <- err
	})
}

// hijack answers 101 as an upgrade does, and serves the connection until the client closes it.
func (s *trailing) hijack(c *fiber.Ctx) {
	c.Status(fiber.StatusSwitchingProtocols)
	c.Context().Hijack(func(conn net.Conn) {
		_, err := io.Copy(conn, conn)
		s.errs <- err
	})
}

// ask serves the application, if it is not served yet, and writes requests.
func (s *trailing) ask(requests ...string) *trailing {
	if s.conn == nil {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			s.t.Fatal(err)
		}
		go func() { _ = s.app.Listener(ln) }()
		if s.conn, err = net.Dial("tcp", ln.Addr().String()); err != nil {
			s.t.Fatal(err)
		}
		_ = s.conn.SetDeadline(time.Now().Add(patience))
		s.in = bufio.NewReader(s.conn)
		s.t.Cleanup(func() {
			_ = s.conn.Close()
			_ = s.app.Shutdown()
		})
	}
	var text strings.Builder
	for _, r := range requests {
		head, fields, _ := strings.Cut(r, "|")
		text.WriteString(head + " HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n")
	}
	if _, err := io.WriteString(s.conn, text.String()); err != nil {
		s.t.Fatal(err)
	}
	return s
}

// reads fails unless the connection says all of texts, in order.
func (s *trailing) reads(texts ...string) {
	s.t.Helper()
	var got strings.Builder
	for _, text := range texts {
		for !strings.Contains(got.String(), text) {
			b, err := s.in.ReadByte()
			if err != nil {
				s.t.Fatalf("the connection says %q, %v; want %q", got.String(), err, text)
			}
			got.WriteByte(b)
		}
		got.Reset()
	}
}

// trailed returns the next hold, whose end must still be to come, and to come once.
func (s *trailing) trailed() *hold {
	s.t.Helper()
	h := await(s.t, s.seen)
	if !h.trailed {
		s.t.Fatal("Trail says that the response is over when the handler returned")
	}
	s.t.Cleanup(func() {
		if n := h.closes.Load(); n != 1 {
			s.t.Errorf("Close was called %d times", n)
		}
	})
	return h
}

func (s *trailing) open(h *hold) {
	s.t.Helper()
	if h.closes.Load() != 0 {
		s.t.Error("Close was called before the response was over")
	}
}

func await[V any](t *testing.T, c <-chan V) (v V) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case v = <-c:
	case <-ctx.Done():
		t.Fatal("waited in vain")
	}
	return v
}

func TestTrailOfStreams(t *testing.T) {
	for name, request := range map[string]string{"kept": "GET /stream", "closed": "GET /stream|Connection: close\r\n"} {
		t.Run(name, func(t *testing.T) {
			s := newTrailing(t, 1).ask(request)
			h := s.trailed()
			s.reads("one,")
			s.open(h)
			s.more <- struct{}{}
			s.reads("two.")
			await(t, h.closed)
		})
	}
}

func TestTrailEndsWithTheHandlerOtherwise(t *testing.T) {
	s := newTrailing(t, 1).ask("GET /text")
	if await(t, s.seen).trailed {
		t.Error("a body that is there when the handler returns has no trail")
	}
	s = newTrailing(t, 1).ask("GET /timeout")
	if await(t, s.seen).trailed {
		t.Error("fasthttp forgets a request that has timed out: nobody would call Close")
	}
	s.more <- struct{}{}
	s = newTrailing(t, 1).ask("GET /panic", "GET /text")
	s.reads("500 Internal Server Error", "on purpose", "200 OK", "text")
	if await(t, s.seen).trailed || len(s.seen) > 0 {
		t.Error("a handler that panicked is asked for its trail")
	}
	s.more <- struct{}{}
}

// The client is gone: the stream notices when it cannot be written, and ends.
func TestTrailOfACutStream(t *testing.T) {
	s := newTrailing(t, 1).ask("GET /endless")
	h := s.trailed()
	s.reads("xxxx")
	s.open(h)
	_ = s.conn.Close()
	await(t, h.closed)
	if err := await(t, s.errs); err == nil {
		t.Error("the stream was not told")
	}
}

func TestTrailOfPipelinedRequests(t *testing.T) {
	s := newTrailing(t, 1).ask("GET /stream", "GET /text", "GET /stream")
	first := s.trailed()
	s.reads("one,")
	s.open(first)
	s.more <- struct{}{}
	await(t, first.closed)
	if await(t, s.seen).trailed {
		t.Error("the second response has no trail")
	}
	second := s.trailed()
	s.reads("two.", "text", "one,")
	s.open(second)
	s.more <- struct{}{}
	s.reads("two.")
	await(t, second.closed)
}

// The body of a HEAD is not written; its stream is closed all the same.
func TestTrailOfHEAD(t *testing.T) {
	s := newTrailing(t, 1).ask("HEAD /stream")
	h := s.trailed()
	s.reads("200 OK")
	await(t, h.closed)
	s.more <- struct{}{}
	s.ask("GET /text").reads("text")
}

// A returned error replaces the stream, and the request ends as any other.
func TestTrailOfAReplacedStream(t *testing.T) {
	s := newTrailing(t, 1).ask("GET /error")
	h := s.trailed()
	s.reads("418 I'm a teapot")
	await(t, h.closed)
	s.more <- struct{}{}
}

func TestTrailOfAHijackedConnection(t *testing.T) {
	s := newTrailing(t, 1).ask("GET /socket")
	h := s.trailed()
	s.reads("101 Switching Protocols", "\r\n\r\n")
	_, _ = io.WriteString(s.conn, "ping\n")
	s.reads("ping\n")
	s.open(h)
	_ = s.conn.Close()
	await(t, h.closed)
}

// The client is gone before the response of an upgrade is written: fasthttp calls neither the hijack handler nor Close,
// and forgets the request. What was held is given back when the collector finds it.
func TestTrailOfAConnectionThatCannotBeHijacked(t *testing.T) {
	s := newTrailing(t, 1).ask("GET /late-socket")
	_ = s.conn.(*net.TCPConn).SetLinger(0) // resets the connection, so that the first write fails
	_ = s.conn.Close()
	s.more <- struct{}{}
	h := s.trailed()
	for deadline := time.Now().Add(patience); h.closes.Load() == 0 && time.Now().Before(deadline); {
		runtime.GC()
	}
}

// fasthttp closes what is kept under one key once, and the last one only.
func TestTrailOfSeveralGates(t *testing.T) {
	s := newTrailing(t, 3).ask("GET /stream")
	holds := []*hold{s.trailed(), s.trailed(), s.trailed()}
	s.reads("one,")
	for _, h := range holds {
		s.open(h)
	}
	s.more <- struct{}{}
	s.reads("two.")
	for _, h := range holds {
		await(t, h.closed)
	}
}

func TestTrailOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(strings.Repeat("headgate", 1<<17)), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newTrailing(t, 1)
	s.app.Get("/file", func(c *fiber.Ctx) error { return c.SendFile(file) })
	h := s.ask("GET /file").trailed()
	s.reads("headgate")
	if _, err := io.CopyN(io.Discard, s.in, 8<<17-8); err != nil {
		t.Fatal(err)
	}
	await(t, h.closed)
}

// Without fasthttp's server nobody would call Close.
func TestTrailWithoutAServer(t *testing.T) {
	s := newTrailing(t, 1)
	s.more <- struct{}{}
	w := httptest.NewRecorder()
	adaptor.FiberApp(s.app)(w, httptest.NewRequest("GET", "/stream", nil))
	if h := await(t, s.seen); h.trailed || w.Body.String() != "one,two." {
		t.Errorf("through net/http: trailed %t, body %q", h.trailed, w.Body)
	}
	s.more <- struct{}{}
	res, err := s.app.Test(httptest.NewRequest("GET", "/stream", nil), -1)
	if err != nil {
		t.Fatal(err)
	}
	h := s.trailed() // app.Test uses a server
	if body, err := io.ReadAll(res.Body); string(body) != "one,two." || err != nil {
		t.Errorf("body %q, %v", body, err)
	}
	await(t, h.closed)
}

// One closer that fails keeps no other from being closed.
func TestTrailJoinsErrors(t *testing.T) {
	a, b, last := errors.New("a"), errors.New("b"), &hold{closed: make(chan struct{})}
	tr := newTrail()
	for _, c := range []io.Closer{failing{a}, failing{b}, last} {
		tr.add(c)
	}
	if err := tr.Close(); !errors.Is(err, a) || !errors.Is(err, b) || last.closes.Load() != 1 {
		t.Errorf("Close: %v, and the last closed %d times", err, last.closes.Load())
	}
	if err := tr.Close(); err != nil || last.closes.Load() != 1 {
		t.Errorf("the second Close: %v, and the last closed %d times", err, last.closes.Load())
	}
}

type failing struct{ error }

func (f failing) Close() error { return f.error }
