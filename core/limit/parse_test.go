package limit_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the zones of the tests, whatever the machine has

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

		"10/m sliding":                       limit.Sliding(10, time.Minute),
		"10/1m0s sliding":                    limit.Sliding(10, time.Minute),
		"5000/d window":                      limit.Window(5000, 24*time.Hour),
		"3/1ms window":                       limit.Window(3, time.Millisecond),
		"5000/day":                           limit.Daily(5000),
		"5000/day UTC":                       limit.Daily(5000),
		"5000/day Local":                     limit.Daily(5000).In(time.Local),
		" 5000/day\tEurope/Berlin ":          limit.Daily(5000).In(berlin),
		"100000/month":                       limit.Monthly(100_000),
		"100000/month America/New_York":      limit.Monthly(100_000).In(zone("America/New_York")),
		"1000000000/744h sliding":            limit.Sliding(1e9, 744*time.Hour),
		"7/1.5s sliding":                     limit.Sliding(7, 1500*time.Millisecond),
		"5000/day America/Argentina/Ushuaia": limit.Daily(5000).In(zone("America/Argentina/Ushuaia")),
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
		"100/fortnight":                      `period "fortnight" (at 5) is unknown; write s, m, h, d, day, month or a duration like 1m30s or 250ms`,
		"100/s/m":                            `period "s/m" (at 5) is unknown; write s, m, h, d, day, month or a duration like 1m30s or 250ms`,
		"100/+1s":                            `period "+1s" (at 5) is unknown; write s, m, h, d, day, month or a duration like 1m30s or 250ms`,
		"100/1..5s":                          `period "1..5s" (at 5) is unknown; write s, m, h, d, day, month or a duration like 1m30s or 250ms`,
		"100/-":                              `period "-" (at 5) is unknown; write s, m, h, d, day, month or a duration like 1m30s or 250ms`,
		"100/sec":                            `period "sec" (at 5) is unknown; did you mean s?`,
		"100/Day":                            `period "Day" (at 5) is unknown; did you mean day?`,
		"100/minute":                         `period "minute" (at 5) is unknown; did you mean m?`,
		"100/2d":                             `period "2d" (at 5): a number of days is written in hours, for example 48h`,
		"1/9999999999h":                      `period "9999999999h" (at 3) is too long; the longest is 744h0m0s`,
		"1/99999999999999999999s":            `period "99999999999999999999s" (at 3) is too long; the longest is 744h0m0s`,
		"100/s burst":                        `"burst" (at 7) has no number; write for example burst 500`,
		"100/s burst many":                   `burst "many" (at 13) is not a whole number; write digits only, for example 100`,
		"100/s burst +20":                    `burst "+20" (at 13) is not a whole number; write digits only, for example 100`,
		"100/s burst burst 5":                `burst "burst" (at 13) is not a whole number; write digits only, for example 100`,
		"100/s burst 9999999999999999999999": `burst "9999999999999999999999" (at 13); the largest is 1000000000`,
		"100/s burts 500":                    `"burts" (at 7) is unknown; "burst" and a number, "sliding" or "window" may follow the rate`,
		"100/s Burst 500":                    `"Burst" (at 7) is unknown; "burst" and a number, "sliding" or "window" may follow the rate`,
		"100/s burst=500":                    `"burst=500" (at 7) is unknown; "burst" and a number, "sliding" or "window" may follow the rate`,
		"100/s 500":                          `"500" (at 7) is unknown; "burst" and a number, "sliding" or "window" may follow the rate`,
		"100/s, burst 500":                   `period "s," (at 5) is unknown; write s, m, h, d, day, month or a duration like 1m30s or 250ms`,
		"100/s burst 500 burst 600":          `"burst" (at 17) is the second burst; write it once`,
		"100/s burst 500 please":             `"please" (at 17) is unknown; nothing may follow the burst`,
		"unlimited burst 5":                  `"burst" (at 11) follows "unlimited", which stands alone`,
		"100/s\x00":                          `period "s\x00" (at 5) is unknown; write s, m, h, d, day, month or a duration like 1m30s or 250ms`,
		"100/week":                           `period "week" (at 5) is unknown; did you mean 168h?`,
		"100/months":                         `period "months" (at 5) is unknown; did you mean month?`,
		"day":                                `"day" (at 1) is not a rate; write for example "100/s" or "unlimited"`,
		"/day":                               `rate "/day" (at 1) has no count before the slash; write for example 100/s, without blanks`,
		"many/month":                         `count "many" (at 1) is not a whole number; write digits only, for example 100`,
		"100/day/month":                      `period "day/month" (at 5) is unknown; write s, m, h, d, day, month or a duration like 1m30s or 250ms`,
		"10/m burst 5 sliding":               `"sliding" (at 14) follows a burst, which a window has not; leave out one of them`,
		"10/m sliding burst 5":               `"burst" (at 14) follows "sliding", and a window has no burst; leave out one of them`,
		"10/m window burst":                  `"burst" (at 13) follows "window", and a window has no burst; leave out one of them`,
		"10/m sliding window":                `"window" (at 14) follows "sliding"; a rule is one of them`,
		"10/m sliding sliding":               `"sliding" (at 14) follows "sliding"; a rule is one of them`,
		"10/m sliding 5":                     `"5" (at 14) is unknown; nothing may follow "sliding"`,
		"10/m Sliding":                       `"Sliding" (at 6) is unknown; "burst" and a number, "sliding" or "window" may follow the rate`,
		"10/m fixed":                         `"fixed" (at 6) is unknown; "burst" and a number, "sliding" or "window" may follow the rate`,
		"5000/d Europe/Berlin":               `"Europe/Berlin" (at 8) is a time zone, which may follow a day or month only; write for example 5000/day Europe/Berlin`,
		"5000/d UTC":                         `"UTC" (at 8) is a time zone, which may follow a day or month only; write for example 5000/day Europe/Berlin`,
		"10/m sliding Europe/Berlin":         `"Europe/Berlin" (at 14) is a time zone, which may follow a day or month only; write for example 5000/day Europe/Berlin`,
		"10/m Europe/Nowhere":                `"Europe/Nowhere" (at 6) is a time zone, which may follow a day or month only; write for example 5000/day Europe/Berlin`,
		"5000/day burst 5":                   `"burst" (at 10) follows a day or month, and a window has no burst; for 24 hours without a midnight write d`,
		"5000/day sliding":                   `"sliding" (at 10) follows a day or month, which is a window from midnight to midnight; for 24 hours write d`,
		"5000/month window":                  `"window" (at 12) follows a day or month, which is a window from midnight to midnight; for 24 hours write d`,
		"5000/day Europe/Nowhere":            `time zone "Europe/Nowhere" (at 10) is unknown, or no zones are installed here (import time/tzdata); write for example 5000/day Europe/Berlin`,
		"5000/day Berlin":                    `time zone "Berlin" (at 10) is unknown, or no zones are installed here (import time/tzdata); write for example 5000/day Europe/Berlin`,
		"5000/day ../../etc/passwd":          `time zone "../../etc/passwd" (at 10) is unknown, or no zones are installed here (import time/tzdata); write for example 5000/day Europe/Berlin`,
		"5000/day /etc/localtime":            `time zone "/etc/localtime" (at 10) is unknown, or no zones are installed here (import time/tzdata); write for example 5000/day Europe/Berlin`,
		"5000/day Europe/Berlin UTC":         `"UTC" (at 24) is unknown; nothing may follow the time zone`,
		"unlimited sliding":                  `"sliding" (at 11) follows "unlimited", which stands alone`,
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
		"0/m sliding":          limit.Sliding(0, time.Minute),
		"-1/day":               limit.Daily(-1),
		"0/month UTC":          limit.Monthly(0),
		"2000000000/day":       limit.Daily(2e9),
		"5/0s window":          limit.Window(5, 0),
		"5/-1s window":         limit.Window(5, -time.Second),
		"5/999us window":       limit.Window(5, 999*time.Microsecond),
		"5/1000001ns sliding":  limit.Sliding(5, 1_000_001),
		"5/745h sliding":       limit.Sliding(5, 745*time.Hour),
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
		"1/day " + strings.Repeat("x", 1e5), "1/month " + strings.Repeat("A/", 1e5), "1/s sliding " + strings.Repeat("x", 1e5),
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

// berlin is loaded as Parse loads it: another *time.Location of the same name is another zone.
var berlin = zone("Europe/Berlin")

func zone(name string) *time.Location {
	rule, err := limit.Parse("1/day " + name)
	if err != nil {
		panic(err)
	}
	return rule.Zone()
}

// randomRule returns a valid bucket, of any size and also with periods of nanoseconds that reduce to microseconds.
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
		for _, want := range []limit.Rule{randomRule(), randomWindow()} {
			if got, err := limit.Parse(want.String()); err != nil || got != want {
				t.Fatalf("Parse(%q) = %#v, %v; want %#v", want, got, err, want)
			}
		}
	}
}

// randomWindow returns a valid rule of any kind of window.
func randomWindow() limit.Rule {
	n := 1 + rand.IntN(1+1e9>>rand.IntN(30)-1)
	d := time.Duration(1000+rand.Int64N(744*3600*1e6-1000)>>rand.IntN(20)) * time.Microsecond
	d = max(d, time.Millisecond)
	loc := []*time.Location{time.UTC, time.Local, berlin, zone("America/New_York"), zone("Pacific/Kiritimati")}[rand.IntN(5)]
	return []limit.Rule{limit.Window(n, d), limit.Sliding(n, d), limit.Daily(n).In(loc), limit.Monthly(n).In(loc)}[rand.IntN(4)]
}

// Whatever is accepted is valid, prints as something equal, and nothing panics.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"100/s", "100/s burst 20", "60/m", "1000/h", "5000/d", "10/1m30s burst 3", "10/1.5us", "7/3µs", "unlimited",
		"", "none", "100", "/", "1/", "0/s", "100/s burts 1", "1/2d", "1/1e9s", "-1/-1s burst -1", "10/m sliding",
		"5000/d window", "5000/day Europe/Berlin", "100000/month America/New_York", "5000/day Local", "1/day burst 1", "1/ms window",
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
