package faulttest_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/headgate-go/headgate/conformance/faulttest"
	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/stores/redisscript"
)

// client is the simplest client that is right: a connection for each call at a time, closed after any failure. Its
// faults are those of the twins.
type client struct {
	addr   string
	faults faults

	mu     sync.Mutex
	free   []*redistest.Conn
	kept   []*redistest.Conn // of no use, and never closed
	closed bool
}

// newReference returns a store with such a client.
func newReference(tb testing.TB, addr string) driver.Store { return open(tb, addr, faults{}) }

func open(tb testing.TB, addr string, f faults) *redisscript.Store {
	c := &client{addr: addr, faults: f}
	tb.Cleanup(c.close)
	return redisscript.New(c)
}

func (c *client) close() {
	c.mu.Lock()
	c.closed = true
	c.free = append(c.free, c.kept...)
	c.mu.Unlock()
	c.drop()
}

func (c *client) EvalSHAs(ctx context.Context, sha string, calls []redisscript.Call) {
	for i, one := range calls {
		calls[i].Reply, calls[i].Err = c.EvalSHA(ctx, sha, one.Keys, one.Args)
	}
}

func (c *client) EvalSHA(ctx context.Context, sha string, keys, args []string) (string, error) {
	return c.eval(ctx, "EVALSHA", sha, keys, args)
}

func (c *client) Eval(ctx context.Context, script string, keys, args []string) (string, error) {
	if c.faults.neverLoads {
		return "", redistest.Error("NOSCRIPT and the text was not sent")
	}
	return c.eval(ctx, "EVAL", script, keys, args)
}

func (c *client) eval(ctx context.Context, command, script string, keys, args []string) (string, error) {
	all := append([]string{command, script, strconv.Itoa(len(keys))}, keys...)
	reply, err := c.do(ctx, append(all, args...))
	if err != nil {
		return "", err
	}
	text, ok := reply.(string)
	if !ok {
		return "", &driver.Error{Class: driver.ClassProtocol, Err: errors.New("the reply is not a string")}
	}
	return text, nil
}

func (c *client) Pipe(ctx context.Context, commands [][]string) (err error) {
	if c.faults.losesCommands {
		return nil
	}
	for _, command := range commands {
		_, failed := c.do(ctx, command)
		err = cmp.Or(err, failed)
	}
	return err
}

// do sends commands one after another on one connection, and returns what the last is answered.
func (c *client) do(ctx context.Context, commands ...[]string) (reply any, err error) {
	conn, err := c.get()
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	for _, command := range commands {
		if reply, err = conn.Do(command...); err != nil {
			break
		}
	}
	var answer redistest.Error
	if err != nil && !errors.As(err, &answer) {
		if c.faults.keepsConnections {
			c.keep(conn)
		} else {
			_ = conn.Close()
		}
		c.drop() // what happened to this one happened to the others
		var network net.Error
		if !errors.As(err, &network) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			err = &driver.Error{Class: driver.ClassProtocol, Err: err}
		}
		return nil, err
	}
	c.put(conn)
	return reply, err
}

func (c *client) get() (*redistest.Conn, error) {
	c.mu.Lock()
	if n := len(c.free); n > 0 {
		conn := c.free[n-1]
		c.free = c.free[:n-1]
		c.mu.Unlock()
		return conn, nil
	}
	c.mu.Unlock()
	return redistest.Dial(c.addr)
}

func (c *client) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.free {
		_ = conn.Close()
	}
	c.free = c.free[:0]
}

func (c *client) put(conn *redistest.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.free) > 0 {
		_ = conn.Close()
		return
	}
	c.free = append(c.free, conn)
}

func (c *client) keep(conn *redistest.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, conn)
}

// TestReference: the store without a fault is sound, or else the twins prove nothing.
func TestReference(t *testing.T) { faulttest.Run(t, newReference) }
