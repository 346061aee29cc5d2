package adaptertest

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/headgate-go/headgate/core/gate"
)

// another keeps a client of the case's site, to be closed with the case.
func (x *exam) another(c *client) *client {
	x.clients = append(x.clients, c)
	return c
}

func (x *exam) fresh() *client { return x.another(x.client.twin()) }

// pending is a request of a client of its own, on which the handler holds on.
type pending struct {
	x    *exam
	r    request
	res  *response
	err  error
	done chan struct{}
}

// start sends requests for a handler that holds on, one after the other: each is with its handler when the next is sent.
func (x *exam) start(n int, r request) (list []*pending) {
	for range n {
		p := &pending{x: x, r: r, done: make(chan struct{})}
		x.pending = append(x.pending, p)
		c := x.client.twin()
		go func() {
			defer close(p.done)
			defer c.close()
			p.res, p.err = c.do(r)
		}()
		x.entered(1)
		list = append(list, p)
	}
	return list
}

// leave sends a request for a handler that holds on, and returns a client that can be gone.
func (x *exam) leave(r request) *client {
	c := x.fresh()
	if err := c.post(r); err != nil {
		x.failf("%s: %v", r, err)
	}
	x.entered(1)
	return c
}

// entered waits until handlers hold on.
func (x *exam) entered(n int) {
	timer := time.NewTimer(x.probe.patience)
	defer timer.Stop()
	for range n {
		select {
		case <-x.probe.entered:
		case <-timer.C:
			x.failf("a handler that should run does not")
			runtime.Goexit()
		}
	}
}

// letGo lets handlers that hold on, or streams, go on.
func (x *exam) letGo(n int) {
	for range n {
		x.probe.proceed <- struct{}{}
	}
}

// reply waits for the response.
func (p *pending) reply() *reply {
	if <-p.done; p.err != nil {
		p.x.failf("%s: no response: %v", p.r, p.err)
		runtime.Goexit()
	}
	return &reply{response: *p.res, x: p.x, r: p.r}
}

// recorded is reply, in the transcript.
func (p *pending) recorded() *reply {
	res := p.reply()
	p.x.record(p.r, &res.response)
	return res
}

// stream is a response that goes on, of a client of its own.
type stream struct {
	reply
	c    *client
	body io.Reader
}

// open begins a stream and reads its head and its first piece.
func (x *exam) open(r request) *stream {
	s := &stream{reply: reply{x: x, r: r}, c: x.fresh()}
	res, body, err := s.c.begin(r)
	first := make([]byte, len(firstPiece))
	if err == nil {
		s.response, s.body = *res, body
		_, err = io.ReadFull(body, first)
	}
	if err != nil || string(first) != firstPiece {
		x.failf("%s: status %d, the first piece is %q, %v", r, s.status, first, err)
		runtime.Goexit()
	}
	return s
}

// end reads the rest.
func (s *stream) end() *reply {
	rest, err := io.ReadAll(s.body)
	s.response.body, s.cut = append([]byte(firstPiece), rest...), err != nil
	return &s.reply
}

// upgrade is a connection that a handler took over; false where the framework cannot do that.
func (x *exam) upgrade(target string) (*stream, bool) {
	s := &stream{reply: reply{x: x, r: ask(target, "Connection", "Upgrade", "Upgrade", "echo")}, c: x.fresh()}
	res, _, err := s.c.begin(s.r)
	if err != nil {
		x.failf("%s: no response: %v", s.r, err)
		runtime.Goexit()
	}
	s.response = *res
	return s, x.available(res, "taking a connection over")
}

// echo has the other end of an upgraded connection repeat a line and close.
func (s *stream) echo() {
	_, _ = io.WriteString(s.c.conn, "over to you\n")
	if line, err := s.c.line(); line != "over to you" {
		s.failf("the connection says %q, %v", line, err)
	}
	if rest, err := io.ReadAll(s.c.in); len(rest) > 0 {
		s.failf("%q was written to a hijacked connection (%v)", rest, err)
	}
}

// slots is a limiter of n requests of a client at a time.
func slots(n int) gate.ConcurrentRequests { return gate.ConcurrentRequests{Name: "slots", Max: n} }

// clientKey is the key of slots that every case's client has.
const clientKey = "127.0.0.1"

// left reads how many slots are free.
func (x *exam) left(g *gate.Gate, policy, key string) int {
	d, err := g.Usage(context.Background(), policy, key)
	if err != nil {
		x.failf("Usage: %v", err)
	}
	return d.Remaining
}

// holds checks that exactly n of the client's slots are taken, now.
func (x *exam) holds(g *gate.Gate, policy string, n, limit int) {
	if left := x.left(g, policy, clientKey); left != limit-n {
		x.failf("%s: %d of %d slots are taken; want %d", policy, limit-left, limit, n)
	}
}

// frees checks that soon no more than n of the client's slots are taken: a request is over a little after its response.
func (x *exam) frees(g *gate.Gate, policy string, n, limit int) {
	deadline := time.Now().Add(x.probe.patience)
	for x.left(g, policy, clientKey) != limit-n {
		if time.Now().After(deadline) {
			x.holds(g, policy, n, limit)
			return
		}
		<-time.After(time.Millisecond)
	}
}

// balanced checks that soon every slot that was taken was given back, and none twice.
func (x *exam) balanced() {
	held, least := x.watch.settled(x.probe.patience)
	if held != 0 || least < 0 {
		x.failf("the observer counts %d slots held at the end, %d at the least; want 0 of both", held, least)
	}
}

// ended returns how often slots ended so.
func (x *exam) ended(how gate.LeaseEnd) int {
	x.watch.mu.Lock()
	defer x.watch.mu.Unlock()
	return x.watch.ends[how.String()]
}

// describeEnds says how often slots ended in which way.
func (x *exam) describeEnds() string {
	x.watch.mu.Lock()
	defer x.watch.mu.Unlock()
	return fmt.Sprint(x.watch.ends)
}

// limitTypeSlots is what bodies say of a gate.ConcurrentRequests.
const limitTypeSlots = "concurrent_requests"

// crowded checks the 429 of slots.
func (p *reply) crowded(limit, reset, retryAfter int) *reply {
	return p.is(429).budget(limit, 0, reset).has(fieldRetryAfter, fmt.Sprint(retryAfter)).
		problemOf(limitTypeSlots, "rate_limit_error", retryAfter).says(fmt.Sprintf(
		"Concurrent request limit exceeded: %d requests in flight. Wait for one to finish; retry after %ds.", limit, retryAfter))
}
