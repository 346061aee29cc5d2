package redistest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Topology is what [Start] builds.
type Topology int

const (
	// Single is one server. It is also what the zero value means.
	Single Topology = iota
	// Replica is a primary and one replica of it, in sync when Start returns.
	Replica
)

// String returns the topology's name, as tests name their subtests.
func (t Topology) String() string {
	switch t {
	case Single:
		return "single"
	case Replica:
		return "replica"
	}
	return "topology " + strconv.Itoa(int(t))
}

// Option changes how the servers of a topology are started.
type Option func(*options)

type options struct{ args []string }

// WithArgs adds arguments to the command line of every server: WithArgs("--maxmemory", "2mb").
// They come after the kit's own, so that they win.
func WithArgs(args ...string) Option {
	return func(o *options) { o.args = append(o.args, args...) }
}

// patience bounds every wait of the kit: starting, restarting, replication, one command.
// It is generous because the machine may be shared; nothing waits for it when all is well.
const patience = 20 * time.Second

// Server is one server process. The other processes of its topology are its peers.
// Its methods may be called from several goroutines, but Stop, Restart, Pause and Resume of one server only one at a time.
type Server struct {
	t     testing.TB
	dir   string
	args  []string
	peers []*Server

	mu   sync.Mutex
	port int
	proc *process
	conn *Conn // the kit's own, for Do; opened on demand
}

// Start starts the servers of a topology and returns the one to talk to: for [Replica] the primary.
// They are killed when the test ends; if it failed, their logs are shown. Start fails the test if it cannot do its work.
func Start(t testing.TB, topology Topology, opts ...Option) *Server {
	t.Helper()
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	switch topology {
	case Single:
		return startOne(t, o.args)
	case Replica:
		primary := startOne(t, o.args)
		args := []string{"--replicaof", "127.0.0.1 " + strconv.Itoa(primary.port)}
		replica := startOne(t, append(args, o.args...))
		replica.awaitSync()
		primary.peers, replica.peers = []*Server{replica}, []*Server{primary}
		return primary
	}
	t.Fatalf("redistest: %v is not built yet", topology)
	return nil
}

// Addr returns host:port. It stays the same over Stop and Restart.
func (s *Server) Addr() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// Peers returns the other servers of the topology: of a primary its replica, and the other way round.
func (s *Server) Peers() []*Server { return s.peers }

// Do sends one command over a connection that belongs to the server, and returns the reply: string, int64, nil or
// []any. A reply that is an error is returned as an [Error]; any other error means that the server could not be asked.
func (s *Server) Do(args ...string) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		conn, err := Dial(s.Addr())
		if err != nil {
			return nil, err
		}
		s.conn = conn
	}
	if err := s.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	reply, err := s.conn.Do(args...)
	var answer Error
	if err != nil && !errors.As(err, &answer) {
		s.disconnect()
	}
	return reply, err
}

// Stop kills the process, as a crash would. The data is gone: nothing is kept on disk.
func (s *Server) Stop() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disconnect()
	s.proc.kill()
}

// Restart starts the server again on its port, empty, after killing it if it still runs.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	var err error
	// Somebody's outgoing connection may hold the port for a moment.
	if !poll(func() bool {
		err = s.launch()
		return !errors.Is(err, errPortTaken)
	}) || err != nil {
		s.t.Fatalf("redistest: restart on port %d: %v", s.port, err)
	}
}

// Pause stops the process where it is (SIGSTOP): connections stay open and are accepted, and nothing answers.
func (s *Server) Pause() {
	s.t.Helper()
	if err := s.proc.pause(); err != nil {
		s.t.Fatalf("redistest: pause: %v", err)
	}
}

// Resume lets a paused process go on (SIGCONT).
func (s *Server) Resume() {
	s.t.Helper()
	if err := s.proc.resume(); err != nil {
		s.t.Fatalf("redistest: resume: %v", err)
	}
}

func startOne(t testing.TB, args []string) *Server {
	t.Helper()
	s := &Server{t: t, dir: t.TempDir(), args: args}
	t.Cleanup(s.cleanup)
	// Between looking for a free port and the server's bind anybody may take it; then another one is tried.
	var err error
	for range 50 {
		if s.port, err = freePort(); err != nil {
			continue
		}
		if err = s.launch(); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		t.Fatalf("redistest: start: %v", err)
	}
	return s
}

func (s *Server) cleanup() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disconnect()
	if s.proc == nil {
		return
	}
	s.proc.kill()
	if s.t.Failed() {
		s.t.Logf("redistest: log of the server on port %d:\n%s", s.port, s.proc.log)
	}
}

// listenAnywhere listens on a port below the range from which the kernel takes ports for outgoing connections, with room
// for a cluster bus 10,000 above it.
func listenAnywhere() (l net.Listener, err error) {
	for range 50 {
		l, err = net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(20000+rand.IntN(12000)))
		if err == nil {
			return l, nil
		}
	}
	return nil, err
}

// freePort returns a port that is free at the moment.
func freePort() (int, error) {
	l, err := listenAnywhere()
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

var errPortTaken = errors.New("the port is taken")

// launch starts a process on s.port and returns when it answers.
func (s *Server) launch() error {
	args := append([]string{
		"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir, "--daemonize", "no",
		"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0",
	}, s.args...)
	proc, err := startProcess(args)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.proc = proc
	s.mu.Unlock()
	var last error
	answers := poll(func() bool {
		if proc.ended() {
			return true
		}
		// Only our own process counts: if another server took the port first, it would answer as well.
		info, err := s.Do("INFO", "server")
		text, _ := info.(string)
		last = err
		return err == nil && infoField(text, "process_id") == strconv.Itoa(proc.pid())
	})
	switch {
	case proc.ended() && strings.Contains(proc.log.String(), "Address already in use"):
		return errPortTaken
	case proc.ended():
		return fmt.Errorf("the process ended:\n%s", proc.log)
	case !answers:
		proc.kill()
		return fmt.Errorf("no answer within %v (%v):\n%s", patience, last, proc.log)
	}
	return nil
}

func (s *Server) awaitSync() {
	s.t.Helper()
	if !poll(func() bool {
		info, _ := s.Do("INFO", "replication")
		text, _ := info.(string)
		return infoField(text, "master_link_status") == "up"
	}) {
		s.t.Fatalf("redistest: the replica on port %d is not in sync after %v", s.port, patience)
	}
}

// disconnect drops the kit's connection; s.mu is held.
func (s *Server) disconnect() {
	if s.conn != nil {
		_ = s.conn.Close()
		s.conn = nil
	}
}

// poll asks until ok is true, and says whether it was before patience ran out.
func poll(ok func() bool) bool {
	ticker := time.NewTicker(3 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(patience); ; <-ticker.C {
		if ok() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}
