package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// node is a redis-server of the cluster. It keeps nothing on disk but what it knows of the others.
type node struct {
	port, bus int
	id        string
	cmd       *exec.Cmd
	ended     chan struct{}
	admin     *redis.Client // for the operator's commands, not for limits
}

// serverProgram finds the server's program. Debian's redis-tools has it under the name redis-check-rdb: the program looks at the
// name that it is called by.
func serverProgram() (string, error) {
	if path := os.Getenv("HEADGATE_REDIS_SERVER"); path != "" {
		return path, nil
	}
	for _, name := range []string{"redis-server", "redis-check-rdb"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("redis-server is not installed; on Debian: apt-get install redis-server, on macOS: brew install redis")
}

// startNode returns when the server answers.
func startNode(ctx context.Context, program, dir string) (n *node, err error) {
	// Between looking for free ports and the server's bind anybody may take them; then others are tried.
	for range 5 {
		n = &node{ended: make(chan struct{})}
		if n.port, n.bus, err = freePorts(); err != nil {
			return nil, err
		}
		if err = n.start(ctx, program, filepath.Join(dir, strconv.Itoa(n.port))); err == nil {
			return n, nil
		}
		n.kill()
	}
	return nil, err
}

func (n *node) start(ctx context.Context, program, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	n.cmd = &exec.Cmd{Path: program, Args: []string{"redis-server", "--bind", "127.0.0.1", "--port", strconv.Itoa(n.port),
		"--dir", dir, "--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0",
		"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(n.bus),
		// A primary is held for dead after a second; the default is 15. The tenants of the others keep their limits meanwhile:
		// by default a cluster with a part of it missing answers nobody.
		"--cluster-node-timeout", "1000", "--cluster-require-full-coverage", "no"}}
	if err := n.cmd.Start(); err != nil {
		n.cmd = nil
		return err
	}
	go func() {
		_ = n.cmd.Wait() // killed, as it should be
		close(n.ended)
	}()
	n.admin = redis.NewClient(&redis.Options{Addr: n.addr(), ContextTimeoutEnabled: true})
	return await(ctx, 10*time.Second, func() (err error) {
		select {
		case <-n.ended:
			return fatal{fmt.Errorf("the redis-server for port %d ended at once", n.port)}
		default:
		}
		n.id, err = n.text(ctx, "CLUSTER", "MYID")
		return err
	})
}

func (n *node) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(n.port)) }

// text asks the node, and says who was asked what if that fails.
func (n *node) text(ctx context.Context, args ...any) (string, error) {
	reply, err := n.admin.Do(ctx, args...).Result()
	if err != nil {
		return "", fmt.Errorf("%v on port %d: %w", args, n.port, err)
	}
	return fmt.Sprint(reply), nil
}

// kill ends the process, as a crash would. A second time does nothing.
func (n *node) kill() {
	if n.cmd != nil {
		_ = n.cmd.Process.Kill()
		<-n.ended
	}
	if n.admin != nil {
		_ = n.admin.Close()
	}
}

// freePorts returns two ports that are free at the moment, below the range from which outgoing connections take theirs.
func freePorts() (a, b int, err error) {
	var free []int
	for range 100 {
		ln, e := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(20000+rand.IntN(12000)))
		if e != nil {
			err = e
			continue
		}
		defer func() { _ = ln.Close() }()
		if free = append(free, ln.Addr().(*net.TCPAddr).Port); len(free) == 2 {
			return free[0], free[1], nil
		}
	}
	return 0, 0, err
}

// fatal is an error that does not go away by waiting.
type fatal struct{ error }

// await asks until nothing is missing.
func await(ctx context.Context, within time.Duration, missing func() error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := missing()
		if err == nil || errors.As(err, new(fatal)) {
			return err
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) { // Ctrl-C
				return ctx.Err()
			}
			return fmt.Errorf("after %v: %w", within, err)
		case <-ticker.C:
		}
	}
}
