package redistest

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"
)

// client is a connection through the proxy that never waits for long.
func client(t *testing.T, p *Proxy) *Conn {
	t.Helper()
	conn, err := Dial(p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

func ping(t *testing.T, c *Conn) {
	t.Helper()
	if reply, err := c.Do("PING"); reply != "PONG" {
		t.Fatalf("PING: %v, %v", reply, err)
	}
}

func gone(t *testing.T, c *Conn) {
	t.Helper()
	if reply, err := c.Do("PING"); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the connection lives: %v, %v", reply, err)
	}
}

func silent(t *testing.T, c *Conn) {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(30 * time.Millisecond))
	if reply, err := c.Do("PING"); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("not silent: %v, %v", reply, err)
	}
	_ = c.SetDeadline(time.Now().Add(patience))
}

func TestProxyModes(t *testing.T) {
	t.Parallel()
	srv := Start(t, Single)
	p := StartProxy(t, srv.Addr())

	c := client(t, p)
	ping(t, c)
	if replies, err := c.Pipe([]string{"PING"}, []string{"ECHO", "x"}, []string{"NONSENSE"}); err != nil ||
		replies[0] != "PONG" || replies[1] != "x" || replies[2].(Error) == "" {
		t.Fatalf("pipeline: %v, %v", replies, err)
	}
	if up, down := p.Bytes(); p.Connections() != 1 || p.Open() != 1 || p.Commands() != 4 || up == 0 || down == 0 {
		t.Errorf("%d connections, %d open, %d commands, %d bytes up, %d down", p.Connections(), p.Open(), p.Commands(), up, down)
	}

	p.Silence()
	silent(t, c)
	silent(t, client(t, p))
	p.Pass()
	ping(t, c) // what was swallowed is not sent late

	p.Drop()
	gone(t, c)
	gone(t, client(t, p))
	p.Pass()

	c = client(t, p)
	ping(t, c)
	p.Refuse()
	gone(t, c)
	if _, err := Dial(p.Addr()); err == nil {
		t.Fatal("a refusing proxy accepts")
	}
	p.Pass()

	c = client(t, p)
	p.Cut(3)
	if reply, err := c.Do("PING"); !errors.Is(err, io.EOF) {
		t.Fatalf("cut: %v, %v", reply, err)
	}
	if n := c.r.Buffered(); n != 0 { // ReadBytes took the three bytes
		t.Errorf("%d bytes came late", n)
	}
	p.Pass()

	c = client(t, p)
	p.Garbage(":42\r\n", "ping")
	if reply, err := c.Do("PING"); reply != int64(42) {
		t.Fatalf("garbage: %v, %v", reply, err)
	}
	if reply, err := c.Do("ECHO", "x"); reply != "x" {
		t.Fatalf("another command: %v, %v", reply, err)
	}
	p.Garbage("-LOADING wait\r\n")
	if _, err := c.Do("ECHO", "x"); err == nil || err.Error() != "LOADING wait" {
		t.Fatalf("garbage for all: %v", err)
	}
	p.Pass()
	ping(t, c)
}

func TestProxyDelay(t *testing.T) {
	t.Parallel()
	p := StartProxy(t, Start(t, Single).Addr())
	c := client(t, p)
	ping(t, c)
	const delay = 60 * time.Millisecond
	p.Delay(delay)
	start := time.Now()
	done := make(chan bool)
	for range 5 { // side by side on connections of their own
		c := client(t, p)
		go func() {
			for range 2 {
				_, _ = c.Do("PING")
			}
			done <- true
		}()
	}
	for range 5 {
		<-done
	}
	if took := time.Since(start); took < 2*delay {
		t.Errorf("two round trips took %v", took)
	}
	p.Pass()
	ping(t, c)
}

func TestProxyServerGone(t *testing.T) {
	t.Parallel()
	srv := Start(t, Single)
	p := StartProxy(t, srv.Addr())
	c := client(t, p)
	ping(t, c)
	srv.Stop()
	gone(t, c)
	gone(t, client(t, p))
	p.Silence()
	silent(t, client(t, p)) // silent although nobody is behind it
	p.Pass()
	srv.Restart()
	ping(t, client(t, p))
}
