package driver_test

import (
	"sync"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

func daily(name string) driver.Rule {
	return driver.NewWindow(driver.KindDaily, 10, 0).In(zone(name))
}

func monthly(name string) driver.Rule {
	return driver.NewWindow(driver.KindMonthly, 10, 0).In(zone(name))
}

// moment reads a time in UTC.
func moment(t *testing.T, text string) int64 {
	t.Helper()
	at, err := time.Parse("2006-01-02T15:04:05.999999Z", text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMicro()
}

// Every line is a window, written down from the rules of its zone: the edges are those, and the moments just inside
// belong to it.
func TestCalendarWindows(t *testing.T) {
	for _, v := range []struct {
		what       string
		rule       driver.Rule
		start, end string
		hours      float64
	}{
		{"a day of UTC", daily("UTC"), "2026-10-13T00:00:00Z", "2026-10-14T00:00:00Z", 24},
		{"the day on which summer begins", daily("Europe/Berlin"), "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z", 23},
		{"the day after it", daily("Europe/Berlin"), "2026-03-29T22:00:00Z", "2026-03-30T22:00:00Z", 24},
		{"the day on which summer ends", daily("Europe/Berlin"), "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z", 25},
		{"October in Berlin", monthly("Europe/Berlin"), "2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z", 745},
		{"March in Berlin", monthly("Europe/Berlin"), "2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z", 743},
		{"February", monthly("UTC"), "2027-02-01T00:00:00Z", "2027-03-01T00:00:00Z", 28 * 24},
		{"February of a leap year", monthly("UTC"), "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z", 29 * 24},
		{"February of 2100, which is none", monthly("UTC"), "2100-02-01T00:00:00Z", "2100-03-01T00:00:00Z", 28 * 24},
		{"29 February", daily("Europe/Berlin"), "2028-02-28T23:00:00Z", "2028-02-29T23:00:00Z", 24},
		{"the last month of a year, far in the west", monthly("Pacific/Pago_Pago"), "2026-12-01T11:00:00Z", "2027-01-01T11:00:00Z", 744},
		{"the first day of a year, far in the east", daily("Pacific/Kiritimati"), "2026-12-31T10:00:00Z", "2027-01-01T10:00:00Z", 24},
		{"west", daily("America/Los_Angeles"), "2026-07-04T07:00:00Z", "2026-07-05T07:00:00Z", 24},
		{"quarters of an hour", daily("Asia/Kathmandu"), "2026-07-03T18:15:00Z", "2026-07-04T18:15:00Z", 24},
		{"half an hour of summer", daily("Australia/Lord_Howe"), "2026-04-04T13:00:00Z", "2026-04-05T13:30:00Z", 24.5},
		{"no midnight: 24:00 is 01:00", daily("America/Sao_Paulo"), "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z", 23},
		{"the day before that", daily("America/Sao_Paulo"), "2018-11-03T03:00:00Z", "2018-11-04T03:00:00Z", 24},
		{"24:00 is 23:00 again", daily("America/Sao_Paulo"), "2018-02-17T02:00:00Z", "2018-02-18T03:00:00Z", 25},
		{"two midnights: 01:00 is 00:00 again", daily("America/Havana"), "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", 25},
		{"no midnight", daily("America/Havana"), "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z", 23},
		{"00:01 is 23:01 of the day before", daily("America/St_Johns"), "2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z", 25},
		{"the last day before the date line moved", daily("Pacific/Apia"), "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z", 24},
		{"the day after next, which followed", daily("Pacific/Apia"), "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z", 24},
		{"a month without its 30th", monthly("Pacific/Apia"), "2011-12-01T10:00:00Z", "2011-12-31T10:00:00Z", 30 * 24},
		{"a leap year's last day, under rules without an end", daily("Europe/Berlin"), "2040-12-30T23:00:00Z", "2040-12-31T23:00:00Z", 24},
		{"the first month of all", monthly("UTC"), "1970-01-01T00:00:00Z", "1970-02-01T00:00:00Z", 744},
	} {
		start, end := moment(t, v.start), moment(t, v.end)
		if got := float64(end-start) / 3600e6; got != v.hours {
			t.Errorf("%s: %v hours are written down, not %v", v.what, got, v.hours)
		}
		for _, at := range []int64{end - 1, start, (start + end) / 2, start + 1, start + 45*60e6, end - 45*60e6} {
			if b := v.rule.Boundaries(at); b[1] != start || b[2] != end {
				t.Errorf("%s, at %v: from %v to %v, want %s to %s", v.what, utc(at), utc(b[1]), utc(b[2]), v.start, v.end)
			}
			if l := (driver.Window{}).Read(v.rule, at); at > 0 && (l.Start() != start || l.Length != end-start) {
				t.Errorf("%s, at %v: %+v", v.what, utc(at), l)
			}
		}
		// The neighbours, asked from within and from themselves.
		b := v.rule.Boundaries(start)
		if before := v.rule.Boundaries(start - 1); before[2] != start || before[1] != b[0] {
			t.Errorf("%s: the window before it begins at %v, or at %v", v.what, utc(b[0]), utc(before[1]))
		}
		if next := v.rule.Boundaries(end); next[1] != end || next[2] != b[3] {
			t.Errorf("%s: the window after it ends at %v, or at %v", v.what, utc(b[3]), utc(next[2]))
		}
	}
}

func utc(us int64) string { return time.UnixMicro(us).UTC().Format("2006-01-02T15:04:05.999999Z") }

// Whatever the zone and the time: the moment lies in its window, the edges ascend, and no window is longer than a month
// and an hour. A wrong answer here would be a division by zero, or a loop without an end.
func TestBoundariesAreInOrder(t *testing.T) {
	odd := []*time.Location{
		time.FixedZone("east", 100*3600), time.FixedZone("west", -100*3600), time.FixedZone("seconds", 12345), time.Local, new(time.Location),
	}
	d := seeded(29)
	for i := range 30_000 {
		loc := zones[d.below(int64(len(zones)))]
		if i%4 == 0 {
			loc = odd[d.below(int64(len(odd)))]
		}
		rule, longest := driver.NewWindow(driver.KindDaily, 1, 0).In(loc), int64(25*3600e6)
		if i%3 == 0 {
			rule, longest = driver.NewWindow(driver.KindMonthly, 1, 0).In(loc), 745*3600e6
		}
		at := d.between(1, driver.MaxMicros)
		b := rule.Boundaries(at)
		if b[0] >= b[1] || b[1] > at || at >= b[2] || b[2] >= b[3] {
			t.Fatalf("%v at %v: %v %v %v %v", rule, utc(at), utc(b[0]), utc(b[1]), utc(b[2]), utc(b[3]))
		}
		if b[2]-b[1] > longest || b[2]-b[1] < 22*3600e6 {
			t.Fatalf("%v at %v: a window of %v", rule, utc(at), driver.Micros(b[2]-b[1]))
		}
	}
}

// A decision asks for edges; only the first of a day computes them.
func TestBoundariesAreRemembered(t *testing.T) {
	rules := []driver.Rule{daily("Europe/Berlin"), monthly("Europe/Berlin"), daily("America/New_York"), monthly("UTC")}
	read := func() {
		for _, rule := range rules {
			rule.Boundaries(start)
		}
	}
	if n := testing.AllocsPerRun(100, read); n != 0 {
		t.Errorf("%v allocations for edges that are known", n)
	}
	// A program that loads its zone anew for every request pushes them out, for as long as it takes to compute them once.
	for i := range 1000 {
		loc, err := time.LoadLocation("Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}
		rule := driver.NewWindow(driver.KindDaily, 1, 0).In(loc)
		at := start + int64(i)*86400e6
		if got, want := rule.Boundaries(at), daily("Europe/Berlin").Boundaries(at); got != want {
			t.Fatalf("%v at %d: %v, want %v", rule, at, got, want)
		}
	}
	if n := testing.AllocsPerRun(100, read); n != 0 {
		t.Errorf("%v allocations for edges that are known again", n)
	}
}

// For the race detector: many calendars, asked for the edges of many days at once.
func TestBoundariesAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for worker := range uint64(4) {
		wg.Go(func() {
			d := seeded(worker)
			for range 500 {
				rule := driver.NewWindow(driver.KindDaily+driver.Kind(d.below(2)), 1, 0).In(zones[d.below(int64(len(zones)))])
				at := start + d.below(10)*86400e6
				if b := rule.Boundaries(at); at < b[1] || at >= b[2] {
					t.Errorf("%v at %v: from %v to %v", rule, utc(at), utc(b[1]), utc(b[2]))
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkBoundaries(b *testing.B) {
	rule := daily("Europe/Berlin")
	b.Run("known", func(b *testing.B) {
		for b.Loop() {
			rule.Boundaries(start)
		}
	})
	b.Run("new", func(b *testing.B) {
		for i := int64(0); b.Loop(); i++ {
			rule.Boundaries(start + i%3000*86400e6)
		}
	})
}
