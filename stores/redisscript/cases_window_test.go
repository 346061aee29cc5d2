package redisscript

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate-go/headgate/conformance/redistest"
)

// Reported faults for the windows of the script. The store does not offer windows yet; the script does.

// panes is a window rule on one key.
type panes struct {
	t   *testing.T
	h   *harness
	w   win
	key []string
}

const windowStart = 1_700_000_040 // seconds; a multiple of a minute

func newPanes(t *testing.T, h *harness, op uint8, limit int64, d time.Duration) *panes {
	return &panes{t, h, win{op: op, limit: limit, d: d.Microseconds()}, []string{h.fresh()}}
}

// take asks at a number of seconds after windowStart, and says whether it was admitted and what was left then.
func (p *panes) take(seconds float64, cost int64) (admitted bool, left int64) {
	p.t.Helper()
	now := windowStart*1_000_000 + int64(seconds*1e6)
	reply, states, lives, took, err := p.h.call(now, p.key, head(1, p.w.encode(1, flagLast, cost)))
	if err != nil {
		p.t.Fatal(err)
	}
	b := []byte(reply)
	v := view{cur: int64(double(b)), at: int64(double(b[8:])), d: p.w.d}
	v.e = v.at % v.d
	if p.w.op == opSliding {
		v.prev = int64(double(b[16:]))
	}
	admitted = p.w.fits(v, cost)
	if admitted && cost > 0 {
		_, ms := p.w.add(v, cost)
		if err := checkLife(lives[0], ms, took); err != nil {
			p.t.Error(err)
		}
		v.cur += cost
	}
	if states[0] != nil && lives[0] <= 0 {
		p.t.Error("no expiry")
	}
	return admitted, p.w.limit - v.cur
}

func windowHarness(t *testing.T) *harness {
	return newHarness(t, redistest.Start(t, redistest.Single), script)
}

func TestBR027_BurstAtTheEdge(t *testing.T) {
	t.Parallel()
	h := windowHarness(t)
	fixed, sliding := newPanes(t, h, opFixed, 10, time.Minute), newPanes(t, h, opSliding, 10, time.Minute)
	fixedAdmitted := 0
	for _, seconds := range []float64{59.9, 60.1} {
		for i := range 10 {
			if ok, _ := fixed.take(seconds, 1); ok {
				fixedAdmitted++
			}
			if ok, _ := sliding.take(seconds, 1); ok != (seconds < 60) {
				t.Errorf("sliding at %v, request %d: %v", seconds, i, ok)
			}
		}
	}
	equal(t, "fixed", fixedAdmitted, 20)
	admitted := 0
	for x := 1; x <= 60; x++ {
		if ok, _ := sliding.take(60+float64(x), 1); ok {
			admitted++
		}
		if admitted > x/6 {
			t.Errorf("%d admitted within %d s of the edge", admitted, x)
		}
	}
	equal(t, "recovered", admitted, 10)
}

func TestBR028_SlidingRecoversUnderOverload(t *testing.T) {
	t.Parallel()
	p := newPanes(t, windowHarness(t), opSliding, 5, 10*time.Second)
	var admitted []int
	for i := range 20 {
		if ok, _ := p.take(float64(i), 1); ok {
			admitted = append(admitted, i)
		}
	}
	equal(t, "admitted at", admitted, []int{0, 1, 2, 3, 4, 12, 14, 16, 18})
}

func TestBR029_SlowPoller(t *testing.T) {
	t.Parallel()
	p := newPanes(t, windowHarness(t), opFixed, 20, 30*time.Second)
	for range 20 {
		p.take(0, 1)
	}
	for i := 10; i <= 300; i += 10 {
		if ok, _ := p.take(float64(i), 1); ok != (i >= 30) {
			t.Errorf("at %d: %v", i, ok)
		}
	}
}

// BR-032 and BR-033 for a weighted window: counters have no members that could be removed late or meet.
func TestBR032_OldRequestsDoNotCount(t *testing.T) {
	t.Parallel()
	p := newPanes(t, windowHarness(t), opSliding, 5, 2*time.Second)
	for i := range 6 {
		if ok, _ := p.take(0, 1); ok != (i < 5) {
			t.Errorf("request %d: %v", i, ok)
		}
	}
	for i := range 6 {
		if ok, _ := p.take(4, 1); ok != (i < 5) {
			t.Errorf("two windows later, request %d: %v", i, ok)
		}
	}
}

func TestBR033_EqualTimes(t *testing.T) {
	t.Parallel()
	p := newPanes(t, windowHarness(t), opSliding, 30, time.Minute)
	admitted := 0
	for range 100 {
		if ok, _ := p.take(1, 1); ok {
			admitted++
		}
	}
	equal(t, "admitted", admitted, 30)
}

// A key that somebody made immortal gets an expiry with the next admission.
func TestBR035_ImmortalKeyIsRepaired(t *testing.T) {
	t.Parallel()
	p := newPanes(t, windowHarness(t), opFixed, 5, time.Minute)
	p.take(0, 1)
	if _, err := p.h.conn.Do("PERSIST", p.key[0]); err != nil {
		t.Fatal(err)
	}
	p.take(1, 1) // checks the expiry
}

func TestBR036_UnitsOfExpiryOfWindows(t *testing.T) {
	t.Parallel()
	h := windowHarness(t)
	for _, op := range []uint8{opFixed, opSliding} {
		for _, d := range []time.Duration{time.Minute, time.Hour} {
			newPanes(t, h, op, 5, d).take(0, 1) // checks it
		}
	}
}

func TestBR037_ShortWindows(t *testing.T) {
	t.Parallel()
	h := windowHarness(t)
	for _, op := range []uint8{opFixed, opSliding} {
		for _, d := range []time.Duration{time.Millisecond, 500 * time.Millisecond, 1500 * time.Millisecond, 2700 * time.Millisecond} {
			p := newPanes(t, h, op, 3, d)
			for i := range 4 {
				if ok, _ := p.take(0, 1); ok != (i < 3) {
					t.Errorf("op %d, %v: request %d: %v", op, d, i, ok)
				}
			}
			for i := range 3 {
				if ok, _ := p.take(2*d.Seconds(), 1); !ok {
					t.Errorf("op %d, %v: request %d later is refused", op, d, i)
				}
			}
		}
	}
}

func TestBR039_RefusalsChangeNothing(t *testing.T) {
	t.Parallel()
	p := newPanes(t, windowHarness(t), opFixed, 5, 10*time.Second)
	for i := range 305 {
		if ok, _ := p.take(0, 1); ok != (i < 5) {
			t.Fatalf("request %d: %v", i, ok)
		}
	}
	p.w.limit = 500
	ok, left := p.take(5, 1)
	equal(t, "with a higher limit", fmt.Sprint(ok, left), "true 494")
}

// BR-042 for a window: 0 is no limit that could be set.
func TestBR042_LimitOfAWindowChanges(t *testing.T) {
	t.Parallel()
	p := newPanes(t, windowHarness(t), opFixed, 100, time.Minute)
	p.take(0, 50)
	p.w.limit = 30
	ok, _ := p.take(1, 1)
	equal(t, "at 30", ok, false)
	p.w.limit = 80
	ok, left := p.take(2, 1)
	equal(t, "at 80", fmt.Sprint(ok, left), "true 29")
}
