package driver_test

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

func TestWindowAgreesWithTheExactModel(t *testing.T) {
	const workers, steps = 2, 40_000
	for worker := range uint64(workers) {
		t.Run(fmt.Sprintf("seed %d", worker), func(t *testing.T) {
			t.Parallel()
			if n, err := runWindows(theWindow(), seeded(worker), steps); err != nil {
				t.Fatal(err)
			} else if n != steps {
				t.Fatalf("%d steps done, want %d", n, steps)
			}
		})
	}
}

// The same comparison with steps chosen by a fuzzer.
func FuzzWindow(f *testing.F) {
	for seed := range uint64(4) {
		bytes, source := make([]byte, 256), seeded(seed)
		for i := range bytes {
			bytes[i] = byte(source.below(256))
		}
		f.Add(bytes)
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, bytes []byte) {
		if _, err := runWindows(theWindow(), &draws{fuzz: bytes}, 500); err != nil {
			t.Fatal(err)
		}
	})
}

// Under one rule a window is what its definition says of the list of all admissions, each with its time: nothing is kept
// of the past but two numbers, and nothing more is needed.
func TestWindowAgreesWithAListOfAdmissions(t *testing.T) {
	d := seeded(19)
	for range 300 {
		rule := d.windowRule()
		if d.below(2) == 0 {
			rule = driver.NewWindow(driver.KindSliding, int(d.between(1, 20)), d.windowPeriod())
		}
		var state driver.Window
		type admission struct{ at, cost int64 }
		var list []admission
		now := d.between(1, driver.MaxMicros/2)
		for range 60 {
			start, end := windowOf(rule, now)
			length := end - start
			before, _ := windowOf(rule, start-1)
			var prev, cur int64
			for _, a := range list {
				switch {
				case a.at >= start:
					cur += a.cost
				case a.at >= before:
					prev += a.cost
				}
			}
			used := new(big.Rat).SetInt64(cur)
			if rule.Kind() == driver.KindSliding {
				used.Add(used, new(big.Rat).Mul(big.NewRat(end-now, length), new(big.Rat).SetInt64(prev)))
			}
			limit := int64(rule.Capacity())
			cost := d.between(1, min(2*limit, limit+2))
			if d.below(2) == 0 {
				cost = 1 + d.below(limit/3+1)
			}
			want := used.Add(used, new(big.Rat).SetInt64(cost)).Cmp(new(big.Rat).SetInt64(limit)) <= 0
			level := state.Read(rule, now)
			if got := level.Fits(rule, int(cost)); got != want {
				t.Fatalf("%v at %d of %+v: cost %d fits: %t, the list says %t", rule, now, level, cost, got, want)
			}
			if want {
				state = level.Take(int(cost))
				list = append(list, admission{now, cost})
			}
			switch d.below(4) {
			case 0:
				now = end + d.below(2)
			case 1:
				now += d.below(2 * length)
			default:
				now += d.below(length / 4)
			}
		}
	}
}

// Expiry is garbage collection only: from the moment that Fresh names, a key that is gone and a key that is still there
// answer alike, under the rule that wrote it; and one microsecond earlier they do not.
func TestWindowThatIsOverEqualsAFreshOne(t *testing.T) {
	d := seeded(23)
	for range 20_000 {
		rule := d.windowRule()
		start := driver.Window{Prev: d.below(driver.MaxCount), Time: d.between(1, driver.MaxMicros/2)}
		state := start.Read(rule, start.Time+d.below(86400e6)).Settle(rule, int(d.between(1, int64(rule.Capacity()))))
		over := state.Time + state.Read(rule, state.Time).Fresh(rule)
		for _, now := range []int64{over, over + 1, over + d.scaled(1, year)} {
			got := state.Read(rule, now).Result(rule, rule.Capacity(), false)
			if want := (driver.Window{}).Read(rule, now).Result(rule, rule.Capacity(), false); got != want || !want.Allowed {
				t.Fatalf("%v: %+v at %d: %+v, a fresh key %+v", rule, state, now, got, want)
			}
		}
		if state.Read(rule, over-1).Result(rule, rule.Capacity(), false).Allowed {
			t.Fatalf("%v: %+v equals a fresh key a microsecond early", rule, state)
		}
	}
}

// What a receipt is for: the window that it names, and no other. What a change of rule makes of a window is another one.
func TestRuns(t *testing.T) {
	minute := driver.NewWindow(driver.KindFixed, 10, time.Minute)
	state := driver.Window{}.Read(minute, 90*1e6).Take(3)
	receipt := driver.Receipt{Start: 60e6, Unit: 60e6}
	if got := (driver.Window{}).Read(minute, 90*1e6).Result(minute, 3, true).Receipt; got != receipt {
		t.Errorf("the receipt is %+v, want %+v", got, receipt)
	}
	for _, v := range []struct {
		now     int64
		rule    driver.Rule
		receipt driver.Receipt
		want    bool
	}{
		{90e6, minute, receipt, true},
		{120e6 - 1, minute, receipt, true},
		{120e6, minute, receipt, false},
		{30e6, minute, receipt, true}, // the clock stepped back, the window did not
		{90e6, minute, driver.Receipt{Start: 0, Unit: 60e6}, false},
		{90e6, minute, driver.Receipt{Start: 120e6, Unit: 60e6}, false},
		{90e6, driver.NewWindow(driver.KindSliding, 10, time.Minute), receipt, true},
		{90e6, driver.NewWindow(driver.KindFixed, 10, time.Hour), receipt, false},
		{90e6, driver.NewWindow(driver.KindFixed, 10, 30*time.Second), receipt, false},
		{900e6, minute, driver.Receipt{}, true}, // of no window, so of any
	} {
		if got := state.Read(v.rule, v.now).Runs(v.receipt); got != v.want {
			t.Errorf("%v at %d: %+v runs: %t", v.rule, v.now, v.receipt, got)
		}
	}
}

// The numbers with which the comparison in doubles, and in products of 64 bits, first went wrong: 797,345,641 admissions
// of a window before.
func TestSlidingNeighbours(t *testing.T) {
	const prev = 797_345_641
	for _, v := range []struct {
		length, rest, m int64
		fits            bool
	}{
		// prev x rest is m x length + 1 and - 1; Python says so.
		{2_678_399_999_999, 8_966_825_664, 2_669_377, false},
		{2_678_399_999_999, 2_669_433_174_335, 794_676_264, true},
	} {
		rule := driver.NewWindow(driver.KindSliding, int(v.m)+1, time.Duration(v.length)*time.Microsecond)
		l := driver.WindowLevel{Prev: prev, Length: v.length, Elapsed: v.length - v.rest, At: v.length*4 - v.rest}
		if got := l.Fits(rule, 1); got != v.fits {
			t.Errorf("%d x %d against %d x %d: fits: %t", prev, v.rest, v.m, v.length, got)
		}
	}
}
