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

// window is a window as the script saw it. It did not say when that was; at is our own time, by which receipts count.
func (c *claim) window(rule driver.Rule, at int64) driver.WindowLevel {
	l := driver.WindowLevel{Cur: c.saw[0], Elapsed: c.saw[1], At: at}
	switch c.op {
	case opCalendar:
		l.Length = c.saw[2]
	case opSliding:
		l.Prev = c.saw[2]
		fallthrough
	default:
		_, period := rule.Rate()
		l.Length = int64(period / time.Microsecond)
	}
	return l
}

// saneWindow says whether the script could have seen this.
func (c *claim) saneWindow() bool {
	length := int64(math.Float64frombits(c.v[2]))
	switch c.op {
	case opCalendar:
		length = c.saw[2]
		if length == 0 { // outside the calendar
			return c.saw[0] == 0 && c.saw[1] == 0
		}
	case opSliding:
		if c.saw[2] < 0 || c.saw[2] > 2*driver.MaxCount {
			return false
		}
	}
	return c.saw[0] >= 0 && c.saw[0] <= 2*driver.MaxCount && c.saw[1] >= 0 && c.saw[1] < length
}
