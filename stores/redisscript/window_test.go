package redisscript

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate-go/headgate/conformance/redistest"
)

// The windows of the script against the formulas for windows in big integers. Rules for windows do not exist in
// package driver yet, so records are written out here.

// win is a window rule as the script is told it.
type win struct {
	op       uint8
	limit    int64
	off, d   int64    // fixed and sliding
	boundary [4]int64 // calendar
}

// count is the model's state of a window.
type count struct{ prev, cur, ts int64 }

// view is what a window looks like at a moment.
type view struct{ prev, cur, d, e, at int64 }

func (w win) view(s count, now int64) view {
	v := view{at: max(now, s.ts), d: w.d}
	off := w.off
	if w.op == opCalendar {
		b := w.boundary
		if v.at < b[0] || v.at >= b[3] {
			return view{at: v.at}
		}
		for i := range 3 {
			if v.at >= b[i] {
				off, v.d = b[i], b[i+1]-b[i]
			}
		}
	}
	v.e = (v.at - off) % v.d
	start := v.at - v.e
	switch {
	case s.ts == 0 || s.ts < start-v.d:
	case s.ts < start:
		v.prev = s.cur
	default:
		v.prev, v.cur = s.prev, s.cur
	}
	return v
}

// fits by big integers: prev * (d - e) <= m * d.
func (w win) fits(v view, cost int64) bool {
	m := w.limit - v.cur - cost
	switch {
	case v.d == 0:
		return false
	case cost == 0:
		return true
	case m < 0:
		return false
	}
	return w.op != opSliding || product(v.prev, v.d-v.e).Cmp(product(m, v.d)) <= 0
}

func product(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }

// add returns the state after cost was taken, and the key's life in ms.
func (w win) add(v view, cost int64) (count, int64) {
	life := v.d - v.e
	if w.op == opSliding {
		life += v.d
	}
	return count{v.prev, min(max(v.cur+cost, 0), 2*w.limit), v.at}, life/1000 + 2
}

func (w win) saw(v view) []float64 {
	switch w.op {
	case opFixed:
		return []float64{float64(v.cur), float64(v.at)}
	case opSliding:
		return []float64{float64(v.cur), float64(v.at), float64(v.prev)}
	}
	return []float64{float64(v.cur), float64(v.at), float64(v.d)}
}

// encode writes the record of a claim.
func (w win) encode(key int, flags uint8, cost int64) string {
	if w.op == opCalendar {
		b := w.boundary
		return rec(w.op, flags, key, 1, float64(w.limit), float64(b[1]), float64(b[2]), float64(cost)) + doubles(float64(b[0]), float64(b[3]))
	}
	return rec(w.op, flags, key, 1, float64(w.limit), float64(w.off), float64(w.d), float64(cost))
}

func rec(op, flags uint8, key, count int, v ...float64) string {
	b := le.AppendUint16(nil, uint16(op)|uint16(flags)<<flagShift)
	b = le.AppendUint16(le.AppendUint16(b, uint16(key)), uint16(count))
	return string(b) + doubles(v...)
}

// head begins an ARGV[1] with a number of string keys.
func head(strings int, records ...string) string {
	out := string(le.AppendUint16(nil, uint16(strings)))
	for _, r := range records {
		out += r
	}
	return out
}

func packed(s count) any {
	if s.ts == 0 {
		return nil
	}
	return string(le.AppendUint32(le.AppendUint32(nil, uint32(s.prev)), uint32(s.cur))) + doubles(float64(s.ts))
}

// windowScenario asks random windows on two keys: single claims, pairs that are all or nothing, refunds.
func windowScenario(h *harness, rng *rand.Rand) error {
	keys := []string{h.fresh(), h.fresh()}
	states := make([]count, 2)
	period := int64(1000) << rng.IntN(31)
	kinds := []win{
		{op: opFixed, limit: 1 + rng.Int64N(20), d: period},
		{op: opSliding, limit: 1 + rng.Int64N(20), d: period, off: rng.Int64N(period)},
		{op: opSliding, limit: 1 + rng.Int64N(1_000_000_000), d: period},
	}
	now := int64(1_700_000_000_000_000)
	edges := [4]int64{now - period, now, now + period*23/24, now + 2*period}
	kinds = append(kinds, win{op: opCalendar, limit: 1 + rng.Int64N(20), boundary: edges})
	rule := kinds[rng.IntN(len(kinds))]
	for range 25 {
		if rng.IntN(8) == 0 {
			rule = kinds[rng.IntN(len(kinds))]
		}
		now += rng.Int64N(1+period/4) - period/20
		if rng.IntN(10) == 0 {
			now += rng.Int64N(3 * period)
		}
		records, claims := "", 1+rng.IntN(2)
		views := make([]view, claims)
		next := append([]count(nil), states...)
		var saw []float64
		lives := make([]int64, 2)
		refused := false
		settle := rng.IntN(10) == 0
		if settle {
			claims = 1
		}
		for i := range claims {
			key := rng.IntN(2)
			views[i] = rule.view(next[key], now)
			cost := rng.Int64N(4)
			flags := uint8(0)
			if rng.IntN(4) == 0 {
				cost = max(0, rule.limit-views[i].cur+rng.Int64N(3)-1)
			}
			if settle {
				flags, cost = flagSettle, rng.Int64N(3*rule.limit)-2*rule.limit
			}
			if i == claims-1 {
				flags |= flagLast
			}
			records += rule.encode(key+1, flags, cost)
			saw = append(saw, rule.saw(views[i])...)
			switch fits := settle && views[i].d > 0 || !settle && rule.fits(views[i], cost); {
			case !fits:
				refused = true
			case !refused && (cost > 0 || cost < 0 && next[key].ts != 0):
				next[key], lives[key] = rule.add(views[i], cost)
			}
		}
		reply, got, ttl, took, err := h.call(now, keys, head(2, records))
		if err != nil {
			return err
		}
		if want := doubles(saw...); reply != want {
			return fmt.Errorf("%+v at %d saw\n%swant\n%s", rule, now, FormatCall(head(2, records), reply), FormatCall(head(2, records), want))
		}
		if !refused {
			states = next
		}
		for i := range keys {
			if got[i] != packed(states[i]) {
				return fmt.Errorf("%+v at %d holds %s, want %s", rule, now, format(got[i]), format(packed(states[i])))
			}
			if !refused && lives[i] != 0 {
				if err := checkLife(ttl[i], lives[i], took); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// slidingEdges asks for the inputs at which only exact arithmetic tells: prev * (d - e) = m * d + 1, 0 or -1.
func slidingEdges(h *harness, rng *rand.Rand) error {
	d := 2_000_000_000_000 + rng.Int64N(678_400_000_000) // to 31 days
	prev := 500_000_000 + rng.Int64N(500_000_000)
	inverse := new(big.Int).ModInverse(big.NewInt(prev), big.NewInt(d))
	if inverse == nil {
		return nil // not coprime
	}
	for _, delta := range []int64{1, -1} {
		// prev * rest = delta modulo d
		rest := new(big.Int).Mod(new(big.Int).Mul(inverse, big.NewInt(delta)), big.NewInt(d)).Int64()
		m := new(big.Int).Div(product(prev, rest), big.NewInt(d)).Int64()
		if delta < 0 {
			m++ // prev * rest = m*d - 1
		}
		start := (1_700_000_000_000_000/d + 1) * d
		now, limit := start+d-rest, m+1
		w := win{op: opSliding, limit: limit, d: d}
		if limit > 1_000_000_000 || prev == 0 {
			continue
		}
		key := h.fresh()
		if _, err := h.conn.Do("SET", key, packed(count{0, prev, start - 1}).(string), "PX", "3600000"); err != nil {
			return err
		}
		arg := head(1, w.encode(1, flagLast, 1))
		reply, states, _, _, err := h.call(now, []string{key}, arg)
		if err != nil {
			return err
		}
		v := w.view(count{0, prev, start - 1}, now)
		if want := doubles(w.saw(v)...); reply != want {
			return errors.New("saw " + FormatCall(arg, reply))
		}
		if took, fits := states[0] != packed(count{0, prev, start - 1}), w.fits(v, 1); took != fits || fits != (delta < 0) {
			return fmt.Errorf("prev %d, d %d, rest %d, m %d: taken %v, want %v", prev, d, rest, m, took, fits)
		}
	}
	return nil
}

func windows(h *harness) error {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		if err := windowScenario(h, rng); err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		for range 5 {
			if err := slidingEdges(h, rng); err != nil {
				return fmt.Errorf("seed %d: %w", seed, err)
			}
		}
	}
	return nil
}

func TestWindowsAgainstModel(t *testing.T) {
	t.Parallel()
	if err := windows(newHarness(t, redistest.Start(t, redistest.Single), script)); err != nil {
		t.Error(err)
	}
}

// The 23 and 25 hours of a day on which the clock is changed are just segments.
func TestCalendarSegments(t *testing.T) {
	t.Parallel()
	h := newHarness(t, redistest.Start(t, redistest.Single), script)
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	midnight := func(d int) int64 { return time.Date(2026, 3, d, 0, 0, 0, 0, berlin).UnixMicro() }
	w := win{op: opCalendar, limit: 2, boundary: [4]int64{midnight(28), midnight(29), midnight(30), midnight(31)}}
	key := []string{h.fresh()}
	ask := func(now int64) string {
		reply, _, _, _, err := h.call(now, key, head(1, w.encode(1, flagLast, 1)))
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	const hours = 3600 * 1e6
	for _, step := range []struct {
		now    int64
		cur, d float64
	}{
		{midnight(29) - 1, 0, 24 * hours},
		{midnight(29), 0, 23 * hours},
		{midnight(29) + 22*hours, 1, 23 * hours},
		{midnight(30) - 1, 2, 23 * hours}, // refused
		{midnight(30), 0, 24 * hours},
		{midnight(31), 0, 0}, // outside: nothing is taken
	} {
		if got, want := ask(step.now), doubles(step.cur, float64(step.now), step.d); got != want {
			t.Errorf("at %v:\n%s", time.UnixMicro(step.now).In(berlin), FormatCall(head(1, w.encode(1, flagLast, 1)), got))
		}
	}
}
