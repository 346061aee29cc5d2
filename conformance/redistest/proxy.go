package redistest

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy is a TCP proxy on loopback in front of a server, which can misbehave. It starts in the mode of [Proxy.Pass].
// A mode can be changed at any time and holds for connections that are open as well as for new ones.
// All methods may be called from several goroutines.
type Proxy struct {
	addr, upstream string
	spares         bool // leaves connections of replicas alone

	mu       sync.Mutex
	mode     *mode
	listener net.Listener // nil while refusing
	links    map[*link]struct{}
	spared   map[*link]struct{}
	down     bool // the server is stopped, and the proxy with it
	closed   bool
	running  sync.WaitGroup

	connections, commands, bytesUp, bytesDown atomic.Int64
}

// mode is what happens to the traffic; it is replaced, never changed. The zero value passes everything.
type mode struct {
	silence, drop, refuse bool
	delay                 time.Duration
	cut                   int64 // bytes of replies before the connection is closed, where cutting is set
	cutting               bool
	garbage               string // raw reply, where it is not empty
	garbageFor            []string
}

// StartProxy starts a proxy in front of upstream (host:port). It ends with the test. It fails the test if it cannot listen.
func StartProxy(t testing.TB, upstream string) *Proxy {
	t.Helper()
	p, err := startProxy(t, upstream, false)
	if err != nil {
		t.Fatalf("redistest: proxy: %v", err)
	}
	return p
}

func startProxy(t testing.TB, upstream string, spares bool) (*Proxy, error) {
	// Not a port of the kernel's choice: an outgoing connection might take it while the proxy refuses.
	l, err := listenAnywhere()
	if err != nil {
		return nil, err
	}
	p := &Proxy{addr: l.Addr().String(), upstream: upstream, spares: spares, mode: &mode{},
		links: map[*link]struct{}{}, spared: map[*link]struct{}{}}
	p.mu.Lock()
	p.listen(l)
	p.mu.Unlock()
	t.Cleanup(p.close)
	return p, nil
}

// Addr returns host:port. It stays the same in every mode.
func (p *Proxy) Addr() string { return p.addr }

// Connections returns how many connections were accepted so far.
func (p *Proxy) Connections() int64 { return p.connections.Load() }

// Open returns how many connections are open now.
func (p *Proxy) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Commands returns how many commands clients sent so far, whatever became of them.
func (p *Proxy) Commands() int64 { return p.commands.Load() }

// Bytes returns how many bytes were received from clients, and how many were sent to them.
func (p *Proxy) Bytes() (up, down int64) { return p.bytesUp.Load(), p.bytesDown.Load() }

// Pass lets everything through.
func (p *Proxy) Pass() { p.set(&mode{}) }

// Refuse closes the listener, so that new connections are refused, and every open connection.
func (p *Proxy) Refuse() { p.set(&mode{refuse: true}) }

// Silence accepts connections and reads from them, and never answers: a black hole.
// A command that was swallowed is not sent later, and a reply that comes in meanwhile is lost.
func (p *Proxy) Silence() { p.set(&mode{silence: true}) }

// Drop closes open connections at once, and new ones on their first byte.
func (p *Proxy) Drop() { p.set(&mode{drop: true}) }

// Delay hands every reply on d later. Replies do not wait for each other, as on a long line.
func (p *Proxy) Delay(d time.Duration) { p.set(&mode{delay: d}) }

// Cut closes each connection after n more bytes of replies, which may be in the middle of one.
func (p *Proxy) Cut(n int) { p.set(&mode{cut: int64(n), cutting: true}) }

// Garbage answers each command with the given raw bytes instead of asking the server: "+OK\r\n", ":1\r\n", "$-1\r\n",
// "-LOADING wait\r\n". With names, only these commands are answered so, and the rest pass. A client that does not
// wait for one reply before it sends the next command may get them in another order.
func (p *Proxy) Garbage(reply string, commands ...string) {
	p.set(&mode{garbage: reply, garbageFor: commands})
}

// answers says whether the mode makes up the reply to a command.
func (m *mode) answers(command string) bool {
	if m.garbage == "" || len(m.garbageFor) == 0 {
		return m.garbage != ""
	}
	for _, name := range m.garbageFor {
		if strings.EqualFold(name, command) {
			return true
		}
	}
	return false
}

func (p *Proxy) set(m *mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.mode = m
	for l := range p.links {
		l.sent.Store(0)
	}
	p.adjust(m.refuse || m.drop)
}

// setDown makes the proxy of a node behave as the node's own port does when its process has ended, unless it is silent:
// whoever connects is refused. Some clients take a connection that is accepted and closed for a sign of life.
func (p *Proxy) setDown(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
	p.adjust(down && !p.mode.silence)
}

// adjust closes open connections, if told so, and listens if it should; p.mu is held.
func (p *Proxy) adjust(closing bool) {
	if closing {
		for l := range p.links {
			l.close()
		}
	}
	switch listening := !p.mode.refuse && (!p.down || p.mode.silence); {
	case !listening && p.listener != nil:
		_ = p.listener.Close()
		p.listener = nil
	case listening && p.listener == nil:
		p.relisten()
	}
}

// relisten opens the listener again; p.mu is held. Somebody's outgoing connection may hold the port for a moment.
func (p *Proxy) relisten() {
	poll(func() bool {
		l, err := net.Listen("tcp", p.addr)
		if err == nil {
			p.listen(l)
		}
		return err == nil
	})
}

// listen accepts connections from l; p.mu is held.
func (p *Proxy) listen(l net.Listener) {
	p.listener = l
	p.running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.connections.Add(1)
			p.serve(c)
		}
	})
}

// serve starts the two directions of a new connection.
func (p *Proxy) serve(client net.Conn) {
	l := &link{p: p, client: client, done: make(chan struct{}), up: make(chan net.Conn, 1)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.listener == nil {
		_ = client.Close()
		return
	}
	p.links[l] = struct{}{}
	p.running.Go(l.requests)
	p.running.Go(l.replies)
}

// passing is the mode of links that are spared.
var passing = &mode{}

func (p *Proxy) current(l *link) *mode {
	if l.spared.Load() {
		return passing
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode
}

// spare takes a link out of what modes concern and what is counted, unless it is closed.
func (p *Proxy) spare(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, open := p.links[l]; open {
		delete(p.links, l)
		p.spared[l] = struct{}{}
		l.spared.Store(true)
	}
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
	delete(p.spared, l)
}

func (p *Proxy) close() {
	p.set(&mode{refuse: true})
	p.mu.Lock()
	p.closed = true
	for l := range p.spared {
		l.close()
	}
	p.mu.Unlock()
	p.running.Wait()
}
