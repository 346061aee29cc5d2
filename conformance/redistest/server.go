package redistest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is one server process. The other processes of its topology are its peers.
// Its methods may be called from several goroutines, but Stop, Restart, Pause and Resume of one server only one at a time.
type Server struct {
	t         testing.TB
	dir       string
	plan      plan
	peers     []*Server
	nodes     *Nodes
	sentinels *Sentinels
	proxy     *Proxy
	bus       int    // the port of the cluster bus
	id        string // in the cluster
	shard     int    // the same

	port int

	life   sync.Mutex // of the two below; never held while a server is asked, which may take long
	proc   *process
	paused bool

	mu   sync.Mutex
	conn *Conn // the kit's own, for Do; opened on demand
}

// plan is how a server is started, and started again.
type plan struct {
	args   []string
	bus    bool                 // it is a node of a cluster
	config func(*Server) string // the text of a sentinel's configuration file
	ready  func(*Server) error  // is called whenever it was started
}

// Addr returns host:port. It stays the same over Stop and Restart.
func (s *Server) Addr() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// Peers returns the other servers of the topology: of a primary its replica, and the other way round; of a node all the
// others. Sentinels are nobody's peers.
func (s *Server) Peers() []*Server { return s.peers }

// Nodes returns the cluster that the server belongs to; nil in other topologies.
func (s *Server) Nodes() *Nodes { return s.nodes }

// Sentinels returns the sentinels that watch the server; nil in other topologies.
func (s *Server) Sentinels() *Sentinels { return s.sentinels }

// Proxy returns the proxy in front of a node that was started with [WithProxies]; nil for other servers.
func (s *Server) Proxy() *Proxy { return s.proxy }

// PID returns the number of the process, which Restart changes.
func (s *Server) PID() int {
	s.life.Lock()
	defer s.life.Unlock()
	return s.proc.pid()
}

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
		_ = s.conn.Close()
		s.conn = nil
	}
	return reply, err
}

// text is Do for replies that are text; the error tells who was asked what.
func (s *Server) text(args ...string) (string, error) {
	reply, err := s.Do(args...)
	if err != nil {
		return "", fmt.Errorf("%q on port %d: %w", args, s.port, err)
	}
	text, _ := reply.(string)
	return text, nil
}

// Stop kills the process, as a crash would. The data is gone: nothing is kept on disk but what a node knows of its
// cluster, and a sentinel of the servers that it watches.
func (s *Server) Stop() {
	s.life.Lock()
	s.proc.kill()
	s.life.Unlock()
	s.disconnect()
	if s.proxy != nil {
		s.proxy.setDown(true)
	}
}

// Restart starts the server again on its port, empty, after killing it if it still runs. A node has its identity in the
// cluster still: a primary whose replica took over becomes the replica; one that is back before that is an empty primary,
// and so is its replica.
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
	s.signal("pause", (*process).pause, true)
}

// Resume lets a paused process go on (SIGCONT).
func (s *Server) Resume() {
	s.t.Helper()
	s.signal("resume", (*process).resume, false)
}

func (s *Server) signal(name string, send func(*process) error, paused bool) {
	s.t.Helper()
	s.life.Lock()
	defer s.life.Unlock()
	if err := send(s.proc); err != nil {
		s.t.Fatalf("redistest: %s: %v", name, err)
	}
	s.paused = paused
}

// start starts the server for the first time.
func (s *Server) start() (err error) {
	// Between looking for a free port and the server's bind anybody may take it; then another one is tried.
	for range 50 {
		if s.port, err = freePort(); err != nil {
			continue
		}
		if s.plan.bus {
			if s.bus, err = freePort(); err != nil {
				continue
			}
		}
		if s.plan.config != nil {
			if err := os.WriteFile(s.configFile(), []byte(s.plan.config(s)), 0o600); err != nil {
				return err
			}
		}
		if err = s.launch(); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}

func (s *Server) cleanup() {
	if s.proc == nil {
		return
	}
	s.Stop()
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

func (s *Server) configFile() string { return filepath.Join(s.dir, "redis.conf") }

// commandLine returns the arguments of the program.
func (s *Server) commandLine() []string {
	if s.plan.config != nil {
		return []string{s.configFile(), "--sentinel"}
	}
	args := []string{
		"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir, "--daemonize", "no",
		"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0",
	}
	if s.plan.bus {
		args = append(args, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(s.bus))
	}
	if s.proxy != nil {
		for _, setting := range s.announcement() {
			args = append(args, "--"+setting[0], setting[1])
		}
	}
	return append(args, s.plan.args...)
}

// launch starts a process on s.port and returns when it answers.
func (s *Server) launch() error {
	s.disconnect() // perhaps from somebody else's server, on a port that was taken
	proc, err := startProcess(s.commandLine())
	if err != nil {
		return err
	}
	s.life.Lock()
	s.proc, s.paused = proc, false
	s.life.Unlock()
	var last error
	answers := poll(func() bool {
		if proc.ended() {
			return true
		}
		// Only our own process counts: if another server took the port first, it would answer as well.
		info, err := s.text("INFO", "server")
		last = err
		return err == nil && infoField(info, "process_id") == strconv.Itoa(proc.pid())
	})
	switch {
	case proc.ended() && strings.Contains(proc.log.String(), "Address already in use"):
		return errPortTaken
	case proc.ended():
		return fmt.Errorf("the process ended:\n%s", proc.log)
	case !answers:
		proc.kill()
		return fmt.Errorf("no answer within %v (%v):\n%s", patience, last, proc.log)
	case s.plan.ready != nil:
		return s.plan.ready(s)
	}
	return nil
}

// inSync says what a replica lacks.
func (s *Server) inSync() error {
	info, err := s.text("INFO", "replication")
	if err != nil {
		return err
	}
	if link := infoField(info, "master_link_status"); link != "up" {
		return fmt.Errorf("the replica on port %d has the link %q to its primary", s.port, link)
	}
	return nil
}

// disconnect drops the kit's connection.
func (s *Server) disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		_ = s.conn.Close()
		s.conn = nil
	}
}
