package redisscript

import (
	"math"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// setWindow fills in the record of a window. Fixed and sliding ones lie on a grid that the script knows from the period;
// of a calendar it is sent the edges around our own time, and picks the window by its own.
func (c *claim) setWindow(rule driver.Rule, cost int, at int64) {
	limit := int64(rule.Capacity())
	if kind := rule.Kind(); kind == driver.KindFixed || kind == driver.KindSliding {
		c.op = opFixed
		if kind == driver.KindSliding {
			c.op = opSliding
		}
		_, period := rule.Rate()
		c.v = numbers(limit, 0, int64(period/time.Microsecond), int64(cost))
		return
	}
	c.op = opCalendar
	b := rule.Boundaries(at)
	c.v = numbers(limit, b[1], b[2], int64(cost))
	c.outer = [2]uint64{math.Float64bits(float64(b[0])), math.Float64bits(float64(b[3]))}
}

// window is a window as the script saw it, at the time of the server's clock.
func (c *claim) window(rule driver.Rule) driver.WindowLevel {
	l := driver.WindowLevel{Cur: c.saw[0], At: c.saw[1]}
	if c.op == opCalendar {
		l.Length = c.saw[2]
		for _, bits := range [...]uint64{c.outer[0], c.v[1], c.v[2]} {
			if edge := int64(math.Float64frombits(bits)); edge <= l.At {
				l.Elapsed = l.At - edge
			}
		}
		return l
	}
	if c.op == opSliding {
		l.Prev = c.saw[2]
	}
	_, period := rule.Rate()
	l.Length = int64(period / time.Microsecond)
	l.Elapsed = l.At % l.Length
	return l
}

// has says whether a receipt's window is one of the rule's. Whether it still runs, the script finds out.
func (c *claim) has(r driver.Receipt) bool {
	if c.op != opCalendar {
		return r.Unit == int64(math.Float64frombits(c.v[2]))
	}
	edges := [...]uint64{c.outer[0], c.v[1], c.v[2], c.outer[1]}
	for i := range 3 {
		from, to := int64(math.Float64frombits(edges[i])), int64(math.Float64frombits(edges[i+1]))
		if r.Start == from && r.Unit == to-from {
			return true
		}
	}
	return false
}

// saneWindow says whether the script could have seen this.
func (c *claim) saneWindow() bool {
	if c.saw[0] < 0 || c.saw[0] > 2*driver.MaxCount || c.saw[1] <= 0 || c.saw[1] > driver.MaxMicros {
		return false
	}
	switch c.op {
	case opCalendar: // a length of 0 is outside of it
		return c.saw[2] >= 0 && c.saw[2] <= maxSegment
	case opSliding:
		return c.saw[2] >= 0 && c.saw[2] <= 2*driver.MaxCount
	}
	return true
}

// maxSegment is the longest month: one hour more than its 31 days, where clocks are put back.
const maxSegment = int64((driver.MaxPeriod + time.Hour) / time.Microsecond)
