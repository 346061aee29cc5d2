package redisscript

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

func TestIdleSenderSendsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, client *fakeClient, s *Store) {
		for range 3 {
			done := decide(s, t.Context(), entries("a", 1, 1))
			client.hold <- struct{}{}
			r := <-done
			equal(t, "error", r.err, nil)
			equal(t, "remaining", r.batch[0].Claims[0].Result.Remaining, 4)
		}
		equal(t, "calls", client.sizes(), []int{1, 1, 1})
		equal(t, "fast path", len(client.calls[0].args[0]), fastSize)
		equal(t, "senders", alive(s), 1)
	})
}

func TestWaitingDecisionsShareACall(t *testing.T) {
	bubble(t, func(t *testing.T, client *fakeClient, s *Store) {
		var all []<-chan result
		for i := range eager {
			all = append(all, decide(s, t.Context(), entries(fmt.Sprint("busy", i), 1, 1)))
			synctest.Wait()
		}
		for i := range 10 {
			all = append(all, decide(s, t.Context(), entries(fmt.Sprint("w", i), 1, 1+i%2)))
			synctest.Wait()
		}
		equal(t, "before one is free", client.sizes(), []int{1, 1})
		client.hold <- struct{}{}
		synctest.Wait()
		equal(t, "after", client.sizes(), []int{1, 1, 15})
		client.hold <- struct{}{}
		client.hold <- struct{}{}
		for _, done := range all {
			r := <-done
			equal(t, "error", r.err, nil)
			equal(t, "remaining", r.batch[0].Claims[0].Result.Remaining, 4)
		}
		equal(t, "senders", alive(s), eager)
	})
}

// A batch stays together as far as 64 claims go, and a full pack does not wait for a sender.
func TestPackCap(t *testing.T) {
	bubble(t, func(t *testing.T, client *fakeClient, s *Store) {
		for i := range eager {
			decide(s, t.Context(), entries(fmt.Sprint("busy", i), 1, 1))
			synctest.Wait()
		}
		a := decide(s, t.Context(), entries("a", 40, 1))
		synctest.Wait()
		b := decide(s, t.Context(), entries("b", 10, 4)) // 40 more: a full pack waits, and a goes
		synctest.Wait()
		equal(t, "full pack", client.sizes(), []int{1, 1, 40})
		c := decide(s, t.Context(), entries("c", 50, 3)) // 150 claims, a call after another
		for range 20 {
			synctest.Wait()
			select {
			case client.hold <- struct{}{}:
			default:
			}
		}
		for _, done := range []<-chan result{a, b, c} {
			select {
			case r := <-done:
				equal(t, "error", r.err, nil)
				equal(t, "last remaining", r.batch[len(r.batch)-1].Claims[0].Result.Remaining, 4)
			default:
				t.Error("not answered")
			}
		}
		total := 0
		for _, n := range client.sizes() {
			total += n
			if n > packClaims {
				t.Errorf("a call of %d claims", n)
			}
		}
		equal(t, "claims", total, eager+40+40+150)
	})
}

func TestMoreSendersWhenCallsAreSlow(t *testing.T) {
	bubble(t, func(t *testing.T, client *fakeClient, s *Store) {
		var all []<-chan result
		for i := range eager + 3 {
			all = append(all, decide(s, t.Context(), entries(fmt.Sprint(i), 1, 1)))
			synctest.Wait()
		}
		equal(t, "at once", client.sizes(), []int{1, 1})
		<-time.After(patience + 1)
		synctest.Wait()
		equal(t, "after a while", client.sizes(), []int{1, 1, 3})
		for range 3 {
			client.hold <- struct{}{}
		}
		for _, done := range all {
			equal(t, "error", (<-done).err, nil)
		}
	})
}

// The number of senders is the bound: whoever finds none before its deadline overflows, and was not sent.
func TestOverflowAndTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, client *fakeClient, s *Store) {
		s.queue.most = 3
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		var all []<-chan result
		deadline, _ := ctx.Deadline()
		for i := range 5 {
			ctx := ctx
			if i%2 == 1 { // a context that only the store watches
				ctx = driver.WithDeadlineOnly(t.Context(), deadline)
			}
			all = append(all, decide(s, ctx, entries(fmt.Sprint(i), 1, 1)))
			synctest.Wait()
			<-time.After(patience)
			synctest.Wait()
		}
		equal(t, "calls", client.sizes(), []int{1, 1, 1})
		start := time.Now()
		var classes []driver.Class
		for _, done := range all {
			r := <-done
			classes = append(classes, driver.ClassOf(r.err))
			if !errors.Is(r.err, context.DeadlineExceeded) {
				t.Errorf("%v is not a deadline", r.err)
			}
		}
		equal(t, "classes", classes, []driver.Class{"timeout", "timeout", "timeout", "overflow", "overflow"})
		if waited := time.Since(start); waited > 50*time.Millisecond+tick {
			t.Errorf("waited %v", waited)
		}
		equal(t, "expired before it began", driver.ClassOf(s.Decide(ctx, time.Time{}, entries("late", 1, 1))), driver.ClassOverflow)
		for range 3 { // the calls come back; nobody is there any more
			client.hold <- struct{}{}
		}
		synctest.Wait()
		equal(t, "never sent later", client.sizes(), []int{1, 1, 1})
		equal(t, "waiting", s.queue.claims, 0)
	})
}

// A deadline of nobody but the store's own, and on a call's context that one with the grace.
func TestDefaultTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, client *fakeClient, s *Store) {
		start := time.Now()
		equal(t, "class", driver.ClassOf(s.Decide(context.Background(), time.Time{}, entries("a", 1, 1))), driver.ClassTimeout)
		equal(t, "waited", time.Since(start), DefaultTimeout)
		synctest.Wait()
		ctx := client.calls[0].ctx
		deadline, ok := ctx.Deadline()
		equal(t, "deadline", deadline.Sub(start), DefaultTimeout+time.Duration(grace))
		equal(t, "has one", ok, true)
		<-ctx.Done()
		equal(t, "error", ctx.Err(), context.DeadlineExceeded)
		client.hold <- struct{}{}
		// The alarm that went off is not the next call's.
		done := decide(s, context.Background(), entries("a", 1, 1))
		synctest.Wait()
		equal(t, "next", client.calls[1].ctx.Err(), nil)
		client.hold <- struct{}{}
		equal(t, "error", (<-done).err, nil)
	})
}

type ctxKey struct{}

// Whoever leaves is not waited for; what it asked for is decided all the same, and its memory is not touched.
func TestCallerLeaves(t *testing.T) {
	bubble(t, func(t *testing.T, client *fakeClient, s *Store) {
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), ctxKey{}, "v"))
		batch := entries("gone", 1, 1)
		done := decide(s, ctx, batch)
		synctest.Wait()
		other := decide(s, t.Context(), entries("other", 1, 1))
		synctest.Wait()
		waiting := entries("waiting", 1, 1)
		queued := decide(s, ctx, waiting)
		stays := decide(s, t.Context(), entries("stays", 1, 1))
		synctest.Wait()
		cancel()
		for _, r := range []result{<-done, <-queued} {
			if !errors.Is(r.err, context.Canceled) || driver.ClassOf(r.err) != driver.ClassOther {
				t.Errorf("error %v", r.err)
			}
		}
		equal(t, "value", client.calls[0].ctx.Value(ctxKey{}), "v")
		equal(t, "cancelled", client.calls[0].ctx.Err(), nil)
		batch[0].Claims[0].Result.Remaining, waiting[0].Claims[0].Result.Remaining = -1, -1 // races with a late writer
		client.hold <- struct{}{}
		synctest.Wait()
		equal(t, "calls", client.sizes(), []int{1, 1, 2}) // the one that waited was sent with the others
		client.hold <- struct{}{}
		client.hold <- struct{}{}
		for _, done := range []<-chan result{other, stays} {
			r := <-done
			equal(t, "error", r.err, nil)
			equal(t, "remaining", r.batch[0].Claims[0].Result.Remaining, 4)
		}
		equal(t, "not written", batch[0].Claims[0].Result.Remaining, -1)
		equal(t, "not written", waiting[0].Claims[0].Result.Remaining, -1)
	})
}

func TestSendersEnd(t *testing.T) {
	bubble(t, func(t *testing.T, client *fakeClient, s *Store) {
		for range 3 {
			var all []<-chan result
			for i := range eager {
				all = append(all, decide(s, t.Context(), entries(fmt.Sprint(i), 1, 1)))
				synctest.Wait()
			}
			for _, done := range all {
				client.hold <- struct{}{}
				<-done
			}
			synctest.Wait()
			equal(t, "senders", alive(s), eager)
			<-time.After(idleTime - 10*time.Millisecond)
			synctest.Wait()
			equal(t, "senders before their time", alive(s), eager)
			<-time.After(20 * time.Millisecond)
			synctest.Wait()
			equal(t, "senders after it", alive(s), 0)
		}
	})
}

func TestClose(t *testing.T) {
	bubble(t, func(t *testing.T, client *fakeClient, s *Store) {
		var all []<-chan result
		for i := range eager + 1 {
			all = append(all, decide(s, t.Context(), entries(fmt.Sprint(i), 1, 1)))
			synctest.Wait()
		}
		closed := make(chan error)
		for range 2 {
			go func() { closed <- s.Close() }()
		}
		synctest.Wait()
		for _, batch := range [][]driver.Entry{nil, entries("late", 1, 1)} {
			equal(t, "after Close", driver.ClassOf(s.Decide(t.Context(), time.Time{}, batch)), driver.ClassClosed)
		}
		equal(t, "after Close", driver.ClassOf(s.Apply(t.Context(), time.Time{}, nil)), driver.ClassClosed)
		select {
		case err := <-closed:
			t.Error("Close did not wait", err)
		default:
		}
		for range all {
			client.hold <- struct{}{}
		}
		for _, done := range all { // what waited is decided
			equal(t, "error", (<-done).err, nil)
		}
		for range 2 {
			equal(t, "Close", <-closed, nil)
		}
	})
}

func TestErrorsOfTheClient(t *testing.T) {
	bubble(t, func(t *testing.T, client *fakeClient, s *Store) {
		client.hold = nil
		for _, c := range []struct {
			name  string
			fail  func(fakeCall) error
			class driver.Class
			calls int
		}{
			{"other", func(fakeCall) error { return errors.New("OOM command not allowed") }, driver.ClassOOM, 1},
			{"noscript", func(c fakeCall) error {
				if c.eval {
					return nil
				}
				return errors.New("NOSCRIPT No matching script. Please use EVAL.")
			}, "", 2},
			{"noscript for ever", func(fakeCall) error { return errors.New("ERR NOSCRIPT No matching script") }, driver.ClassNoScript, 2},
			{"panic", func(fakeCall) error { panic("a hook's") }, driver.ClassOther, 1},
		} {
			client.calls, client.fail = nil, c.fail
			err := s.Decide(t.Context(), time.Time{}, entries("a", 1, 1))
			equal(t, c.name, driver.ClassOf(err), c.class)
			equal(t, c.name+": calls", len(client.calls), c.calls)
		}
		client.hold = make(chan struct{})
	})
}

// One key of another type fails its own request, not those that share the call.
func TestBadKeyInAPack(t *testing.T) {
	bubble(t, func(t *testing.T, client *fakeClient, s *Store) {
		client.fail = func(c fakeCall) error {
			for _, key := range c.keys {
				if key == s.KeyName("p", "bad0/0", five) {
					return errors.New("WRONGTYPE Operation against a key holding the wrong kind of value script: x")
				}
			}
			return nil
		}
		var all []<-chan result
		for _, name := range []string{"busy", "busy", "good", "bad", "fine"} {
			all = append(all, decide(s, t.Context(), entries(name, 1, 1)))
			synctest.Wait()
		}
		for range 6 {
			client.hold <- struct{}{}
			synctest.Wait()
		}
		for i, done := range all {
			class := driver.Class("")
			if i == 3 {
				class = driver.ClassOther
			}
			equal(t, fmt.Sprint("caller ", i), driver.ClassOf((<-done).err), class)
		}
		equal(t, "calls", client.sizes(), []int{1, 1, 3, 1, 1, 1})
	})
}

// Deadlines that pass between two looks of the watch: the context's own Done, and a sender that comes too late, notice.
func TestBetweenTicks(t *testing.T) {
	bubble(t, func(t *testing.T, client *fakeClient, s *Store) {
		end := time.Now().Add(3*tick + tick/2)
		ctx, cancel := context.WithDeadline(t.Context(), end)
		defer cancel()
		s.queue.most = eager
		var all []<-chan result
		for i := range eager {
			all = append(all, decide(s, ctx, entries(fmt.Sprint("sent", i), 1, 1)))
			synctest.Wait()
		}
		all = append(all, decide(s, ctx, entries("waits", 1, 1)))
		late := decide(s, driver.WithDeadlineOnly(t.Context(), end), entries("late", 1, 1))
		good := decide(s, t.Context(), entries("good", 1, 1))
		<-time.After(3*tick + tick/2)
		synctest.Wait()
		var classes []driver.Class
		for _, done := range all {
			classes = append(classes, driver.ClassOf((<-done).err))
		}
		equal(t, "classes", classes, []driver.Class{"timeout", "timeout", "overflow"})
		client.hold <- struct{}{}
		equal(t, "late", driver.ClassOf((<-late).err), driver.ClassOverflow)
		client.hold <- struct{}{}
		client.hold <- struct{}{}
		equal(t, "good", (<-good).err, nil)
		equal(t, "sent", client.sizes(), []int{1, 1, 1})

		// Nothing of a call may be sent.
		end = time.Now().Add(tick / 2)
		for i := range eager {
			decide(s, t.Context(), entries(fmt.Sprint("busy", i), 1, 1))
			synctest.Wait()
		}
		late = decide(s, driver.WithDeadlineOnly(t.Context(), end), entries("late", 1, 1))
		<-time.After(tick / 2)
		synctest.Wait()
		client.hold <- struct{}{}
		equal(t, "late", driver.ClassOf((<-late).err), driver.ClassOverflow)
		client.hold <- struct{}{}
		synctest.Wait()
		equal(t, "sent", client.sizes(), []int{1, 1, 1, 1, 1})
	})
}
