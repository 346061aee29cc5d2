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
	impatience = 100 * time.Millisecond
)

// probe is what a site's handlers tell the case that runs.
type probe struct {
	handled, behind atomic.Int64 // handlers, and the middleware behind the application's gates
	network         string
	patience        time.Duration
	listener        net.Listener
	received        chan struct{} // the client has the first piece of a stream
	file            string

	mu       sync.Mutex
	failures []error  // what the error handler was given, nil for what no handler returned
	faults   []string // what handlers and servers found wrong
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
		if err = errors.Join(err, flush()); err != nil {
			s.probe.fault("the handler could not flush: %v", err)
		}
	}
	send(firstPiece)
	timer := time.NewTimer(s.probe.patience)
	defer timer.Stop()
	select {
	case <-s.probe.received:
	case <-timer.C:
		s.probe.fault("the client did not get what the handler flushed")
	}
	send(secondPiece)
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
