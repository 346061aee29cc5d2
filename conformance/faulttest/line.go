package faulttest

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// line is a TCP line to a server that can go dead: no byte and no new connection comes through, and nobody is told. When
// it works again everything arrives late, as TCP repeats what was not confirmed: what a firewall that drops packets does.
type line struct {
	listener *net.TCPListener
	upstream string
	running  sync.WaitGroup
	open     atomic.Int64 // connections

	mu     sync.Mutex
	works  chan struct{} // closed while the line works
	fill   []net.Conn    // what fills the listener's queue while it does not
	ends   map[net.Conn]struct{}
	closed bool
	parked chan struct{} // receives when the listener has stopped accepting
}

// blackHole starts a server behind a line, and returns the line's address.
func (s *scene) blackHole() string {
	upstream := s.direct()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.fatalf("listen: %v", err)
	}
	works := make(chan struct{})
	close(works)
	s.line = &line{listener: l.(*net.TCPListener), upstream: upstream, works: works,
		ends: map[net.Conn]struct{}{}, parked: make(chan struct{})}
	s.line.running.Go(s.line.accept)
	s.tb.Cleanup(s.line.close)
	return l.Addr().String()
}

func (l *line) accept() {
	for {
		l.wait()
		c, err := l.listener.Accept()
		switch {
		case err == nil:
			l.running.Go(func() { l.serve(c) })
		case errors.Is(err, os.ErrDeadlineExceeded):
			l.parked <- struct{}{}
		default:
			return
		}
	}
}

// wait returns when the line works.
func (l *line) wait() {
	l.mu.Lock()
	works := l.works
	l.mu.Unlock()
	<-works
}

func (l *line) serve(client net.Conn) {
	l.open.Add(1)
	defer l.open.Add(-1)
	server, err := net.Dial("tcp", l.upstream)
	if err != nil {
		_ = client.Close()
		return
	}
	l.mu.Lock()
	l.ends[client], l.ends[server] = struct{}{}, struct{}{}
	closed := l.closed
	l.mu.Unlock()
	if closed {
		_ = client.Close()
		_ = server.Close()
	}
	l.running.Go(func() { l.pump(client, server) })
	l.pump(server, client)
}

func (l *line) pump(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		l.wait()
		if n > 0 && err == nil {
			_, err = to.Write(buf[:n])
		}
		if err != nil {
			_ = to.Close()
			_ = from.Close()
			return
		}
	}
}

// die makes the line dead.
func (l *line) die() error {
	l.mu.Lock()
	l.works = make(chan struct{})
	l.mu.Unlock()
	if err := l.listener.SetDeadline(time.Unix(1, 0)); err != nil {
		return err
	}
	<-l.parked
	// A listener whose queue is full drops the packets of new connections.
	if err := setBacklog(l.listener, 0); err != nil {
		return err
	}
	for range 16 {
		c, err := net.DialTimeout("tcp", l.listener.Addr().String(), 50*time.Millisecond)
		if err != nil {
			return nil
		}
		l.fill = append(l.fill, c)
	}
	return errors.New("the listener's queue does not fill up")
}

// live makes the line work again.
func (l *line) live() error {
	for _, c := range l.fill {
		_ = c.Close()
	}
	l.fill = nil
	if err := setBacklog(l.listener, 128); err != nil {
		return err
	}
	if err := l.listener.SetDeadline(time.Time{}); err != nil {
		return err
	}
	l.mu.Lock()
	close(l.works)
	l.mu.Unlock()
	return nil
}

func (l *line) close() {
	l.mu.Lock()
	l.closed = true
	for c := range l.ends {
		_ = c.Close()
	}
	select {
	case <-l.works:
	default:
		close(l.works)
	}
	l.mu.Unlock()
	for _, c := range l.fill {
		_ = c.Close()
	}
	_ = l.listener.Close()
	l.running.Wait()
}
