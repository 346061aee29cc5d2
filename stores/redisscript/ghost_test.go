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

// Leases of callers that were told that the store failed, and of which the store knows better later.

// leaving decides one entry within 50 ms, on a goroutine of its own.
func leaving(t *testing.T, s *Store, claims ...driver.Claim) <-chan result {
	ctx := driver.WithDeadlineOnly(t.Context(), time.Now().Add(50*time.Millisecond))
	return decide(s, ctx, entry(claims...))
}

func TestLeasesOfCallersWhoLeft(t *testing.T) {
	look, shadow := slotOn("a", 5, 3), slotOn("b", 5, 4)
	look.Cost, shadow.Shadow = 0, true
	claims := []driver.Claim{slotOn("a", 5, 1), look, claimOn("a", five, 1), slotOn("c", 2, 2), shadow}
	all := plainCall(zrem("a", 1), zrem("c", 2), zrem("b", 4))
	for _, c := range []struct {
		name string
		held float64
		err  error
		want string
	}{
		{"taken", 0, nil, all},
		{"one refused", 2, nil, plainCall(zrem("a", 1), zrem("b", 4))},
		{"all refused", 5, nil, ""},
		{"timeout", 0, context.DeadlineExceeded, all},
		{"connection lost", 5, errors.New("EOF"), all},
		{"nonsense", 0, &driver.Error{Class: driver.ClassProtocol, Err: errors.New("nonsense")}, all},
		{"not executed: loading", 0, errors.New("LOADING"), ""},
		{"not executed: no memory", 0, errors.New("OOM command not allowed"), ""},
		{"not executed: a foreign value", 0, errors.New("WRONGTYPE Operation against"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, client *fakeClient, s *Store) {
				client.held = c.held
				client.fail = func(call fakeCall) error {
					if call.plain == nil {
						return c.err
					}
					return nil
				}
				done := leaving(t, s, claims...)
				equal(t, "class", driver.ClassOf((<-done).err), driver.ClassTimeout)
				synctest.Wait()
				equal(t, "before the call is back", len(client.calls), 1)
				client.hold <- struct{}{}
				synctest.Wait()
				equal(t, "released", fmt.Sprint(client.plain()), fmt.Sprintf("[%s]", c.want))
				if c.want != "" {
					client.hold <- struct{}{}
				}
				synctest.Wait()
				equal(t, "no more calls", len(client.calls), 1+len(client.plain()))
			})
		})
	}
}

// Of a call with several callers only the leases of those who left are given back, in one call; whoever waits in the queue
// beyond its deadline was never sent.
func TestLeasesOfSomeCallers(t *testing.T) {
	bubble(t, func(t *testing.T, client *fakeClient, s *Store) {
		s.queue.most = eager
		for range eager {
			decide(s, t.Context(), entries("busy", 1, 1))
			synctest.Wait()
		}
		gone := leaving(t, s, slotOn("a", 5, 1))
		synctest.Wait()
		stays := decide(s, t.Context(), entry(slotOn("a", 5, 2)))
		synctest.Wait()
		also := leaving(t, s, slotOn("a", 5, 3))
		synctest.Wait()
		client.hold <- struct{}{} // takes the three
		synctest.Wait()
		late := leaving(t, s, slotOn("a", 5, 4))
		for i, c := range []struct {
			done <-chan result
			want driver.Class
		}{{gone, driver.ClassTimeout}, {also, driver.ClassTimeout}, {late, driver.ClassOverflow}} {
			equal(t, fmt.Sprint("class ", i), driver.ClassOf((<-c.done).err), c.want)
		}
		for range eager + 1 {
			client.hold <- struct{}{}
			synctest.Wait()
		}
		equal(t, "error", (<-stays).err, nil)
		equal(t, "calls", client.sizes(), []int{1, 1, 3, 0})
		equal(t, "released", client.plain()[0], plainCall(zrem("a", 1, 3)))
	})
}

// A caller that cancels is told an error too, also if its decision was only waiting: that is made all the same.
func TestLeasesOfCancelledCallers(t *testing.T) {
	bubble(t, func(t *testing.T, client *fakeClient, s *Store) {
		ctx, cancel := context.WithCancel(t.Context())
		for range eager {
			decide(s, t.Context(), entries("busy", 1, 1))
			synctest.Wait()
		}
		done := decide(s, ctx, entry(slotOn("a", 5, 1)))
		synctest.Wait()
		cancel()
		if err := (<-done).err; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		for range eager + 2 {
			client.hold <- struct{}{}
			synctest.Wait()
		}
		equal(t, "calls", client.sizes(), []int{1, 1, 1, 0})
		equal(t, "released", client.plain()[0], plainCall(zrem("a", 1)))
	})
}

// Close waits for these releases too. One that fails is not tried again: the lease ends by itself.
func TestLeasesOfCallersWhoLeftBeforeClose(t *testing.T) {
	bubble(t, func(t *testing.T, client *fakeClient, s *Store) {
		client.fail = func(call fakeCall) error {
			if call.plain != nil {
				return errors.New("LOADING")
			}
			return nil
		}
		<-leaving(t, s, slotOn("a", 5, 1))
		closed := make(chan error)
		go func() { closed <- s.Close() }()
		synctest.Wait()
		for range 2 {
			select {
			case err := <-closed:
				t.Error("Close did not wait", err)
			default:
			}
			client.hold <- struct{}{}
			synctest.Wait()
		}
		equal(t, "Close", <-closed, nil)
		equal(t, "calls", client.sizes(), []int{1, 0})
	})
}
