package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"
)

// redisServer is a redis-server of our own on a free loopback port; it writes nothing to disk.
type redisServer struct {
	program, addr string
	cmd           *exec.Cmd
}

func newRedis() (*redisServer, error) {
	program, err := startable("redis-server")
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer func() { _ = ln.Close() }()
	return &redisServer{program: program, addr: ln.Addr().String()}, nil
}

func (s *redisServer) url() string { return "redis://" + s.addr }

// start returns when the server accepts connections.
func (s *redisServer) start() error {
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return err
	}
	s.cmd = exec.Command(s.program, "--bind", host, "--port", port, "--save", "", "--appendonly", "no", "--dir", os.TempDir())
	if err := s.cmd.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for {
		conn, err := net.Dial("tcp", s.addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			s.stop()
			return fmt.Errorf("redis-server does not answer at %s: %w", s.addr, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop kills it, as an outage would.
func (s *redisServer) stop() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait() // killed, as it should be
		s.cmd = nil
	}
}
