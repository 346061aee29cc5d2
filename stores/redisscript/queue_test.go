package redisscript

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// A second sender goes with as many claims as the first one has, not with the first that comes: those that follow it at once
// would wait for the next. What shares no call with anything goes at once.
func TestSecondCallIsAsLargeAsTheFirst(t *testing.T) {
	bubble(t, func(t *testing.T, client *fakeClient, s *Store) {
		decide(s, t.Context(), entries("first", 3, 1))
		synctest.Wait()
		for i := range 2 {
			decide(s, t.Context(), entries(fmt.Sprint(i), 1, 1))
			synctest.Wait()
		}
		equal(t, "before as many wait", client.sizes(), []int{3})
		decide(s, t.Context(), entries("third", 1, 1))
		synctest.Wait()
		equal(t, "after", client.sizes(), []int{3, 3})
	})
	bubble(t, func(t *testing.T, client *fakeClient, s *Store) {
		decide(s, t.Context(), entries("first", 3, 1))
		synctest.Wait()
		go func() {
			if err := s.Apply(t.Context(), time.Time{}, []driver.Change{slotChange(driver.Release, "first", 1)}); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		equal(t, "with a release", client.sizes(), []int{3, 0})
	})
}

// A job that waits for nothing better gets its sender after a while all the same.
func TestSmallCallBesideALargeOne(t *testing.T) {
	bubble(t, func(t *testing.T, client *fakeClient, s *Store) {
		decide(s, t.Context(), entries("first", 3, 1))
		synctest.Wait()
		decide(s, t.Context(), entries("second", 1, 1))
		<-time.After(2 * patience)
		synctest.Wait()
		equal(t, "calls", client.sizes(), []int{3, 1})
	})
}
