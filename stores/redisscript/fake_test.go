package redisscript

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// fakeClient answers every claim with the same: 5 tokens, so many slots held, a lease that is there. Its calls can be held back.
type fakeClient struct {
	mu    sync.Mutex
	calls []fakeCall
	hold  chan struct{} // if not nil, each call receives from it before it answers
	fail  func(call fakeCall) error
	held  float64
}

type fakeCall struct {
	ctx    context.Context
	eval   bool
	keys   []string
	args   []string
	claims int
	plain  [][]string
}

func (f *fakeClient) EvalSHAs(ctx context.Context, sha string, calls []Call) {
	for i, one := range calls {
		calls[i].Reply, calls[i].Err = f.EvalSHA(ctx, sha, one.Keys, one.Args)
	}
}

func (f *fakeClient) EvalSHA(ctx context.Context, sha string, keys, args []string) (string, error) {
	if sha != SHA() {
		return "", errors.New("another script")
	}
	return f.call(fakeCall{ctx: ctx, keys: keys, args: args})
}

func (f *fakeClient) Eval(ctx context.Context, text string, keys, args []string) (string, error) {
	if text != Script() {
		return "", errors.New("another script")
	}
	return f.call(fakeCall{ctx: ctx, eval: true, keys: keys, args: args})
}

func (f *fakeClient) Pipe(ctx context.Context, commands [][]string) error {
	_, err := f.answer(fakeCall{ctx: ctx, plain: commands}, "")
	return err
}

func (f *fakeClient) call(c fakeCall) (string, error) {
	c.keys, c.args = append([]string(nil), c.keys...), append([]string(nil), c.args...)
	if len(c.args[0]) == fastSize {
		c.claims = 1
		return f.answer(c, doubles(5, 0))
	}
	if len(c.args[0]) == pairSize {
		c.claims = 2
		return f.answer(c, doubles(5, 0, f.held))
	}
	reply := ""
	for arg := c.args[0][headSize:]; len(arg) > 0; arg = arg[recordSize:] {
		n := int(arg[4])
		c.claims += n
		switch op := arg[0] & (1<<flagShift - 1); op {
		case opSlots:
			reply += doubles(f.held)
		case opRenew:
			reply += doubles(1)
		case opRepeat:
			reply += doubles(5, 0)
		default:
			reply += strings.Repeat(doubles(5, 0), n)
		}
	}
	return f.answer(c, reply)
}

func (f *fakeClient) answer(c fakeCall, reply string) (string, error) {
	f.mu.Lock()
	f.calls = append(f.calls, c)
	hold, fail := f.hold, f.fail
	f.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if fail != nil {
		if err := fail(c); err != nil {
			return "", err
		}
	}
	return reply, nil
}

// sizes returns how many claims each call so far decided; 0 is one of plain commands.
func (f *fakeClient) sizes() (n []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		n = append(n, c.claims)
	}
	return n
}

var five = bucket(1, time.Hour, 5)

// entries returns a batch of n entries with the given number of claims each, on keys of their own.
func entries(name string, n, claims int) []driver.Entry {
	batch := make([]driver.Entry, n)
	for i := range batch {
		for j := range claims {
			batch[i].Claims = append(batch[i].Claims, driver.Claim{
				Policy: "p", Subject: fmt.Sprint(name, i, "/", j), Rule: five, Cost: 1,
			})
		}
	}
	return batch
}

// result is how a Decide on a goroutine of its own ended.
type result struct {
	batch []driver.Entry
	err   error
}

func decide(s *Store, ctx context.Context, batch []driver.Entry) <-chan result {
	done := make(chan result, 1)
	go func() { done <- result{batch, s.Decide(ctx, time.Time{}, batch)} }()
	return done
}

// bubble runs a test of the queue on a fake clock; it fails if a goroutine is left behind.
func bubble(t *testing.T, f func(t *testing.T, client *fakeClient, s *Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client := &fakeClient{hold: make(chan struct{})}
		s := New(client)
		f(t, client, s)
		close(client.hold)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func alive(s *Store) int {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return len(s.queue.senders)
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
