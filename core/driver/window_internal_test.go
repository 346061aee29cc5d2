package driver

import (
	"testing"
	"time"
)

// A program may make a zone for every request; the edges of those that it dropped must not stay.
func TestCalendarsAreFew(t *testing.T) {
	for i := range 10 * maxCalendars {
		rule := NewWindow(KindDaily, 1, 0).In(time.FixedZone("zone", i))
		rule.Boundaries(1e15)
		if n := len(*calendars.Load()); n > maxCalendars || n < min(i, maxCalendars) {
			t.Fatalf("the edges of %d calendars are remembered after %d, want %d at most", n, i+1, maxCalendars)
		}
	}
}
