//go:build !race

package redisscript

import (
	"context"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// instantClient answers at once and allocates nothing.
type instantClient struct{ reply string }

func (c instantClient) EvalSHAs(ctx context.Context, sha string, calls []Call) {
	for i, one := range calls {
		calls[i].Reply, calls[i].Err = c.EvalSHA(ctx, sha, one.Keys, one.Args)
	}
}

func (c instantClient) EvalSHA(context.Context, string, []string, []string) (string, error) {
	return c.reply, nil
}

func (c instantClient) Eval(context.Context, string, []string, []string) (string, error) {
	return c.reply, nil
}

func (c instantClient) Pipe(context.Context, [][]string) error { return nil }

// Above the client's own call there are two allocations: the key and the context. (With the race detector pools forget.)
func TestAllocations(t *testing.T) {
	s := New(instantClient{doubles(5, 0)})
	defer s.Close()
	ctx := driver.WithDeadlineOnly(t.Context(), time.Now().Add(time.Hour))
	batch := entry(claimOn("a", five, 1))
	if got := testing.AllocsPerRun(1000, func() {
		if err := s.Decide(ctx, time.Time{}, batch); err != nil {
			t.Fatal(err)
		}
	}); got > 2 {
		t.Errorf("%v allocations", got)
	}
}

// What a decision costs beyond the client: keys, packing, handing over to a sender and back, the answer.
func BenchmarkHandOver(b *testing.B) {
	s := New(instantClient{doubles(5, 0)})
	defer s.Close()
	ctx := driver.WithDeadlineOnly(b.Context(), time.Now().Add(time.Hour))
	b.Run("inline", func(b *testing.B) { // the same without a sender
		b.ReportAllocs()
		batch := entry(claimOn("a", five, 1))
		var r request
		var p pack
		requests := []*request{&r}
		for b.Loop() {
			_ = r.add("hg", &batch[0])
			p.encode(requests)
			_ = p.decode(doubles5)
			r.answer(&batch[0], 0)
			r.reset()
		}
	})
	b.Run("decide", func(b *testing.B) {
		b.ReportAllocs()
		batch := entry(claimOn("a", five, 1))
		for b.Loop() {
			if err := s.Decide(ctx, time.Time{}, batch); err != nil {
				b.Fatal(err)
			}
		}
	})
}

var doubles5 = doubles(5, 0)
