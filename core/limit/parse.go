package limit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// Parse reads a rule from configuration. It is the inverse of [Rule.String]: Parse(r.String()) == r for every valid r.
//
//	100/s                 PerSecond(100)
//	100/s burst 20        PerSecond(100).WithBurst(20)
//	60/m  1000/h  5000/d  PerMinute(60), PerHour(1000), PerDay(5000)
//	10/1m30s burst 3      Per(10, 90*time.Second).WithBurst(3)
//	unlimited             Unlimited()
//
// The period is s, m, h, d (24 hours) or a duration as [time.ParseDuration] reads it. Words are separated by blanks,
// and case matters. A text that Parse does not understand whole is an error; nothing is guessed, ignored or defaulted
// but the burst. What it reads is also validated: the error then wraps that of [Rule.Validate].
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
	return parseBurst(rule, words[1:])
}

// parseRate reads "100/s".
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
	per, err := parsePeriod(word{period, w.at + len(count) + 1})
	if err != nil {
		return Rule{}, err
	}
	return Per(n, per), nil
}

// parseBurst reads what may follow a rate: nothing, or "burst 500".
func parseBurst(rule Rule, words []word) (Rule, error) {
	if len(words) == 0 {
		return rule, nil
	}
	if words[0].text != "burst" {
		return Rule{}, fmt.Errorf(`%v is unknown; only "burst" and a number may follow the rate`, words[0])
	}
	if len(words) == 1 {
		return Rule{}, fmt.Errorf("%v has no number; write for example burst 500", words[0])
	}
	burst, err := parseNumber("burst", words[1])
	if err != nil {
		return Rule{}, err
	}
	if len(words) > 2 {
		if words[2].text == "burst" {
			return Rule{}, fmt.Errorf("%v is the second burst; write it once", words[2])
		}
		return Rule{}, fmt.Errorf("%v is unknown; nothing may follow the burst", words[2])
	}
	return rule.WithBurst(burst), nil
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
	"sec": "s", "second": "s", "seconds": "s", "S": "s",
	"min": "m", "minute": "m", "minutes": "m", "M": "m",
	"hr": "h", "hour": "h", "hours": "h", "H": "h",
	"day": "d", "days": "d", "D": "d",
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
	return 0, fmt.Errorf("period %v is unknown; write s, m, h, d or a duration like 1m30s or 250ms", w)
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
