package redisscript

import (
	"context"
	"strconv"

	"github.com/headgate-go/headgate/core/driver"
)

// call is what goes into one call of the script, and the memory that it takes to make one, used again.
type call struct {
	jobs     []*job
	slot     int // of its keys, in a cluster
	claims   int
	requests []*request
	pack     pack
	args     [2]string
	argv     []string // the args in use
	err      error
}

// deal puts jobs into calls, as few as hold them: a call has so many claims and, in a cluster, the keys of one slot.
func (s *sender) deal(jobs []*job) {
	s.calls = s.calls[:0]
	for _, j := range jobs {
		c := s.callFor(j)
		c.jobs, c.requests = append(c.jobs, j), append(c.requests, &j.request)
		c.claims += len(j.request.claims)
	}
}

func (s *sender) callFor(j *job) *call {
	n := len(j.request.claims)
	for i := len(s.calls) - 1; i >= 0; i-- {
		if c := s.calls[i]; c.slot == j.slot && c.claims+n <= s.queue.pack {
			return c
		}
	}
	if len(s.calls) < cap(s.calls) {
		s.calls = s.calls[:len(s.calls)+1]
	} else {
		s.calls = append(s.calls, nil)
	}
	c := s.calls[len(s.calls)-1]
	if c == nil {
		c = &call{pack: pack{args: s.fast}}
		s.calls[len(s.calls)-1] = c
	}
	c.slot = j.slot
	return c
}

// done lets go of what a call was about.
func (c *call) done() {
	clear(c.jobs)
	clear(c.requests)
	c.jobs, c.requests, c.claims, c.err = c.jobs[:0], c.requests[:0], 0, nil
}

// evaluate makes the calls that were dealt out: one as it is, several in a pipeline.
func (s *sender) evaluate(ctx context.Context, client Client) {
	for _, c := range s.calls {
		c.encode()
	}
	if len(s.calls) == 1 {
		c := s.calls[0]
		reply, err := client.EvalSHA(ctx, scriptSHA, c.pack.keys, c.argv)
		c.finish(ctx, client, reply, err)
		return
	}
	s.wire = s.wire[:0]
	for _, c := range s.calls {
		s.wire = append(s.wire, Call{Keys: c.pack.keys, Args: c.argv})
	}
	client.EvalSHAs(ctx, scriptSHA, s.wire)
	for i, c := range s.calls {
		c.finish(ctx, client, s.wire[i].Reply, s.wire[i].Err)
	}
	clear(s.wire)
}

func (c *call) encode() {
	c.args[0] = c.pack.encode(c.requests)
	c.argv = c.args[:1]
	if now := c.jobs[0].now; now != 0 {
		c.args[1] = strconv.FormatInt(now, 10)
		c.argv = c.args[:2]
	}
}

// finish reads the reply. After NOSCRIPT nothing was executed, so the call is made again, with the text.
func (c *call) finish(ctx context.Context, client Client, reply string, err error) {
	if err != nil && Classify(err).Class == driver.ClassNoScript {
		reply, err = client.Eval(ctx, script, c.pack.keys, c.argv)
	}
	if err != nil {
		c.err = Classify(err)
		return
	}
	c.err = c.pack.decode(reply)
}
