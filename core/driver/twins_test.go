package driver_test

import (
	"math"
	"math/bits"
	"testing"

	"github.com/headgate-go/headgate/core/driver"
)

// A test that cannot fail proves nothing. Each twin below is the bucket with one fault that somebody really shipped,
// or that the specification warns of; the comparison must find it. limit is how many steps it may take, a small part
// of what the property test does.
func TestBrokenTwinsAreCaught(t *testing.T) {
	const limit = 10_000
	for _, twin := range twins {
		t.Run(twin.name, func(t *testing.T) {
			t.Parallel()
			alg := theBucket()
			twin.breaks(&alg)
			n, err := run(alg, seeded(1), limit)
			if err == nil {
				t.Fatalf("no difference in %d steps, although: %s", limit, twin.why)
			}
			t.Logf("caught after %d steps: %v", n, err)
		})
	}
}

// twin is a broken variant.
type twin struct {
	name, why string
	breaks    func(*algorithm)
}

var twins = []twin{
	{"no wide path", "elapsed x n wraps at 64 bits, so a long idle key turns poor", func(a *algorithm) {
		a.read = reader{product: func(elapsed, n, num, p int64) (int64, int64) {
			u := uint64(elapsed)*uint64(n) + uint64(num)
			return clip(u / uint64(p)), int64(u % uint64(p))
		}}.read
	}},
	{"wide path in doubles", "above 2^53 a double is a neighbour of the product", func(a *algorithm) {
		a.read = reader{product: func(elapsed, n, num, p int64) (int64, int64) {
			u := float64(elapsed)*float64(n) + float64(num)
			return clip(uint64(u / float64(p))), int64(math.Mod(u, float64(p)))
		}}.read
	}},
	{"fraction floored on reading", "the numerator written does not come back", func(a *algorithm) {
		a.read = reader{fraction: func(x float64, p int64) int64 { return int64(x * float64(p)) }}.read
	}},
	{"fraction dropped on reading", "a poller faster than one token never gets it", func(a *algorithm) {
		a.read = reader{fraction: func(float64, int64) int64 { return 0 }}.read
	}},
	{"x not cut to 44 bits", "reads another numerator after a change of rule than a 16-byte cell does", func(a *algorithm) {
		a.read = func(s stored, rule driver.Rule, now int64) driver.Level {
			return reader{fraction: func(_ float64, p int64) int64 { return int64(s.loose*float64(p) + 0.5) }}.read(s, rule, now)
		}
		a.take = func(l driver.Level, rule driver.Rule, cost int) stored {
			_, p := rule.Reduced()
			return stored{Bucket: l.Take(rule, cost), loose: float64(l.Num) / float64(p)}
		}
		a.settle = func(l driver.Level, rule driver.Rule, amount int) stored {
			s := stored{Bucket: l.Settle(rule, amount)}
			if _, p := rule.Reduced(); s.Part > 0 {
				s.loose = float64(l.Num) / float64(p)
			}
			return s
		}
	}},
	{"elapsed time below zero", "a clock that steps back takes tokens away", func(a *algorithm) {
		a.read = func(s stored, rule driver.Rule, now int64) driver.Level {
			l := s.Read(rule, now)
			if n, p := rule.Reduced(); s.Time > now {
				l.Whole -= clip(uint64((s.Time - now) / p * n))
			}
			return l
		}
	}},
	{"timestamp moves back", "the time between is credited twice (BR-013)", func(a *algorithm) {
		a.read = func(s stored, rule driver.Rule, now int64) driver.Level {
			l := s.Read(rule, now)
			l.At = now
			return l
		}
	}},
	{"no debt clamp on settling", "one settlement can lock a key out for years", func(a *algorithm) {
		a.settle = func(l driver.Level, rule driver.Rule, amount int) stored {
			if amount = min(amount, 2*driver.MaxCount); int64(amount) > l.Whole {
				return stored{Bucket: l.Take(rule, amount)}
			}
			return stored{Bucket: l.Settle(rule, amount)}
		}
	}},
	{"no debt clamp on reading", "a smaller burst still owes the debt of the larger one", func(a *algorithm) {
		a.read = reader{debt: func(whole, num, _ int64) (int64, int64) { return whole, num }}.read
	}},
	{"fraction kept at the debt clamp", "debt clamped on reading begins a part of a token too high", func(a *algorithm) {
		a.read = reader{debt: func(whole, num, burst int64) (int64, int64) { return max(whole, -burst), num }}.read
	}},
	{"no cut to a smaller burst", "tokens counted under the old burst stay above the new one", func(a *algorithm) {
		a.read = func(s stored, rule driver.Rule, now int64) driver.Level {
			l := s.Read(rule, now)
			if s.Time != 0 && s.Whole > l.Whole {
				l.Whole = s.Whole
			}
			return l
		}
	}},
	{"fraction kept at full", "a bucket given back to full holds burst tokens and a part of another", func(a *algorithm) {
		a.settle = func(l driver.Level, rule driver.Rule, amount int) stored {
			s := stored{Bucket: l.Settle(rule, amount)}
			if s.Whole == int64(rule.Capacity()) {
				s.Part = l.Take(rule, 0).Part
			}
			return s
		}
	}},
	{"a refusal writes the credit", "time before a change of rule is credited at the old rate", func(a *algorithm) {
		a.refuse = func(_ stored, l driver.Level, rule driver.Rule, _ int64) stored {
			return stored{Bucket: l.Take(rule, 0)}
		}
	}},
	{"a refusal writes the timestamp", "fast polling starves its own refill (BR-021)", func(a *algorithm) {
		a.refuse = func(s stored, l driver.Level, _ driver.Rule, _ int64) stored {
			s.Whole, s.Part, s.Time = l.Whole, 0, l.At
			return s
		}
	}},
	{"a refusal consumes", "whoever retries is refused for ever (BR-039)", func(a *algorithm) {
		a.refuse = func(_ stored, l driver.Level, rule driver.Rule, _ int64) stored {
			return stored{Bucket: l.Settle(rule, 1)}
		}
	}},
	{"wait rounded down", "a client that waits is refused again", func(a *algorithm) {
		a.wait = func(l driver.Level, rule driver.Rule, target int64) int64 {
			us := l.Wait(rule, target)
			n, p := rule.Reduced()
			hi, lo := bits.Mul64(uint64(max(target-l.Whole, 0)), uint64(p))
			if us > 0 && us < math.MaxInt64 && hi == 0 && (lo-uint64(l.Num))%uint64(n) != 0 {
				us--
			}
			return us
		}
	}},
	{"wait forgets the fraction", "a client waits up to one token too long", func(a *algorithm) {
		a.wait = func(l driver.Level, rule driver.Rule, target int64) int64 {
			l.Num = 0
			return l.Wait(rule, target)
		}
	}},
	{"wait wraps", "a wait beyond 292 years comes out short or negative (BR-011)", func(a *algorithm) {
		a.wait = func(l driver.Level, rule driver.Rule, target int64) int64 {
			if target <= l.Whole {
				return 0
			}
			n, p := rule.Reduced()
			return ((target-l.Whole)*p - l.Num + n - 1) / n
		}
	}},
}

// reader is Bucket.Read written a second time, so that a twin can replace one part; nil parts are right.
type reader struct {
	fraction func(x float64, p int64) int64
	debt     func(whole, num, burst int64) (int64, int64)
	product  func(elapsed, n, num, p int64) (tokens, rest int64)
}

func (r reader) read(s stored, rule driver.Rule, now int64) driver.Level {
	n, p := rule.Reduced()
	burst := int64(rule.Capacity())
	if s.Time == 0 {
		return driver.Level{Whole: burst, At: now}
	}
	if r.fraction == nil {
		r.fraction = func(x float64, p int64) int64 { return int64(float64(x*float64(p)) + 0.5) }
	}
	if r.debt == nil {
		r.debt = func(whole, num, burst int64) (int64, int64) {
			if whole < -burst {
				return -burst, 0
			}
			return whole, num
		}
	}
	if r.product == nil {
		r.product = digits
	}
	at := max(now, s.Time)
	whole, num := r.debt(s.Whole, r.fraction(float64(s.Part)/(1<<44), p), burst)
	tokens, rest := r.product(at-s.Time, n, num, p)
	if whole += tokens; whole >= burst {
		whole, rest = burst, 0
	}
	return driver.Level{Whole: whole, Num: rest, At: at}
}

// digits divides elapsed x n + num by p as the Redis script does, in three digits to the base 1024.
func digits(elapsed, n, num, p int64) (tokens, rest int64) {
	whole, r := bits.Mul64(uint64(elapsed/p), uint64(n))
	if whole != 0 {
		return math.MaxInt32, 0
	}
	var q, b int64
	for shift := 20; shift >= 0; shift -= 10 {
		b = b<<10 + elapsed%p*(n>>shift&1023)
		q = q<<10 + b/p
		b %= p
	}
	q += (b + num) / p
	return clip(r + uint64(q)), (b + num) % p
}

// clip keeps a number of tokens far above any burst and below any overflow.
func clip(tokens uint64) int64 { return int64(min(tokens, 1<<40)) }

// The parts that twins replace are right when none is replaced, or a twin would be caught for the wrong reason.
// It is also the arithmetic of the Redis script, compared with the model in Go integers.
func TestReaderWithoutAFaultIsNotCaught(t *testing.T) {
	alg := theBucket()
	alg.read = reader{}.read
	if _, err := run(alg, seeded(1), 100_000); err != nil {
		t.Fatal(err)
	}
}
