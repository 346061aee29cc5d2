package limit_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/limit"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]limit.Rule{
		"100/s":              limit.PerSecond(100),
		"100/s burst 500":    limit.PerSecond(100),
		"100/s burst 20":     limit.PerSecond(100).WithBurst(20),
		"60/m":               limit.PerMinute(60),
		"1000/h":             limit.PerHour(1000),
		"5000/d":             limit.PerDay(5000),
		"5000/24h":           limit.PerDay(5000),
		"10/1m30s burst 3":   limit.Per(10, 90*time.Second).WithBurst(3),
		"10/90s":             limit.Per(10, 90*time.Second),
		"10/250ms":           limit.Per(10, 250*time.Millisecond),
		"10/1.5h":            limit.Per(10, 90*time.Minute),
		"7/3us":              limit.Per(7, 3*time.Microsecond),
		"7/3µs":              limit.Per(7, 3*time.Microsecond), // the micro sign, as Duration.String writes it
		"7/3μs":              limit.Per(7, 3*time.Microsecond), // the letter mu, as a Greek keyboard does
		"1000000000/s":       limit.PerSecond(1e9),
		"1/744h":             limit.Per(1, 744*time.Hour),
		"unlimited":          limit.Unlimited(),
		"  unlimited\n":      limit.Unlimited(), // YAML's block texts end in a line break
		"\t100/s  burst\t20": limit.PerSecond(100).WithBurst(20),
		"0100/s burst 020":   limit.PerSecond(100).WithBurst(20),
	} {
		if got, err := limit.Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}

// An error says what is wrong, where, and what would be right, in one line.
func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   `nothing to read; write for example "100/s" or "100/s burst 500"`,
		" \n":                                `nothing to read; write for example "100/s" or "100/s burst 500"`,
		"100":                                `rate "100" (at 1) has no period; write for example 100/s, or 100/m, 100/h, 100/d, 100/1m30s`,
		"100 burst 500":                      `rate "100" (at 1) has no period; write for example 100/s, or 100/m, 100/h, 100/d, 100/1m30s`,
		"99999999999999999999":               `rate "99999999999999999999" (at 1) has no period; write for example 100/s, or 100/m, 100/h, 100/d, 100/1m30s`,
		"100 / s":                            `rate "100" (at 1) has no period; write for example 100/s, or 100/m, 100/h, 100/d, 100/1m30s`,
		"100/":                               `rate "100/" (at 1) has no period after the slash; write for example 100/s, without blanks`,
		"/s":                                 `rate "/s" (at 1) has no count before the slash; write for example 100/s, without blanks`,
		"/":                                  `rate "/" (at 1) has no count before the slash; write for example 100/s, without blanks`,
		"many":                               `"many" (at 1) is not a rate; write for example "100/s" or "unlimited"`,
		"none":                               `"none" (at 1) is not a rate; write for example "100/s" or "unlimited"`,
		"Unlimited":                          `"Unlimited" (at 1) is not a rate; write for example "100/s" or "unlimited"`,
		"burst 500":                          `"burst" (at 1) is not a rate; write for example "100/s" or "unlimited"`,
		"many/s":                             `count "many" (at 1) is not a whole number; write digits only, for example 100`,
		"1.5/s":                              `count "1.5" (at 1) is not a whole number; write digits only, for example 100`,
		"1e3/s":                              `count "1e3" (at 1) is not a whole number; write digits only, for example 100`,
		"1_000/s":                            `count "1_000" (at 1) is not a whole number; write digits only, for example 100`,
		"+5/s":                               `count "+5" (at 1) is not a whole number; write digits only, for example 100`,
		"-/s":                                `count "-" (at 1) is not a whole number; write digits only, for example 100`,
		"99999999999999999999/s":             `count "99999999999999999999" (at 1); the largest is 1000000000`,
		"-99999999999999999999/s":            `count "-99999999999999999999" (at 1); the smallest is 1`,
		"100/60":                             `period "60" (at 5) has no unit; write for example 60s, 60m or 60h`,
		"100/0":                              `period "0" (at 5) has no unit; write for example 0s, 0m or 0h`,
		"100/fortnight":                      `period "fortnight" (at 5) is unknown; write s, m, h, d or a duration like 1m30s or 250ms`,
		"100/s/m":                            `period "s/m" (at 5) is unknown; write s, m, h, d or a duration like 1m30s or 250ms`,
		"100/+1s":                            `period "+1s" (at 5) is unknown; write s, m, h, d or a duration like 1m30s or 250ms`,
		"100/1..5s":                          `period "1..5s" (at 5) is unknown; write s, m, h, d or a duration like 1m30s or 250ms`,
		"100/-":                              `period "-" (at 5) is unknown; write s, m, h, d or a duration like 1m30s or 250ms`,
		"100/sec":                            `period "sec" (at 5) is unknown; did you mean s?`,
		"100/minute":                         `period "minute" (at 5) is unknown; did you mean m?`,
		"100/2d":                             `period "2d" (at 5): a number of days is written in hours, for example 48h`,
		"1/9999999999h":                      `period "9999999999h" (at 3) is too long; the longest is 744h0m0s`,
		"1/99999999999999999999s":            `period "99999999999999999999s" (at 3) is too long; the longest is 744h0m0s`,
		"100/s burst":                        `"burst" (at 7) has no number; write for example burst 500`,
		"100/s burst many":                   `burst "many" (at 13) is not a whole number; write digits only, for example 100`,
		"100/s burst +20":                    `burst "+20" (at 13) is not a whole number; write digits only, for example 100`,
		"100/s burst burst 5":                `burst "burst" (at 13) is not a whole number; write digits only, for example 100`,
		"100/s burst 9999999999999999999999": `burst "9999999999999999999999" (at 13); the largest is 1000000000`,
		"100/s burts 500":                    `"burts" (at 7) is unknown; only "burst" and a number may follow the rate`,
		"100/s Burst 500":                    `"Burst" (at 7) is unknown; only "burst" and a number may follow the rate`,
		"100/s burst=500":                    `"burst=500" (at 7) is unknown; only "burst" and a number may follow the rate`,
		"100/s 500":                          `"500" (at 7) is unknown; only "burst" and a number may follow the rate`,
		"100/s, burst 500":                   `period "s," (at 5) is unknown; write s, m, h, d or a duration like 1m30s or 250ms`,
		"100/s burst 500 burst 600":          `"burst" (at 17) is the second burst; write it once`,
		"100/s burst 500 please":             `"please" (at 17) is unknown; nothing may follow the burst`,
		"unlimited burst 5":                  `"burst" (at 11) follows "unlimited", which stands alone`,
		"100/s\x00":                          `period "s\x00" (at 5) is unknown; write s, m, h, d or a duration like 1m30s or 250ms`,
		"10/m sliding":                       `"sliding" (at 6) is unknown; only "burst" and a number may follow the rate`,
		"5000/d window":                      `"window" (at 8) is unknown; only "burst" and a number may follow the rate`,
		"5000/day Europe/Berlin":             `period "day" (at 6) is unknown; did you mean d?`,
		"5000/d Europe/Berlin":               `"Europe/Berlin" (at 8) is unknown; only "burst" and a number may follow the rate`,
	} {
		rule, err := limit.Parse(text)
		if err == nil {
			t.Errorf("Parse(%q) = %v, want an error", text, rule)
			continue
		}
		if !rule.IsZero() {
			t.Errorf("Parse(%q) returns %v beside its error", text, rule)
		}
		if got := afterText(t, text, err); got != want {
			t.Errorf("Parse(%q):\n     %s\nwant %s", text, got, want)
		}
	}
}

// afterText returns the error without its beginning, which names the function and what it was given.
func afterText(t *testing.T, text string, err error) string {
	t.Helper()
	_, after, ok := strings.Cut(err.Error(), `": `)
	if !ok || !strings.HasPrefix(err.Error(), `limit: Parse: "`) {
		t.Fatalf("Parse(%q): %q does not begin with the function and the text", text, err)
	}
	return after
}

// What was read is also valid: the error is that of Validate, with the text it came from.
func TestParseValidates(t *testing.T) {
	for text, rule := range map[string]limit.Rule{
		"0/s":                  limit.PerSecond(0),
		"-3/s":                 limit.PerSecond(-3),
		"100/0s":               limit.Per(100, 0),
		"100/-1s":              limit.Per(100, -time.Second),
		"1/745h":               limit.Per(1, 745*time.Hour),
		"1/1ns":                limit.Per(1, 1),
		"1/3ns":                limit.Per(1, 3),
		"2000000000/s":         limit.PerSecond(2e9),
		"100/s burst 0":        limit.PerSecond(100).WithBurst(0),
		"100/s burst -1":       limit.PerSecond(100).WithBurst(-1),
		"0/s burst 0":          limit.PerSecond(0).WithBurst(0),
		"1/s burst 1000000001": limit.PerSecond(1).WithBurst(1e9 + 1),
	} {
		_, err := limit.Parse(text)
		want := rule.Validate()
		if want == nil {
			if err != nil {
				t.Errorf("Parse(%q): %v, but Validate accepts %v", text, err, rule)
			}
			continue
		}
		if err == nil || afterText(t, text, err) != want.Error() {
			t.Errorf("Parse(%q): %v, want it to end in %q", text, err, want)
		}
	}
}

// An error stays readable whatever was read.
func TestParseErrorsAreShort(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("9", 1e5), strings.Repeat("9", 1e5) + "/s", "1/" + strings.Repeat("9", 1e5),
		"1/" + strings.Repeat("9", 1e5) + "h", strings.Repeat("x", 1e5), "1/s " + strings.Repeat("é", 1e5),
		"1/s burst " + strings.Repeat("9", 1e5), "unlimited " + strings.Repeat("\x00", 1e5),
	} {
		_, err := limit.Parse(text)
		if err == nil {
			t.Fatalf("%.20q... was accepted", text)
		}
		if message := err.Error(); len(message) > 800 || strings.Contains(message, "\n") {
			t.Errorf("%.20q...: an error of %d bytes: %.300s", text, len(message), message)
		}
	}
}

// randomRule returns a valid rule, of any size and also with periods of nanoseconds that reduce to microseconds.
func randomRule() limit.Rule {
	scaled := func(high int64) int64 { return 1 + rand.Int64N(1+high>>rand.IntN(62)) }
	for {
		period := time.Duration(scaled(int64(62 * 24 * time.Hour)))
		if rand.IntN(2) == 0 {
			period = []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour, time.Microsecond}[rand.IntN(5)]
		}
		rule := limit.Per(int(scaled(1e9)), period)
		switch rand.IntN(4) {
		case 0:
			rule = rule.WithBurst(int(scaled(1e9)))
		case 1:
			rule = rule.WithBurst(1)
		}
		if rule.Validate() == nil {
			return rule
		}
	}
}

// Parse is the inverse of String, so a rule can be shown, stored and read back by any tool.
func TestParseReadsWhatStringWrites(t *testing.T) {
	for range 20_000 {
		want := randomRule()
		if got, err := limit.Parse(want.String()); err != nil || got != want {
			t.Fatalf("Parse(%q) = %#v, %v; want %#v", want, got, err, want)
		}
	}
}

// Whatever is accepted is valid, prints as something equal, and nothing panics.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"100/s", "100/s burst 20", "60/m", "1000/h", "5000/d", "10/1m30s burst 3", "10/1.5us", "7/3µs", "unlimited",
		"", "none", "100", "/", "1/", "0/s", "100/s burts 1", "1/2d", "1/1e9s", "-1/-1s burst -1", "10/m sliding",
		"99999999999999999999/s", "1/99999999999999999999h", "100/s burst 1 burst 2", "unlimited burst 1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rule, err := limit.Parse(text)
		if err != nil {
			if !rule.IsZero() || !strings.HasPrefix(err.Error(), "limit: Parse: ") {
				t.Fatalf("Parse(%q) = %v, %v", text, rule, err)
			}
			return
		}
		if err := rule.Validate(); err != nil {
			t.Fatalf("Parse(%q) accepts what Validate does not: %v", text, err)
		}
		if again, err := limit.Parse(rule.String()); err != nil || again != rule {
			t.Fatalf("Parse(%q) is %v, which is read as %v, %v", text, rule, again, err)
		}
	})
}
