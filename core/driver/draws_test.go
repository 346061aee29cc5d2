package driver_test

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

const (
	micro = int64(1)
	year  = 365 * 24 * int64(time.Hour/time.Microsecond)
	// longest is the longest period of a reduced rate, in microseconds.
	longest = int64(driver.MaxPeriod / time.Microsecond)
)

// draws chooses what a test does next, from a seed or from a fuzzer's bytes. It has its own arithmetic because the
// rejection loops of math/rand never end on a source that ran dry.
type draws struct {
	random *rand.PCG
	fuzz   []byte
}

func seeded(seed uint64) *draws { return &draws{random: rand.NewPCG(seed, 44)} }

// dry says that the fuzzer's bytes are used up.
func (d *draws) dry() bool { return d.random == nil && len(d.fuzz) == 0 }

// below returns a number in [0, n). Of a fuzzer's bytes it uses no more than n needs, so that one byte of input is
// about one decision.
func (d *draws) below(n int64) int64 {
	if n <= 1 {
		return 0
	}
	if d.random != nil {
		hi, _ := bits.Mul64(d.random.Uint64(), uint64(n))
		return int64(hi)
	}
	var word [8]byte
	size := (bits.Len64(uint64(n-1)) + 7) / 8
	d.fuzz = d.fuzz[copy(word[:size], d.fuzz):]
	return int64(binary.LittleEndian.Uint64(word[:]) % uint64(n))
}

// between returns a number in [low, high].
func (d *draws) between(low, high int64) int64 { return low + d.below(high-low+1) }

// scaled returns a number in [low, high] whose order of magnitude is uniform; low >= 1.
func (d *draws) scaled(low, high int64) int64 {
	shift := d.between(int64(bits.Len64(uint64(low))), int64(bits.Len64(uint64(high)))) - 1
	return min(max(d.between(1<<shift, 1<<(shift+1)-1), low), high)
}

// rule returns a rule from the whole supported range, edges more often than their share.
func (d *draws) rule() driver.Rule {
	p := d.period()
	n := d.count(p)
	rule := driver.NewBucket(int(n), time.Duration(p)*time.Microsecond)
	if d.below(16) == 0 { // half a microsecond is accepted where the rate reduces
		half := driver.NewBucket(int(n), time.Duration(p)*time.Microsecond/2)
		if half.Validate() == nil {
			rule = half
		}
	}
	return d.burst(rule)
}

func (d *draws) period() int64 {
	switch d.below(8) {
	case 0:
		return d.between(1, 16) // 1 - 2^-44 of a token rounds up under such a rule
	case 1:
		return longest - d.below(1000)
	case 2:
		return []int64{1e6, 60e6, 3600e6, 86400e6}[d.below(4)]
	default:
		return d.scaled(1, longest)
	}
}

// count returns how many tokens a rule gives per p microseconds.
func (d *draws) count(p int64) int64 {
	most := int64(driver.MaxCount)
	if p < most/1000 {
		most = 1000 * p
	}
	switch d.below(8) {
	case 0:
		return 1
	case 1:
		return most - d.below(min(most, 16))
	case 2:
		return d.between(1, min(most, 100))
	default:
		return d.scaled(1, most)
	}
}

func (d *draws) burst(rule driver.Rule) driver.Rule {
	switch d.below(8) {
	case 0:
		return rule // the default
	case 1:
		return rule.WithBurst(1)
	case 2:
		return rule.WithBurst(int(driver.MaxCount - d.below(16)))
	case 3:
		return rule.WithBurst(int(d.between(1, 10)))
	default:
		return rule.WithBurst(int(d.scaled(1, driver.MaxCount)))
	}
}

// change returns what an operator might make of a rule: one of its numbers changed, or another rule altogether.
func (d *draws) change(old driver.Rule) driver.Rule {
	count, period := old.Rate()
	changed := old
	switch d.below(4) {
	case 0:
		changed = d.burst(old)
	case 1:
		changed = driver.NewBucket(int(d.count(int64(period/time.Microsecond)+1)), period).WithBurst(old.Capacity())
	case 2:
		changed = driver.NewBucket(count, time.Duration(d.period())*time.Microsecond).WithBurst(old.Capacity())
	case 3:
		changed = d.rule()
	}
	if changed.Validate() != nil { // for example the old count in a shorter period
		return d.rule()
	}
	return changed
}
