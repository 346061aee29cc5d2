package limit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// Parse reads a rule from configuration. It is the inverse of [Rule.String]: Parse(r.String()) == r for every valid r.
//
//	100/s                   PerSecond(100)
//	100/s burst 20          PerSecond(100).WithBurst(20)
//	60/m  1000/h  5000/d    PerMinute(60), PerHour(1000), PerDay(5000)
//	10/1m30s burst 3        Per(10, 90*time.Second).WithBurst(3)
//	5000/d window           Window(5000, 24*time.Hour)
//	10/m sliding            Sliding(10, time.Minute)
//	5000/day                Daily(5000)
//	5000/day Europe/Berlin  Daily(5000).In(that zone)
//	100000/month            Monthly(100000)
//	unlimited               Unlimited()
//
// The period is s, m, h, d (24 hours) or a duration as [time.ParseDuration] reads it; or day or month, which make the
// rule a window of the calendar, in UTC unless a zone follows. Words are separated by blanks, and case matters. A text
// that Parse does not understand whole is an error; nothing is guessed, ignored or defaulted but burst and zone. What it
// reads is also validated: the error then wraps that of [Rule.Validate].
//
// A zone is loaded with [time.LoadLocation], once: equal names give equal rules. It may be Local, which is the zone of
// the machine. A zone that was made otherwise, with [time.FixedZone] or by a load of one's own, is not equal to it.
func Parse(text string) (Rule, error) {
	rule, err := parse(text)
	if err == nil {
		err = rule.Validate()
	}
	if err != nil {
		return Rule{}, fmt.Errorf("limit: Parse: %s: %w", quote(text), err)
	}
	return rule, nil
}

func parse(text string) (Rule, error) {
	words := split(text)
	if len(words) == 0 {
		return Rule{}, errors.New(`nothing to read; write for example "100/s" or "100/s burst 500"`)
	}
	if words[0].text == "unlimited" {
		if len(words) > 1 {
			return Rule{}, fmt.Errorf(`%v follows "unlimited", which stands alone`, words[1])
		}
		return Unlimited(), nil
	}
	rule, err := parseRate(words[0])
	if err != nil {
		return Rule{}, err
	}
	rest := words[1:]
	switch {
	case len(rest) == 0:
		return rule, nil
	case rule.IsWindow():
		return parseZone(rule, rest)
	case rest[0].text == "burst":
		return parseBurst(rule, rest)
	case kinds[rest[0].text] != driver.KindNone:
		return parseKind(rule, rest)
	case isZone(rest[0].text):
		return Rule{}, fmt.Errorf("%v is a time zone, which may follow a day or month only; write for example %s", rest[0], exampleDay)
	}
	return Rule{}, fmt.Errorf(`%v is unknown; "burst" and a number, "sliding" or "window" may follow the rate`, rest[0])
}

const exampleDay = "5000/day Europe/Berlin"

// parseRate reads "100/s": a bucket, or with day or month a window.
func parseRate(w word) (Rule, error) {
	count, period, slash := strings.Cut(w.text, "/")
	switch {
	case !slash && isNumber(count):
		return Rule{}, fmt.Errorf("rate %v has no period; write for example %s/s, or %[2]s/m, %[2]s/h, %[2]s/d, %[2]s/1m30s", w, example(count))
	case !slash:
		return Rule{}, fmt.Errorf(`%v is not a rate; write for example "100/s" or "unlimited"`, w)
	case count == "":
		return Rule{}, fmt.Errorf("rate %v has no count before the slash; write for example 100/s, without blanks", w)
	case period == "":
		return Rule{}, fmt.Errorf("rate %v has no period after the slash; write for example %s/s, without blanks", w, example(count))
	}
	n, err := parseNumber("count", word{count, w.at})
	if err != nil {
		return Rule{}, err
	}
	switch period {
	case "day":
		return Daily(n), nil
	case "month":
		return Monthly(n), nil
	}
	per, err := parsePeriod(word{period, w.at + len(count) + 1})
	if err != nil {
		return Rule{}, err
	}
	return Per(n, per), nil
}

// parseBurst reads "burst 500".
func parseBurst(rule Rule, words []word) (Rule, error) {
	if len(words) == 1 {
		return Rule{}, fmt.Errorf("%v has no number; write for example burst 500", words[0])
	}
	burst, err := parseNumber("burst", words[1])
	if err != nil {
		return Rule{}, err
	}
	if len(words) > 2 {
		switch next := words[2]; {
		case next.text == "burst":
			return Rule{}, fmt.Errorf("%v is the second burst; write it once", next)
		case kinds[next.text] != driver.KindNone:
			return Rule{}, fmt.Errorf("%v follows a burst, which a window has not; leave out one of them", next)
		default:
			return Rule{}, fmt.Errorf("%v is unknown; nothing may follow the burst", next)
		}
	}
	return rule.WithBurst(burst), nil
}

// kinds are the words that make a window of a rate.
var kinds = map[string]driver.Kind{"window": driver.KindFixed, "sliding": driver.KindSliding}

// parseKind reads "sliding" or "window".
func parseKind(rule Rule, words []word) (Rule, error) {
	kind := words[0]
	if len(words) > 1 {
		switch next := words[1]; {
		case next.text == "burst":
			return Rule{}, fmt.Errorf("%v follows %q, and a window has no burst; leave out one of them", next, kind.text)
		case kinds[next.text] != driver.KindNone:
			return Rule{}, fmt.Errorf("%v follows %q; a rule is one of them", next, kind.text)
		case isZone(next.text):
			return Rule{}, fmt.Errorf("%v is a time zone, which may follow a day or month only; write for example %s", next, exampleDay)
		default:
			return Rule{}, fmt.Errorf("%v is unknown; nothing may follow %q", next, kind.text)
		}
	}
	count, period := rule.Rate()
	return driver.NewWindow(kinds[kind.text], count, period), nil
}

// parseZone reads what may follow a day or month: "Europe/Berlin".
func parseZone(rule Rule, words []word) (Rule, error) {
	switch zone := words[0]; {
	case zone.text == "burst":
		return Rule{}, fmt.Errorf("%v follows a day or month, and a window has no burst; for 24 hours without a midnight write d", zone)
	case kinds[zone.text] != driver.KindNone:
		return Rule{}, fmt.Errorf("%v follows a day or month, which is a window from midnight to midnight; for 24 hours write d", zone)
	case len(words) > 1:
		return Rule{}, fmt.Errorf("%v is unknown; nothing may follow the time zone", words[1])
	default:
		loc, err := loadZone(zone.text)
		if err != nil {
			return Rule{}, fmt.Errorf("time zone %v is unknown, or no zones are installed here (import time/tzdata); write for example %s", zone, exampleDay)
		}
		return rule.In(loc), nil
	}
}

// loadZone returns the same location for the same name.
func loadZone(name string) (*time.Location, error) {
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location), nil
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, err
	}
	known, _ := zones.LoadOrStore(name, loc)
	return known.(*time.Location), nil
}

// zones are those that were loaded, by name. There are about 600.
var zones sync.Map

func isZone(name string) bool {
	_, err := loadZone(name)
	return err == nil || strings.Contains(name, "/")
}

// parseNumber reads a whole number. A sign of minus is read, so that Validate can name the smallest value accepted.
func parseNumber(what string, w word) (int, error) {
	if !isNumber(w.text) {
		return 0, fmt.Errorf("%s %v is not a whole number; write digits only, for example 100", what, w)
	}
	n, err := strconv.Atoi(w.text)
	switch {
	case err == nil:
		return n, nil
	case w.text[0] == '-':
		return 0, fmt.Errorf("%s %v; the smallest is 1", what, w)
	}
	return 0, fmt.Errorf("%s %v; the largest is %d", what, w, driver.MaxCount)
}

// isNumber says whether text is digits, perhaps after a minus. Atoi would take a plus as well, but "burst +20" means
// something else to whoever wrote it.
func isNumber(text string) bool {
	text = strings.TrimPrefix(text, "-")
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// singles are the periods that have a name of their own.
var singles = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}

// spelled are names that people write for them, which get a hint.
var spelled = map[string]string{
	"w": "168h", "week": "168h", "weeks": "168h", "months": "month", "Month": "month", "mo": "month", "Day": "day",
	"sec": "s", "second": "s", "seconds": "s", "S": "s",
	"min": "m", "minute": "m", "minutes": "m", "M": "m",
	"hr": "h", "hour": "h", "hours": "h", "H": "h",
	"days": "d", "D": "d",
}

func parsePeriod(w word) (time.Duration, error) {
	if d, ok := singles[w.text]; ok {
		return d, nil
	}
	if isNumber(w.text) { // also 0, which ParseDuration would accept
		return 0, fmt.Errorf("period %v has no unit; write for example %ss, %[2]sm or %[2]sh", w, example(w.text))
	}
	if d, err := time.ParseDuration(w.text); err == nil && w.text[0] != '+' {
		return d, nil
	}
	if name, ok := spelled[w.text]; ok {
		return 0, fmt.Errorf("period %v is unknown; did you mean %s?", w, name)
	}
	if days, isDays := strings.CutSuffix(w.text, "d"); isDays && isNumber(days) {
		return 0, fmt.Errorf("period %v: a number of days is written in hours, for example 48h", w)
	}
	if isDuration(w.text) {
		return 0, fmt.Errorf("period %v is too long; the longest is %v", w, driver.MaxPeriod)
	}
	return 0, fmt.Errorf("period %v is unknown; write s, m, h, d, day, month or a duration like 1m30s or 250ms", w)
}

// isDuration says whether text has the form of a duration. ParseDuration gives the same error for one that it does
// not understand and for one that does not fit 292 years.
func isDuration(text string) bool {
	text = strings.TrimPrefix(text, "-")
	if text == "" {
		return false
	}
	for text != "" {
		unit := strings.TrimLeft(text, "0123456789.")
		if _, err := strconv.ParseFloat(text[:len(text)-len(unit)], 64); err != nil && !errors.Is(err, strconv.ErrRange) {
			return false
		}
		text = strings.TrimLeft(unit, "nuµμmsh")
		switch unit[:len(unit)-len(text)] {
		case "ns", "us", "µs", "μs", "ms", "s", "m", "h":
		default:
			return false
		}
	}
	return true
}

// example is a number for a proposal: the user's own, unless it is no example to follow.
func example(number string) string {
	if !isNumber(number) || len(number) > 10 || number[0] == '-' {
		return "100"
	}
	return number
}

// word is a part of the text and where it begins, in bytes from 1.
type word struct {
	text string
	at   int
}

// String names the word in an error.
func (w word) String() string { return fmt.Sprintf("%s (at %d)", quote(w.text), w.at) }

// split returns the words of text.
func split(text string) []word {
	var words []word
	for at := 0; ; {
		rest := strings.TrimLeft(text[at:], blanks)
		if rest == "" {
			return words
		}
		at = len(text) - len(rest)
		length := strings.IndexAny(rest, blanks)
		if length < 0 {
			length = len(rest)
		}
		words = append(words, word{rest[:length], at + 1})
		at += length
	}
}

// blanks separate words: those that a person or a configuration file may leave around them.
const blanks = " \t\r\n"

// quote quotes text, the beginning of it if it is long: an error is one line whatever was read.
func quote(text string) string {
	const longest = 60
	if len(text) > longest {
		return strconv.Quote(text[:longest]) + "..."
	}
	return strconv.Quote(text)
}
