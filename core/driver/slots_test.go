package driver_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

func TestSlotsRule(t *testing.T) {
	rule := driver.NewSlots(20)
	if rule.Kind() != driver.KindSlots || rule.Capacity() != 20 || rule.IsWindow() || rule.String() != "20 in flight" || rule.Validate() != nil {
		t.Errorf("%v: kind %d, capacity %d, %v", rule, rule.Kind(), rule.Capacity(), rule.Validate())
	}
	if rule != driver.NewSlots(20) || rule == driver.NewSlots(21) {
		t.Error("rules do not compare by what they say")
	}
	for _, n := range []int{1, driver.MaxCount} {
		if err := driver.NewSlots(n).Validate(); err != nil {
			t.Errorf("%d slots: %v", n, err)
		}
	}
	for want, bad := range map[string]driver.Rule{
		"0 slots; 1 to 1000000000 (Off is a mode, not a number)": driver.NewSlots(0),
		"-5 slots; 1 to 1000000000":                              driver.NewSlots(-5),
		"1000000001 slots; 1 to 1000000000":                      driver.NewSlots(driver.MaxCount + 1),
		"slots have no burst":                                    rule.WithBurst(20),
		"only Daily and Monthly have a time zone":                rule.In(time.UTC),
	} {
		if err := bad.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestCheckLease(t *testing.T) {
	good := driver.Claim{Rule: driver.NewSlots(5), Cost: 1, Lease: driver.ID{1}, LeaseFor: time.Minute}
	look := driver.Claim{Rule: driver.NewSlots(5)}
	rate := driver.Claim{Rule: driver.NewBucket(1, time.Second), Cost: 7}
	for _, c := range []driver.Claim{good, look, rate} {
		if err := c.CheckLease(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for want, spoil := range map[string]func(*driver.Claim){
		"cost 2; a request takes one slot, or with cost 0 looks at them":  func(c *driver.Claim) { c.Cost = 2 },
		"cost -1; a request takes one slot, or with cost 0 looks at them": func(c *driver.Claim) { c.Cost = -1 },
		"the lease has no ID":                                func(c *driver.Claim) { c.Lease = driver.ID{} },
		"lease time 0s; whole milliseconds, 1ms to 744h0m0s": func(c *driver.Claim) { c.LeaseFor = 0 },
	} {
		c := good
		if spoil(&c); c.CheckLease() == nil || c.CheckLease().Error() != want {
			t.Errorf("got %v, want %s", c.CheckLease(), want)
		}
	}
}

func TestCheckLeaseTime(t *testing.T) {
	for _, d := range []time.Duration{driver.MinLease, 2 * time.Millisecond, time.Minute, driver.MaxLease} {
		if err := driver.CheckLeaseTime(d); err != nil {
			t.Errorf("%v: %v", d, err)
		}
	}
	for want, d := range map[string]time.Duration{
		"lease time -1ns; ":        -1,
		"lease time 999.999us; ":   driver.MinLease - 1,
		"lease time 1.5ms; ":       1500 * time.Microsecond,
		"lease time 744h0m0.001s;": driver.MaxLease + time.Millisecond,
		"lease time 2562047h":      math.MaxInt64,
	} {
		if err := driver.CheckLeaseTime(d); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// BR137 in the model: what is left after the decision, and nothing where it is refused.
func TestBR137_SlotResult(t *testing.T) {
	rule := driver.NewSlots(3)
	for _, v := range []struct {
		cost, held int
		taken      bool
		want       driver.Result
	}{
		{1, 0, true, driver.Result{Allowed: true, Remaining: 2}},
		{1, 2, true, driver.Result{Allowed: true, Remaining: 0}},
		{1, 2, false, driver.Result{Allowed: true, Remaining: 1}}, // fits, and somebody else refused
		{1, 3, false, driver.Result{Reason: driver.ReasonLimit}},
		{1, 9, false, driver.Result{Reason: driver.ReasonLimit}}, // the limit was lowered
		{0, 0, false, driver.Result{Allowed: true, Remaining: 3}},
		{0, 3, false, driver.Result{Allowed: true, Remaining: 0}},
		{0, 9, false, driver.Result{Allowed: true, Remaining: 0}},
	} {
		if got := driver.SlotResult(rule, v.cost, v.held, v.taken); got != v.want {
			t.Errorf("cost %d, %d held, taken %t: got %+v, want %+v", v.cost, v.held, v.taken, got, v.want)
		}
	}
}

// The life of a lease: it counts until its place is needed after its end, and until then can be renewed.
func TestSlotsLife(t *testing.T) {
	s := driver.Slots{}
	a, b, c := driver.ID{1}, driver.ID{2}, driver.ID{3}
	s.Take(a, 100)
	s.Take(b, 200)
	check := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	check("there is room: nothing is swept", s.Held(3, 150), 2)
	check("a look", s.Live(99), 2)
	check("a look at its end", s.Live(100), 1)
	check("a look swept nothing", len(s), 2)
	if !s.Renew(a, 180) {
		t.Error("a lease that is over and was not swept cannot be renewed")
	}
	check("full, and none is over", s.Held(2, 179), 2)
	check("full, and one is over", s.Held(2, 180), 1)
	if s.Renew(a, 900) || len(s) != 1 {
		t.Error("a lease that was swept came back")
	}
	s.Take(c, 300)
	s.Take(c, 400) // asked again
	check("asked again", s.Held(9, 180), 2)
	check("more than the limit are held", s.Held(1, 180), 2)
	s.Release(c)
	s.Release(c)
	s.Release(driver.ID{9})
	check("released", s.Held(9, 180), 1)
	if s.Renew(c, 900) {
		t.Error("a lease that was released came back")
	}
}

// Whatever is asked: the set never exceeds the limit, only what is over is swept, and only for want of a place.
func TestSlotsNeverExceedTheLimit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 5))
	for range 50 {
		s, now := driver.Slots{}, int64(1000)
		for step := range 500 {
			now += rng.Int64N(40) - 5
			n, id := 1+rng.IntN(6), driver.ID{byte(step), byte(step >> 8)}
			before := maps.Clone(s)
			held := s.Held(n, now)
			for old, until := range before {
				if _, there := s[old]; !there && (until > now || len(before) < n) {
					t.Fatalf("step %d: swept a lease that ends at %d, at %d with %d of %d held", step, until, now, len(before), n)
				}
			}
			if held != len(s) || held >= n && s.Live(now) != held {
				t.Fatalf("step %d: %d held, %d there, %d not over", step, held, len(s), s.Live(now))
			}
			if held < n {
				s.Take(id, now+1+rng.Int64N(60))
			}
			if held < n && len(s) > n {
				t.Fatalf("step %d: %d held of %d", step, len(s), n)
			}
		}
	}
}

func TestWithCountKeepsTheRule(t *testing.T) {
	for _, rule := range []driver.Rule{driver.NewWindow(driver.KindFixed, 10, time.Minute), driver.NewWindow(driver.KindSliding, 10, time.Minute),
		driver.NewWindow(driver.KindDaily, 10, 0), driver.NewWindow(driver.KindMonthly, 10, 0).In(time.FixedZone("X", 3600))} {
		changed := rule.WithCount(3)
		if err := changed.Validate(); err != nil || changed.Capacity() != 3 || changed.Zone() != rule.Zone() || changed.WithCount(10) != rule {
			t.Errorf("%v with a count of 3 is %v: %v", rule, changed, err)
		}
	}
	if driver.NewWindow(driver.KindSlots, 3, time.Second).Validate() == nil {
		t.Error("slots with a period")
	}
}
