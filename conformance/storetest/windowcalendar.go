package storetest

import (
	"time"
	_ "time/tzdata" // what the suite proves must not depend on the machine's zones

	"github.com/headgate-go/headgate/core/driver"
)

func daily(n int, name string) driver.Rule {
	return driver.NewWindow(driver.KindDaily, n, 0).In(zone(name))
}

func monthly(n int, name string) driver.Rule {
	return driver.NewWindow(driver.KindMonthly, n, 0).In(zone(name))
}

func zone(name string) *time.Location {
	loc, err := time.LoadLocation(name)
	if err != nil {
		panic("storetest: " + err.Error())
	}
	return loc
}

// calendarCases are about days and months of time zones.
var calendarCases = []Case{
	{"days_of_23_and_25_hours", "a day of 24 hours begins an hour early or late for half of the year",
		func(p *probe) {
			p.calendar(daily(5, "Europe/Berlin"), "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z", "2026-03-30T22:00:00Z")
			p.calendar(daily(5, "Europe/Berlin"), "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z", "2026-10-26T23:00:00Z")
		}},
	{"days_west_and_east", "the day of the server instead of the customer's",
		func(p *probe) {
			p.calendar(driver.NewWindow(driver.KindDaily, 5, 0), "2026-10-13T00:00:00Z", "2026-10-14T00:00:00Z", "2026-10-15T00:00:00Z")
			p.calendar(daily(5, "America/Los_Angeles"), "2026-07-04T07:00:00Z", "2026-07-05T07:00:00Z", "2026-07-06T07:00:00Z")
			p.calendar(daily(5, "Pacific/Kiritimati"), "2026-12-31T10:00:00Z", "2027-01-01T10:00:00Z", "2027-01-02T10:00:00Z")
			p.calendar(daily(5, "Asia/Kathmandu"), "2026-07-03T18:15:00Z", "2026-07-04T18:15:00Z", "2026-07-05T18:15:00Z")
		}},
	{"days_without_a_midnight", "where clocks go forward at midnight, 00:00 is a time that the day before has, or none",
		func(p *probe) {
			p.calendar(daily(5, "America/Sao_Paulo"), "2018-11-03T03:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z")
			p.calendar(daily(5, "America/Havana"), "2026-10-31T04:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z")
		}},
	{"months", "months of 30 days, February of a leap year, and October in Berlin, which has 745 hours",
		func(p *probe) {
			p.calendar(monthly(5, "UTC"), "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z", "2027-02-01T00:00:00Z")
			p.calendar(monthly(5, "UTC"), "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z", "2028-04-01T00:00:00Z")
			p.calendar(monthly(5, "UTC"), "2027-01-01T00:00:00Z", "2027-02-01T00:00:00Z", "2027-03-01T00:00:00Z")
			p.calendar(monthly(5, "Europe/Berlin"), "2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z", "2026-11-30T23:00:00Z")
			p.calendar(monthly(5, "Pacific/Pago_Pago"), "2026-12-01T11:00:00Z", "2027-01-01T11:00:00Z", "2027-02-01T11:00:00Z")
		}},
}

// calendar uses up a window that begins at start and ends at end, from its first microsecond to its last, and the one
// after it.
func (p *probe) calendar(rule driver.Rule, start, end, next string) {
	moment := func(text string) time.Time {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			p.fatalf("%v", err)
		}
		return t
	}
	from, to, after := moment(start), moment(end), moment(next)
	k, length := p.key(rule.String()+start), to.Sub(from)
	p.admitted("the window before", p.take(k, rule, 5, from.Add(-time.Microsecond)), 0)
	for i, now := range []time.Time{from, from.Add(time.Hour), from.Add(length / 2), to.Add(-time.Hour), to.Add(-time.Microsecond)} {
		r := p.take(k, rule, 1, now)
		p.admitted(rule.String()+" at "+now.Format(time.RFC3339Nano), r, 4-i)
		if want := (driver.Receipt{Start: from.UnixMicro(), Unit: length.Microseconds()}); r.Receipt != want || r.ResetAfter != to.Sub(now) {
			p.errorf("%v at %v: receipt %+v, reset after %v; want %+v, %v", rule, now, r.Receipt, r.ResetAfter, want, to.Sub(now))
		}
	}
	p.refused(rule.String()+" in its last microsecond", p.take(k, rule, 1, to.Add(-time.Microsecond)), 0, time.Microsecond)
	r := p.take(k, rule, 5, to)
	p.admitted(rule.String()+" in the next window", r, 0)
	if r.ResetAfter != after.Sub(to) {
		p.errorf("%v: the next window ends after %v, want %v", rule, r.ResetAfter, after.Sub(to))
	}
}
