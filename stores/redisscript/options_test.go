package redisscript

import (
	"fmt"
	"testing"
	"testing/synctest"
)

// With a pack size of 1 every decision is a call, however many wait; out of range it is as if nothing was said.
func TestWithPackSize(t *testing.T) {
	for size, want := range map[int]string{1: "[1 1 1 1 1 1 1 1 1 1]", 2: "[1 1 1 1 2 2 2]", 0: "[1 1 8]", 65: "[1 1 8]"} {
		bubble(t, func(t *testing.T, client *fakeClient, s *Store) {
			WithPackSize(size)(s)
			var all []<-chan result
			for i := range eagerPipelines + 6 {
				all = append(all, decide(s, t.Context(), entries(fmt.Sprint(i), 1, 1)))
				synctest.Wait()
			}
			for range 20 {
				select {
				case client.hold <- struct{}{}:
				default:
				}
				synctest.Wait()
			}
			for _, done := range all {
				equal(t, "error", (<-done).err, nil)
			}
			equal(t, fmt.Sprintf("calls with a pack size of %d", size), fmt.Sprint(client.sizes()), want)
		})
	}
}
