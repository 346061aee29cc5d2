package redisscript

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
)

// testClient is a Client that speaks to a server over pooled connections of the test kit.
type testClient struct {
	addr string
	mu   sync.Mutex
	free []*redistest.Conn
}

func newClient(t testing.TB, addr string) *testClient {
	c := &testClient{addr: addr}
	t.Cleanup(func() {
		for _, conn := range c.free {
			_ = conn.Close()
		}
	})
	return c
}

func (c *testClient) EvalSHAs(ctx context.Context, sha string, calls []Call) {
	for i, one := range calls {
		calls[i].Reply, calls[i].Err = c.EvalSHA(ctx, sha, one.Keys, one.Args)
	}
}

func (c *testClient) EvalSHA(ctx context.Context, sha string, keys, args []string) (string, error) {
	return c.eval(ctx, "EVALSHA", sha, keys, args)
}

func (c *testClient) Eval(ctx context.Context, script string, keys, args []string) (string, error) {
	return c.eval(ctx, "EVAL", script, keys, args)
}

func (c *testClient) Pipe(ctx context.Context, commands [][]string) error {
	replies, err := c.pipe(ctx, commands...)
	for _, reply := range replies {
		if answer, ok := reply.(redistest.Error); ok && err == nil {
			err = answer
		}
	}
	return err
}

func (c *testClient) pipe(ctx context.Context, commands ...[]string) ([]any, error) {
	conn, err := c.get()
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	replies, err := conn.Pipe(commands...)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	c.put(conn)
	return replies, nil
}

func (c *testClient) eval(ctx context.Context, command, script string, keys, args []string) (string, error) {
	replies, err := c.pipe(ctx, evalCommand(command, script, keys, args))
	if err != nil {
		return "", err
	}
	if answer, ok := replies[0].(redistest.Error); ok {
		return "", answer
	}
	text, ok := replies[0].(string)
	if !ok {
		return "", &driver.Error{Class: driver.ClassProtocol, Err: errors.New("the reply is not a string")}
	}
	return text, nil
}

func (c *testClient) get() (*redistest.Conn, error) {
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

func (c *testClient) put(conn *redistest.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, conn)
}

func evalCommand(command, script string, keys, args []string) []string {
	out := append(make([]string, 0, 3+len(keys)+len(args)), command, script, strconv.Itoa(len(keys)))
	return append(append(out, keys...), args...)
}

// openStore returns a store on a server, with a timeout that a busy machine cannot exceed.
func openStore(t testing.TB, addr string, options ...Option) *Store {
	s := New(newClient(t, addr), append([]Option{WithTimeout(20 * time.Second)}, options...)...)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// subject returns a canonical key of its own for each test and name.
func subject(t testing.TB, name string) string {
	return string(driver.AppendSubject(driver.AppendSubject(nil, t.Name()), name))
}

// at is a moment of the test clock.
func at(seconds float64) time.Time { return time.UnixMicro(1_700_000_000_000_000 + int64(seconds*1e6)) }

// one asks for one claim.
func one(t testing.TB, s *Store, now time.Time, subject string, rule driver.Rule, cost int) driver.Result {
	t.Helper()
	batch := []driver.Entry{{Claims: []driver.Claim{{Policy: "p", Subject: subject, Rule: rule, Cost: cost}}}}
	if err := s.Decide(t.Context(), now, batch); err != nil {
		t.Fatal(err)
	}
	if err := batch[0].Err; err != nil {
		t.Fatal(err)
	}
	return batch[0].Claims[0].Result
}

func bucket(count int, period time.Duration, burst int) driver.Rule {
	return driver.NewBucket(count, period).WithBurst(burst)
}

// do sends a command to the server itself.
func do(t testing.TB, srv *redistest.Server, args ...string) any {
	t.Helper()
	reply, err := srv.Do(args...)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return reply
}
