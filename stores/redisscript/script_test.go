package redisscript

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
)

const day = 24 * time.Hour

// rules are where the arithmetic is at its limits, and some from everyday life.
var rules = []driver.Rule{
	bucket(100, time.Second, 500),
	bucket(7, time.Second, 3),
	bucket(1, day, 1),
	bucket(999_999, day, 999_999),
	bucket(1_000_000_000, time.Second, 10),
	bucket(1_000_000_000, time.Second, 1_000_000_000),
	bucket(999_999_937, 31*day, 1_000_000_000), // wide: 999,999,937 per 2.7e12
	bucket(1, 31*day, 1_000_000_000),
	bucket(999_999_937, 31*day, 7),
	bucket(2, 3*time.Microsecond, 5),
	bucket(1, time.Microsecond, 1),
	bucket(1, 4*time.Microsecond, 1_000),
	bucket(999_983, 86_399*time.Second, 12_345),
	bucket(1000, 100*time.Second, 20),
}

// script of times, random but for its seed: what a scenario asks for.
type scenario struct {
	h     *harness
	rng   *rand.Rand
	model model
	now   int64
	keys  []string
	rules []driver.Rule
	wait  time.Duration // of the last refusal
	shade []bool        // keys that are claimed in shadow only
}

func newScenario(h *harness, seed uint64) *scenario {
	s := &scenario{h: h, rng: rand.New(rand.NewPCG(seed, 42)), model: model{}, now: 1_000_000_000_000_000}
	for range 2 + s.rng.IntN(4) {
		s.keys = append(s.keys, h.fresh())
		s.shade = append(s.shade, s.rng.IntN(4) == 0)
	}
	s.shade[0] = false
	for range 1 + s.rng.IntN(3) {
		s.rules = append(s.rules, rules[s.rng.IntN(len(rules))])
	}
	return s
}

// tick moves the clock: not at all, a little, to the edge of the last wait, far, or backward.
func (s *scenario) tick() {
	switch s.rng.IntN(8) {
	case 0, 1:
	case 2:
		s.now += s.rng.Int64N(20)
	case 3:
		s.now += s.rng.Int64N(2_000_000)
	case 4:
		s.now -= s.rng.Int64N(3_000_000)
	case 5:
		s.now += s.rng.Int64N(1 << (1 + s.rng.IntN(48)))
	default:
		if us := s.wait.Microseconds(); us < 1<<50 {
			s.now += max(0, us+s.rng.Int64N(3)-1)
		}
	}
	s.now = min(max(s.now, 1), driver.MaxMicros)
}

// cost is what is left of the bucket or a little off, most often.
func (s *scenario) cost(key string, rule driver.Rule) int {
	whole := int(s.model[key].Read(rule, s.now).Whole)
	switch s.rng.IntN(8) {
	case 0:
		return 0
	case 1:
		return max(0, whole)
	case 2:
		return max(0, whole+1)
	case 3:
		return rule.Capacity() + s.rng.IntN(3)
	case 4:
		return 1 + s.rng.IntN(rule.Capacity())
	}
	return 1
}

func (s *scenario) claim() driver.Claim {
	i := s.rng.IntN(len(s.keys))
	rule := s.rules[s.rng.IntN(len(s.rules))]
	return driver.Claim{Policy: "p", Subject: s.keys[i], Rule: rule, Cost: s.cost(s.keys[i], rule), Shadow: s.shade[i]}
}

// step runs one call and says what was different from the model.
func (s *scenario) step() error {
	s.tick()
	if s.rng.IntN(10) == 0 {
		return s.settle()
	}
	var batch []driver.Entry
	switch s.rng.IntN(3) {
	case 0: // the fast path
		batch = []driver.Entry{{Claims: []driver.Claim{s.claim()}}}
	case 1: // many alike
		c := s.claim()
		for range 1 + s.rng.IntN(20) {
			if s.rng.IntN(3) == 0 {
				c = s.claim()
			}
			batch = append(batch, driver.Entry{Claims: []driver.Claim{c}})
		}
	default:
		for range 1 + s.rng.IntN(6) {
			var e driver.Entry
			for range 1 + s.rng.IntN(4) {
				e.Claims = append(e.Claims, s.claim())
			}
			batch = append(batch, e)
		}
	}
	return s.decide(batch)
}

func (s *scenario) decide(batch []driver.Entry) error {
	var r request
	want := make([]driver.Entry, len(batch))
	for i := range batch {
		if err := r.add("hg", &batch[i]); err != nil {
			s.h.t.Fatal(err)
		}
		want[i].Claims = append([]driver.Claim(nil), batch[i].Claims...)
	}
	s.model.decide(s.now, want)
	if err := s.run(&r, batch); err != nil {
		return err
	}
	from := 0
	for i := range batch {
		from += r.answer(&batch[i], from)
	}
	if !reflect.DeepEqual(batch, want) {
		return fmt.Errorf("at %d\n got %+v\nwant %+v", s.now, batch, want)
	}
	for i := range batch {
		for j := range batch[i].Claims {
			if wait := batch[i].Claims[j].Result.RetryAfter; wait > 0 {
				s.wait = wait
			}
		}
	}
	return nil
}

func (s *scenario) settle() error {
	c := s.claim()
	amount := s.rng.IntN(2*c.Rule.Capacity()+3) - c.Rule.Capacity() - 1
	change := driver.Change{Kind: driver.Settle, Policy: c.Policy, Subject: c.Subject, Rule: c.Rule, Amount: amount}
	var r request
	if err := r.addChange("hg", &change); err != nil {
		s.h.t.Fatal(err)
	}
	if amount == 0 {
		return nil
	}
	s.model.settle(s.now, c.Subject, c.Rule, amount)
	return s.run(&r, nil)
}

// run makes the call, and compares what is stored then, and for how long, with the model.
func (s *scenario) run(r *request, batch []driver.Entry) error {
	var p pack
	before := make(map[string]any)
	arg := p.encode([]*request{r})
	reply, states, lives, took, err := s.h.call(s.now, p.keys, arg)
	if err != nil {
		return err
	}
	for key, b := range s.model {
		before[s.key(key)] = stored(b)
	}
	for i, key := range p.keys {
		if states[i] != before[key] {
			return fmt.Errorf("at %d key %s holds %v, want %v; call:\n%s", s.now, key, format(states[i]), format(before[key]), FormatCall(arg, reply))
		}
		if states[i] != nil && lives[i] < hour/2 {
			return fmt.Errorf("key %s lives %d ms", key, lives[i])
		}
	}
	if err := p.decode(reply); err != nil {
		return err
	}
	if len(r.claims) == 1 && r.claims[0].flags&flagSettle == 0 {
		c := &batch[0].Claims[0]
		if level := r.claims[0].level(); c.Cost > 0 && level.Fits(c.Cost) {
			return checkLife(lives[0], fillMillis(s.model[c.Subject], c.Rule, level.Num), took)
		}
	}
	return nil
}

func (s *scenario) key(subject string) string {
	return string(appendKey(nil, "hg", "p", subject, kindBucket))
}

func format(state any) string {
	text, ok := state.(string)
	if !ok {
		return "nothing"
	}
	return FormatState(text)
}

// compare runs scenarios until one differs from the model, and returns the difference.
func compare(h *harness, scenarios int, seed uint64) error {
	for i := range scenarios {
		s := newScenario(h, seed+uint64(i))
		for j := range 30 {
			if err := s.step(); err != nil {
				return fmt.Errorf("seed %d, step %d: %w", seed+uint64(i), j, err)
			}
		}
	}
	return nil
}

func TestScriptAgainstModel(t *testing.T) {
	t.Parallel()
	h := newHarness(t, redistest.Start(t, redistest.Single), script)
	if err := compare(h, 400, 1); err != nil {
		t.Error(err)
	}
}
