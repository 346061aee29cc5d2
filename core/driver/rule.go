package driver

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// The supported range. Inside it every combination is exact in every store; what is outside is refused by [Rule.Validate].
const (
	MaxCount  = 1_000_000_000       // tokens of a reduced rate, burst, and tokens per second
	MaxPeriod = 31 * 24 * time.Hour // of a reduced rate
	// MaxMicros bounds the clock: 2^52 microseconds after 1970, in the year 2112.
	MaxMicros = 1<<52 - 1
)

// Kind is the algorithm of a [Rule].
type Kind uint8

const (
	// KindNone is the zero value: no rule was given.
	KindNone Kind = iota
	// KindUnlimited limits nothing; stores are never asked about it.
	KindUnlimited
	// KindBucket is a token bucket.
	KindBucket
	// KindFixed is a window of fixed length, aligned to the Unix epoch.
	KindFixed
	// KindSliding is a window of fixed length together with the one before it, weighted by its overlap.
	KindSliding
	// KindDaily is a window from midnight to midnight of a time zone.
	KindDaily
	// KindMonthly is a window from the first of a month to the first of the next one.
	KindMonthly
	// KindSlots counts leases held at one time.
	KindSlots
)

// Rule is how much of something a key may use. It is a comparable value, made by the constructors of package limit;
// the zero value is no rule. Constructors accept anything: what is wrong is said by Validate.
type Rule struct {
	kind  Kind
	burst int            // the capacity; of a window its count
	count int            // as written
	per   time.Duration  // as written
	n, p  int64          // the rate in lowest terms: n tokens per p microseconds; 0 if it has none
	loc   *time.Location // of a calendar rule
}

// Unlimited is the rule that limits nothing.
func Unlimited() Rule { return Rule{kind: KindUnlimited} }

// NewBucket is a token bucket that refills with count tokens per period, continuously, and holds burst tokens at most
// (the default is [Rule.WithBurst]'s to change): the larger of count and five seconds of the rate, at most 1e9.
func NewBucket(count int, period time.Duration) Rule {
	r := Rule{kind: KindBucket, count: count, per: period}
	if count > 0 && period > 0 {
		r.n, r.p = reduce(int64(count), int64(period))
	}
	r.burst = defaultBurst(count, period)
	return r
}

// reduce returns count tokens per period nanoseconds in lowest terms of tokens per microseconds.
func reduce(count, period int64) (n, p int64) {
	g := gcd(count, period)
	count, period = count/g, period/g
	g = gcd(1000, period)
	if count > math.MaxInt64/1000 {
		return math.MaxInt64, period / g // far outside the range; Validate says so
	}
	return count * (1000 / g), period / g
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func defaultBurst(count int, period time.Duration) int {
	if count <= 0 || period <= 0 {
		return max(count, 1) // the rate is what Validate reports
	}
	hi, lo := bits.Mul64(uint64(count), uint64(5*time.Second)) // doubles are one token short for some rates
	if hi >= uint64(period) {
		return MaxCount
	}
	fiveSeconds, _ := bits.Div64(hi, lo, uint64(period))
	return int(min(max(uint64(count), fiveSeconds), MaxCount))
}

// NewWindow is a window rule: count per window. The kind is KindFixed or KindSliding with a period, or KindDaily or
// KindMonthly, whose period says nothing and whose zone is UTC unless [Rule.In] names another.
func NewWindow(kind Kind, count int, period time.Duration) Rule {
	r := Rule{kind: kind, burst: count, count: count, per: period}
	switch kind {
	case KindDaily:
		r.per, r.loc = day, time.UTC
	case KindMonthly:
		r.per, r.loc = MaxPeriod, time.UTC
	}
	if count > 0 && r.per > 0 {
		r.n, r.p = reduce(int64(count), int64(r.per))
	}
	return r
}

const day = 24 * time.Hour

// IsWindow says whether the rule counts in windows.
func (r Rule) IsWindow() bool { return r.kind >= KindFixed && r.kind <= KindMonthly }

// In returns a calendar rule with the midnights of a time zone. On any other rule, and with nil, it is an error that
// [Rule.Validate] reports.
func (r Rule) In(zone *time.Location) Rule {
	if r.loc = zone; zone == nil {
		r.loc = noZone
	}
	return r
}

// noZone is what In was given instead of a zone: a mistake that Validate is to see, on every kind of rule.
var noZone = time.FixedZone("nil", 0)

// Zone returns the time zone of a calendar rule; nil for other rules, where they are valid.
func (r Rule) Zone() *time.Location { return r.loc }

// WithBurst returns the rule with a capacity of burst tokens: what a key that was idle may use at once. On any other rule
// than a bucket it is an error that [Rule.Validate] reports.
func (r Rule) WithBurst(burst int) Rule {
	if r.kind != KindBucket {
		r.p = burstGiven
		return r
	}
	r.burst = burst
	return r
}

// burstGiven is the period of a rule that was given a burst and cannot have one: a mistake that Validate is to see.
const burstGiven = -1

// WithCount returns a window rule with another count.
func (r Rule) WithCount(count int) Rule {
	changed := NewWindow(r.kind, count, r.per)
	changed.loc = r.loc
	return changed
}

// Kind returns the algorithm.
func (r Rule) Kind() Kind { return r.kind }

// IsZero says that no rule was given.
func (r Rule) IsZero() bool { return r == Rule{} }

// Capacity returns the number that Remaining counts down from: the burst of a bucket, the count of a window, the slots.
func (r Rule) Capacity() int { return r.burst }

// Rate returns the rate as it was written: count per period.
func (r Rule) Rate() (count int, period time.Duration) { return r.count, r.per }

// Reduced returns the rate in lowest terms: n tokens per p microseconds. Only meaningful for a valid rule.
func (r Rule) Reduced() (n, p int64) { return r.n, r.p }

// String returns the rule as limit.Parse reads it: "100/s", "100/s burst 20", "10/1m30s", "10/m sliding", "5000/d window",
// "5000/day Europe/Berlin", "unlimited"; "20 in flight" for slots, which only concurrency limiters have; "none" for the zero value. What is the default is left out: the burst, and the
// zone UTC.
func (r Rule) String() string {
	switch r.kind {
	case KindUnlimited:
		return "unlimited"
	case KindBucket:
		s := strconv.Itoa(r.count) + "/" + periodName(r.per)
		if r.burst != defaultBurst(r.count, r.per) {
			s += " burst " + strconv.Itoa(r.burst)
		}
		return s
	case KindFixed:
		return strconv.Itoa(r.count) + "/" + periodName(r.per) + " window"
	case KindSliding:
		return strconv.Itoa(r.count) + "/" + periodName(r.per) + " sliding"
	case KindDaily, KindMonthly:
		s := strconv.Itoa(r.count) + "/day"
		if r.kind == KindMonthly {
			s = strconv.Itoa(r.count) + "/month"
		}
		if r.loc != nil && r.loc != time.UTC {
			s += " " + r.loc.String()
		}
		return s
	case KindSlots:
		return strconv.Itoa(r.count) + " in flight"
	}
	return "none"
}

func periodName(d time.Duration) string {
	switch d {
	case time.Second:
		return "s"
	case time.Minute:
		return "m"
	case time.Hour:
		return "h"
	case 24 * time.Hour:
		return "d"
	}
	return d.String()
}

// Validate says everything that is wrong with the rule, one error each, joined; nil if nothing is. The zero rule is
// invalid: whoever allows it asks [Rule.IsZero] first.
func (r Rule) Validate() error {
	switch r.kind {
	case KindUnlimited:
		if r.p == burstGiven {
			return errors.New("an unlimited rule has no burst")
		}
		return r.validateZone()
	case KindBucket:
		return errors.Join(r.validateRate(), r.validateBurst(), r.validateZone())
	case KindFixed, KindSliding, KindDaily, KindMonthly:
		return errors.Join(r.validateWindow(), r.validateZone())
	case KindSlots:
		return errors.Join(r.validateSlots(), r.validateZone())
	}
	return errors.New("no rule; write for example limit.PerSecond(100)")
}

func (r Rule) validateRate() error {
	switch {
	case r.count < 1:
		return fmt.Errorf("rate %d per %v; the smallest count is 1 (Off is a mode, not a number)", r.count, r.per)
	case r.per <= 0:
		return fmt.Errorf("period %v; the shortest is 1us", r.per)
	case r.p > int64(MaxPeriod/time.Microsecond):
		if r.per%time.Microsecond != 0 && r.per <= MaxPeriod {
			return fmt.Errorf("period %v: the period must be a whole number of microseconds", r.per)
		}
		return fmt.Errorf("period %v; the longest is %v", r.per, MaxPeriod)
	case r.n > 1000*r.p:
		return fmt.Errorf("rate %d per %v; the largest is %d per second", r.count, r.per, MaxCount)
	case r.n > MaxCount:
		if r.per%time.Microsecond != 0 {
			return fmt.Errorf("period %v: the period must be a whole number of microseconds", r.per)
		}
		return fmt.Errorf("rate %d per %v; the largest count is %d", r.count, r.per, MaxCount)
	}
	return nil
}

func (r Rule) validateWindow() error {
	var errs []error
	if r.count < 1 || r.count > MaxCount {
		errs = append(errs, fmt.Errorf("count %d per window; 1 to %d (Off is a mode, not a number)", r.count, MaxCount))
	}
	switch {
	case r.per <= 0:
		errs = append(errs, fmt.Errorf("window %v; the shortest is 1ms", r.per))
	case r.per < time.Millisecond: // mostly a number of seconds that became nanoseconds
		errs = append(errs, fmt.Errorf("window %s is shorter than 1ms; did you mean %d*time.Second?", ascii(r.per), int64(r.per)))
	case r.per > MaxPeriod:
		errs = append(errs, fmt.Errorf("window %s; the longest is %v", ascii(r.per), MaxPeriod))
	case r.per%time.Microsecond != 0:
		errs = append(errs, fmt.Errorf("window %s: it must be a whole number of microseconds", ascii(r.per)))
	}
	if r.p == burstGiven {
		errs = append(errs, errors.New("a window has no burst"))
	}
	return errors.Join(errs...)
}

// ascii writes a duration with "us" for microseconds, as a person would type it.
func ascii(d time.Duration) string { return strings.ReplaceAll(d.String(), "µ", "u") }

func (r Rule) validateZone() error {
	calendar := r.kind == KindDaily || r.kind == KindMonthly
	switch {
	case !calendar && r.loc != nil:
		return errors.New("only Daily and Monthly have a time zone")
	case calendar && (r.loc == nil || r.loc == noZone):
		return errors.New("the time zone is nil; leave In out for UTC")
	case calendar && (r.loc.String() == "" || strings.ContainsAny(r.loc.String(), " \t\r\n")):
		return fmt.Errorf("time zone %q: its name must be one word, or the rule could not be written down", r.loc)
	}
	return nil
}

func (r Rule) validateBurst() error {
	if r.burst < 1 {
		return fmt.Errorf("burst %d; the smallest is 1", r.burst)
	}
	if r.burst > MaxCount {
		return fmt.Errorf("burst %d; the largest is %d", r.burst, MaxCount)
	}
	return nil
}

// Refill returns the time in which a valid rule gives tokens at its rate, rounded up to a microsecond; it saturates at
// the longest duration.
func (r Rule) Refill(tokens int) time.Duration {
	hi, lo := bits.Mul64(uint64(tokens), uint64(r.p))
	lo, carry := bits.Add64(lo, uint64(r.n-1), 0)
	if hi += carry; hi >= uint64(r.n) {
		return math.MaxInt64
	}
	us, _ := bits.Div64(hi, lo, uint64(r.n))
	return Micros(int64(min(us, math.MaxInt64)))
}
