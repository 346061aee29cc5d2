package redistest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// link is one proxied connection. The server is dialled when the first command is passed on, so that a proxy can be
// silent in front of a server that is gone.
type link struct {
	p      *Proxy
	client net.Conn
	up     chan net.Conn // the server's connection, once, for replies
	sent   atomic.Int64  // bytes of replies since the mode was set
	spared atomic.Bool   // it is a replica's, which the proxy leaves alone

	once   sync.Once
	done   chan struct{}
	write  sync.Mutex // made-up and real replies
	server atomic.Pointer[net.TCPConn]
}

func (l *link) close() {
	l.once.Do(func() {
		close(l.done)
		_ = l.client.Close()
		if c := l.server.Load(); c != nil {
			_ = c.Close()
		}
	})
}

// requests reads the client's commands one by one and does with them what the mode says.
func (l *link) requests() {
	defer l.p.forget(l)
	defer l.close()
	r := bufio.NewReader(l.client)
	for {
		if _, err := r.Peek(1); err != nil || l.p.current(l).drop {
			return
		}
		raw, name, err := readCommand(r)
		if err != nil {
			return
		}
		// What a replica says after its first words: a PING, and AUTH where there is a password.
		if l.p.spares && (strings.EqualFold(name, "REPLCONF") || strings.EqualFold(name, "PSYNC")) {
			l.p.spare(l)
		}
		if !l.spared.Load() {
			l.p.bytesUp.Add(int64(len(raw)))
			l.p.commands.Add(1)
		}
		switch m := l.p.current(l); {
		case m.drop:
			return
		case m.silence:
		case m.answers(name):
			if !l.answer(m, []byte(m.garbage)) {
				return
			}
		default:
			if !l.forward(raw) {
				return
			}
		}
	}
}

func (l *link) forward(raw []byte) bool {
	c := l.server.Load()
	if c == nil {
		conn, err := net.DialTimeout("tcp", l.p.upstream, patience)
		if err != nil {
			return false
		}
		c = conn.(*net.TCPConn)
		l.server.Store(c)
		select {
		case <-l.done: // closed meanwhile: close may have missed it
			_ = c.Close()
			return false
		default:
		}
		l.up <- c
	}
	_, err := c.Write(raw)
	return err == nil
}

// chunk is a piece of the server's replies and when to hand it on.
type chunk struct {
	data []byte
	due  time.Time
}

// replies hands on what the server says, each piece when it is due.
func (l *link) replies() {
	var server net.Conn
	select {
	case server = <-l.up:
	case <-l.done:
		return
	}
	line := make(chan chunk, 1024)
	l.p.running.Go(func() { l.deliver(line) })
	defer close(line)
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if n > 0 {
			c := chunk{data: bytes.Clone(buf[:n]), due: time.Now().Add(l.p.current(l).delay)}
			select {
			case line <- c:
			case <-l.done:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (l *link) deliver(line <-chan chunk) {
	defer l.close() // the server closed: what it said last was handed on first
	for c := range line {
		if wait := time.Until(c.due); wait > 0 {
			select {
			case <-time.After(wait):
			case <-l.done:
				return
			}
		}
		if !l.answer(l.p.current(l), c.data) {
			return
		}
	}
}

// answer writes to the client what the mode lets through, and says whether the connection goes on.
func (l *link) answer(m *mode, data []byte) bool {
	l.write.Lock()
	defer l.write.Unlock()
	if m.silence {
		return true
	}
	if m.cutting {
		data = data[:min(int64(len(data)), max(0, m.cut-l.sent.Load()))]
	}
	// Counted first: who has got a reply finds it counted.
	spared := l.spared.Load()
	if !spared {
		l.p.bytesDown.Add(int64(len(data)))
	}
	n, err := l.client.Write(data)
	if !spared {
		l.p.bytesDown.Add(int64(n - len(data)))
	}
	if sent := l.sent.Add(int64(n)); err != nil || m.cutting && sent >= m.cut {
		l.close()
		return false
	}
	return true
}

// readCommand reads one whole command, and returns its bytes and its name.
func readCommand(r *bufio.Reader) (raw []byte, name string, err error) {
	raw, err = r.ReadBytes('\n')
	if err != nil {
		return nil, "", err
	}
	if raw[0] != '*' { // inline, as typed into a terminal
		name, _, _ = strings.Cut(strings.TrimSpace(string(raw)), " ")
		return raw, name, nil
	}
	count, err := strconv.Atoi(strings.TrimSpace(string(raw[1:])))
	if err != nil {
		return nil, "", err
	}
	for i := range count {
		head, err := r.ReadBytes('\n')
		if err != nil {
			return nil, "", err
		}
		size, err := strconv.Atoi(strings.TrimSpace(string(head[1:])))
		if err != nil {
			return nil, "", err
		}
		if size < 0 || size > 1<<26 {
			return nil, "", errors.New("redistest: not a command")
		}
		body := make([]byte, size+2)
		if _, err := io.ReadFull(r, body); err != nil {
			return nil, "", err
		}
		raw = append(append(raw, head...), body...)
		if i == 0 {
			name = string(body[:size])
		}
	}
	return raw, name, nil
}
