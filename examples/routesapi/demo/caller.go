package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// result is what became of a client.
type result struct {
	client
	sent, letIn int
	cost        int            // of what was let in
	refused     map[string]int // by limiter
	wrong       []string       // answers that nobody should get; a few of them

	first, last time.Time // when the first request was sent and the last answer read: all decisions lie between

	// The first refusal: since the begin, what Retry-After said, the bytes on the wire, and how long it took from sending
	// that request until one was let in; 0: none was.
	refusedAt, told, again time.Duration
	raw                    []byte

	// What came of waiting as long as a later refusal said. Of those who run into a rate.
	waited   time.Duration
	admitted bool

	// What was left of the budget when everything was over, and how many requests were worked on at a time. Of those who run
	// into slots.
	left, most int
}

func (r *result) refusals() (n int) {
	for _, count := range r.refused {
		n += count
	}
	return n
}

// together adds up what became of a client over several connections.
func together(callers []*caller) *result {
	sum := callers[0].result
	sum.refused = map[string]int{}
	for n, c := range callers {
		for policy, count := range c.refused {
			sum.refused[policy] += count
		}
		if n == 0 {
			continue
		}
		sum.sent, sum.letIn, sum.cost = sum.sent+c.sent, sum.letIn+c.letIn, sum.cost+c.cost
		sum.wrong = append(sum.wrong, c.wrong...)
		if c.first.Before(sum.first) {
			sum.first = c.first
		}
		if c.last.After(sum.last) {
			sum.last = c.last
		}
		if len(c.raw) > 0 && (len(sum.raw) == 0 || c.refusedAt < sum.refusedAt) {
			sum.refusedAt, sum.told, sum.again, sum.raw = c.refusedAt, c.told, c.again, c.raw
		}
	}
	return &sum
}

// caller sends a client's requests over one connection, one after another.
type caller struct {
	result
	base   string
	begin  time.Time
	http   *http.Client
	wire   *wire
	n      int
	denied time.Time // when the first refused request was sent
}

func newCaller(base string, c client, begin time.Time) *caller {
	w := &wire{}
	return &caller{result: result{client: c, refused: map[string]int{}}, base: base, begin: begin, wire: w,
		http: &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: w.dial, MaxConnsPerHost: 1}}}
}

func (c *caller) close() { c.http.CloseIdleConnections() }

// send sends requests for as long as it is told, or until ctx ends.
func (c *caller) send(ctx context.Context, length time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	for ctx.Err() == nil { // a tick may be due as well
		c.one()
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// waitAsTold sends until it is refused, waits exactly as long as Retry-After says, and sends once more.
func (c *caller) waitAsTold(ctx context.Context) (waited time.Duration, admitted bool) {
	for range 1000 {
		answer := c.one()
		if answer.refusedBy == "" {
			continue
		}
		wait := time.NewTimer(answer.retryAfter)
		defer wait.Stop()
		select {
		case <-ctx.Done():
			return 0, false
		case <-wait.C:
		}
		return answer.retryAfter, c.one().refusedBy == ""
	}
	return 0, false // it was never refused
}

// afterwards asks the API what there is left of the budget, and how many solves of the tenant ran at a time. It asks from
// another address: the tenant's budget is then the one that the answer tells of, since the address's is all but full.
func (c *caller) afterwards() (left, most int, err error) {
	c.addr = "203.0.113.250"
	key := c.request(0).key
	_, header, _, err := c.roundTrip(request{method: "GET", path: "/v1/routes/r1", key: key})
	if err != nil {
		return 0, 0, err
	}
	if limit := header.Get("RateLimit-Limit"); limit != strconv.Itoa(c.limit.rule.Capacity()) {
		return 0, 0, fmt.Errorf("asked what is left of a limit of %d, told of one of %q", c.limit.rule.Capacity(), limit)
	}
	if left, err = strconv.Atoi(header.Get("RateLimit-Remaining")); err != nil {
		return 0, 0, err
	}
	_, _, body, err := c.roundTrip(request{method: "GET", path: "/v1/analytics/solves", key: key})
	if err != nil {
		return 0, 0, err
	}
	var report struct{ Most int }
	err = json.Unmarshal(body, &report)
	return left + 1, report.Most, err // 1 is what it cost to ask
}

type answer struct {
	refusedBy  string // the limiter; empty if the request was let in
	retryAfter time.Duration
}

// one sends one request and books the answer.
func (c *caller) one() answer {
	req := c.request(c.n)
	c.n++
	c.wire.reset()
	sent := time.Now()
	status, header, body, err := c.roundTrip(req)
	read := time.Now()

	if c.sent == 0 {
		c.first = sent
	}
	c.sent++
	c.last = read
	var a answer
	if err == nil && status != req.want {
		a, err = readRefusal(status, header, body)
	}
	switch {
	case err != nil:
		if len(c.wrong) < 3 {
			c.wrong = append(c.wrong, fmt.Sprintf("%s %s: %v", req.method, req.path, err))
		}
	case a.refusedBy == "":
		c.letIn++
		c.cost += req.cost
		if c.again == 0 && !c.denied.IsZero() {
			c.again = read.Sub(c.denied)
		}
	default:
		c.refused[a.refusedBy]++
		if c.denied.IsZero() {
			c.denied, c.refusedAt, c.told, c.raw = sent, read.Sub(c.begin), a.retryAfter, c.wire.bytes()
		}
	}
	return a
}

func (c *caller) roundTrip(req request) (status int, header http.Header, body []byte, err error) {
	r, err := http.NewRequest(req.method, c.base+req.path, strings.NewReader(req.body))
	if err != nil {
		return 0, nil, nil, err
	}
	r.Header.Set("X-Forwarded-For", c.addr)
	if req.key != "" {
		r.Header.Set("X-Api-Key", req.key)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, body, err
}

// readRefusal reads what a gate answers instead of the API.
func readRefusal(status int, header http.Header, body []byte) (answer, error) {
	var refusal struct {
		Error struct {
			Policy string `json:"policy"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &refusal); err != nil || status != http.StatusTooManyRequests || refusal.Error.Policy == "" {
		return answer{}, fmt.Errorf("answered with status %d: %s", status, body)
	}
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil {
		return answer{}, errors.New("refused without a Retry-After in seconds")
	}
	return answer{refusal.Error.Policy, time.Duration(seconds) * time.Second}, nil
}

// wire keeps what came over a connection since the last reset.
type wire struct {
	mu sync.Mutex
	in bytes.Buffer
}

func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &wiredConn{conn, w}, nil
}

func (w *wire) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.in.Reset()
}

func (w *wire) bytes() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(w.in.Bytes())
}

type wiredConn struct {
	net.Conn
	wire *wire
}

func (c *wiredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	c.wire.in.Write(b[:n])
	return n, err
}
