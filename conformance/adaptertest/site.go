package adaptertest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Waits for what happens at once where nothing is wrong: of Run, whose failures must be true on a busy machine, and of
// Failures, whose adapters are wrong on purpose.
const (
	patience   = 10 * time.Second
	impatience = 300 * time.Millisecond
)

// probe is what a site's handlers tell the case that runs.
type probe struct {
	handled, behind atomic.Int64 // handlers, and the middleware behind the application's gates
	network         string
	patience        time.Duration
	listener        net.Listener
	entered         chan struct{} // a handler holds on
	proceed         chan struct{} // lets one that holds on, or streams, go on
	over            chan struct{} // closed with the case
	flowing         chan struct{} // closed where streams do not wait
	leaving         bool          // clients leave: that a handler cannot write is no fault
	file            string
	working         atomic.Int64 // handlers that run
	most            atomic.Int64 // and how many did at a time
	sees            atomic.Bool  // the framework's contexts end when a client leaves

	mu       sync.Mutex
	failures []error  // what the error handler was given, nil for what no handler returned
	faults   []string // what handlers and servers found wrong
}

func newProbe(patience time.Duration) *probe {
	return &probe{network: "tcp", patience: patience, entered: make(chan struct{}, manyTokens), proceed: make(chan struct{}, manyTokens),
		over: make(chan struct{})}
}

// manyTokens is more than any case has requests that hold on at a time.
const manyTokens = 1 << 10

// begin takes note of a handler that runs until the function it returns is called.
func (p *probe) begin() (end func()) {
	p.handled.Add(1)
	running := p.working.Add(1)
	for {
		most := p.most.Load()
		if running <= most || p.most.CompareAndSwap(most, running) {
			return func() { p.working.Add(-1) }
		}
	}
}

// wait returns when the case lets the caller go, or done is closed; false if neither happens.
func (p *probe) wait(done <-chan struct{}) bool {
	timer := time.NewTimer(p.patience)
	defer timer.Stop()
	select {
	case p.entered <- struct{}{}:
	default: // nobody counts any more
	}
	select {
	case <-p.proceed:
	case <-done:
	case <-p.over:
	case <-timer.C:
		return false
	}
	return true
}

// flushed takes note of a handler's attempt to flush.
func (p *probe) flushed(err error) {
	if err != nil && !p.leaving {
		p.fault("the handler could not flush: %v", err)
	}
}

func (p *probe) fault(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

// Listen returns the listener to serve on: TCP on loopback, or a unix socket. It is closed at the end of the case.
func (s Site) Listen(tb testing.TB) net.Listener {
	tb.Helper()
	address := "127.0.0.1:0"
	if s.probe.network == "unix" {
		dir, err := os.MkdirTemp("", "hg") // tb.TempDir is too long for the address of a socket
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = os.RemoveAll(dir) })
		address = filepath.Join(dir, "s")
	}
	ln, err := net.Listen(s.probe.network, address)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = ln.Close() })
	s.probe.listener = ln
	return ln
}

// The pieces of a stream. The second is sent when the client has the first.
const (
	firstPiece  = "data: one\n\n"
	secondPiece = "data: two\n\n"
)

// StreamType is the content type of a stream.
const StreamType = "text/event-stream"

// Stream writes the pieces of a stream to w and flushes each: the second when the client has the first.
func (s Site) Stream(w io.Writer, flush func() error) {
	send := func(piece string) {
		_, err := io.WriteString(w, piece)
		s.probe.flushed(errors.Join(err, flush()))
	}
	send(firstPiece)
	if !s.probe.wait(s.probe.flowing) {
		s.probe.fault("the client did not get what the handler flushed")
	}
	send(secondPiece)
}

// Endless writes the first piece of a stream to w, again and again, until it cannot: how a handler finds out that a client
// is gone where nobody tells it.
func (s Site) Endless(w io.Writer, flush func() error) {
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		_, err := io.WriteString(w, firstPiece)
		if err = errors.Join(err, flush()); err != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-s.probe.over:
			return
		}
	}
}

// File returns the path of a file of 10 MiB.
func (s Site) File() string { return s.probe.file }

// SwitchAndEcho plays the other end of a hijacked connection: it answers 101, sends one line back and closes.
func SwitchAndEcho(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	line, _ := bufio.NewReader(conn).ReadString('\n')
	_, _ = io.WriteString(conn, line)
	_ = conn.Close()
}
