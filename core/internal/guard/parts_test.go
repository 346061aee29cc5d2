package guard_test

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/internal/guard"
)

// cluster is a store of four parts; those that are down fail. A subject's part is its first character.
type cluster struct {
	mu    sync.Mutex
	down  uint64
	blind bool // it does not tell which part failed
	calls [4]int
}

func (*cluster) Parts() int              { return 4 }
func (*cluster) Part(subject string) int { return int(subject[0] - '0') }
func (*cluster) Close() error            { return nil }

func (c *cluster) set(down uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = down
}

func (c *cluster) asked(part int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[part]
}

func (c *cluster) ask(parts uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.calls {
		c.calls[i] += int(parts >> i & 1)
	}
	failed := parts & c.down
	if failed == 0 {
		return nil
	}
	err := &driver.Error{Class: driver.ClassTimeout, Err: fmt.Errorf("part %d is down", bits.TrailingZeros64(failed))}
	if c.blind {
		return err
	}
	return &driver.PartialError{Parts: failed, Err: err}
}

func (c *cluster) Decide(_ context.Context, _ time.Time, batch []driver.Entry) error {
	var parts uint64
	for _, claim := range batch[0].Claims {
		parts |= 1 << c.Part(claim.Subject)
	}
	return c.ask(parts)
}

func (c *cluster) Apply(_ context.Context, _ time.Time, changes []driver.Change) error {
	var parts uint64
	for i := range changes {
		parts |= 1 << c.Part(changes[i].Subject)
		changes[i].Lost = true
	}
	return c.ask(parts)
}

func about(subjects ...string) []driver.Entry {
	e := driver.Entry{}
	for _, s := range subjects {
		e.Claims = append(e.Claims, driver.Claim{Policy: "p", Subject: s})
	}
	return []driver.Entry{e}
}

func newCluster() (*cluster, *guard.Store, *[]guard.State) {
	behind, states := &cluster{}, new([]guard.State)
	return behind, guard.New(behind, guard.Options{Rand: func() float64 { return 0.5 },
		Changed: func(s guard.State, _ error) { *states = append(*states, s) }}), states
}

// A node that is down costs its own tenants their limits, and nobody else's: not by failures in a row, and not by probes.
func TestPartsFailByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind, store, states := newCluster()
		ctx := context.Background()
		behind.set(1 << 2)
		for range 50 { // all failures in a row
			if err := store.Decide(ctx, time.Time{}, about("2a")); driver.ClassOf(err) != driver.ClassTimeout {
				t.Fatal(err)
			}
		}
		if n := behind.asked(2); n != 10 {
			t.Errorf("the part that is down was asked %d times; ten failures open its breaker", n)
		}
		for i := range 3000 { // far into the time of probes
			<-time.After(10 * time.Millisecond)
			if err := store.Decide(ctx, time.Time{}, about(fmt.Sprint(i%2))); err != nil {
				t.Fatalf("another part: %v", err)
			}
			_ = store.Decide(ctx, time.Time{}, about("2b"))
		}
		if n := behind.asked(2); n < 15 || n > 30 {
			t.Errorf("the part that is down was asked %d times in 30 s", n)
		}
		// A request of two parts needs both.
		if err := store.Decide(ctx, time.Time{}, about("2a", "3a")); driver.ClassOf(err) != driver.ClassTimeout || behind.asked(3) != 0 {
			t.Errorf("%v, with a breaker open; the other part was asked %d times", err, behind.asked(3))
		}
		behind.set(0)
		<-time.After(4 * time.Second)
		for range 3 {
			if err := store.Decide(ctx, time.Time{}, about("2a")); err != nil {
				t.Errorf("after the outage: %v", err)
			}
		}
		// To the outside it is one breaker: the worst.
		last := len(*states) - 1
		if (*states)[0] != guard.Open || (*states)[last] != guard.Closed || slices.Index(*states, guard.Closed) != last {
			t.Errorf("told %v", *states)
		}
	})
}

// Requests of several parts tell whose fault it was: the others' breakers stay closed, and a probe among them goes on later.
func TestPartsOfOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind, store, _ := newCluster()
		ctx := context.Background()
		behind.set(1 << 1)
		for range 50 {
			_ = store.Decide(ctx, time.Time{}, about("0", "1", "0", "3"))
		}
		for _, other := range []string{"0", "3"} {
			if err := store.Decide(ctx, time.Time{}, about(other)); err != nil {
				t.Errorf("part %s: %v", other, err)
			}
		}
		// Part 0 goes down as well; its probe is spoilt by part 1 and must not be out for ever.
		behind.set(1<<0 | 1<<1)
		for range 10 {
			_ = store.Decide(ctx, time.Time{}, about("0"))
		}
		<-time.After(10 * time.Second)
		behind.set(1 << 1)
		for range 5 {
			_ = store.Decide(ctx, time.Time{}, about("0", "1"))
		}
		for range 4 {
			if err := store.Decide(ctx, time.Time{}, about("0")); err != nil {
				t.Errorf("part 0 is back: %v", err)
			}
		}
		behind.blind = true
		behind.set(1<<2 | 1<<3)
		for range 10 {
			_ = store.Decide(ctx, time.Time{}, about("2", "3"))
		}
		before := behind.asked(3)
		if err := store.Decide(ctx, time.Time{}, about("3")); err == nil || behind.asked(3) != before {
			t.Errorf("%v: a failure of nobody in particular is everybody's", err)
		}
	})
}

// Leases of parts that are well are renewed while another is down.
func TestPartsOfCorrections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind, store, _ := newCluster()
		ctx := context.Background()
		behind.set(1 << 1)
		for range 10 {
			_ = store.Decide(ctx, time.Time{}, about("1"))
		}
		changes := []driver.Change{{Subject: "1a"}, {Subject: "0a"}, {Subject: "1b"}, {Subject: "3a"}}
		before := behind.asked(1)
		err := store.Correct(ctx, time.Time{}, changes)
		if driver.ClassOf(err) != driver.ClassTimeout || behind.asked(1) != before {
			t.Errorf("%v; the part that is down was asked %d times", err, behind.asked(1)-before)
		}
		for i, want := range []bool{false, true, false, true} {
			if changes[i].Lost != want {
				t.Errorf("change %d was made: %t", i, changes[i].Lost)
			}
		}
		if err := store.Correct(ctx, time.Time{}, changes[:1]); err == nil {
			t.Error("nothing could be asked, and no error")
		}
	})
}

func TestFailedParts(t *testing.T) {
	one := &driver.PartialError{Parts: 1, Err: errors.New("x")}
	two := &driver.Error{Class: driver.ClassOther, Err: fmt.Errorf("%w: %w", errors.New("y"), &driver.PartialError{Parts: 4, Err: driver.ErrClosed})}
	for want, err := range map[uint64]error{0: errors.New("z"), 1: one, 4: two, 5: errors.Join(one, two)} {
		if got := driver.FailedParts(err); got != want {
			t.Errorf("%v: parts %b, want %b", err, got, want)
		}
	}
}
