// Package limit says how much of something a key may use: one hundred requests per second with bursts to five hundred,
// a thousand per hour, or five thousand between midnight and midnight.
//
//	limit.PerSecond(100)                // 100 tokens a second; an idle key may use 500 at once
//	limit.PerSecond(100).WithBurst(20)  // the same rate, 20 at once
//	limit.PerHour(1000)                 // 1000 tokens an hour, 1000 at once
//	limit.Per(10, 90*time.Second)       // 10 tokens every minute and a half
//	limit.Sliding(10, time.Minute)      // 10 in any minute, nearly
//	limit.Window(5000, time.Hour)       // 5000 from full hour to full hour
//	limit.Daily(5000).In(berlin)        // 5000 from midnight to midnight in Berlin
//	limit.Monthly(100000)               // 100000 a calendar month, in UTC
//	limit.Unlimited()                   // no limit: what an "enterprise" plan is
//	limit.Parse("100/s burst 20")       // the same things, from configuration
//
// # The token bucket
//
// Each key has a bucket that holds at most burst tokens. A key never seen starts with a full one. A request takes as
// many tokens as it costs (1 unless you say otherwise) if they are there, and is refused without taking any if they
// are not. The bucket refills continuously at the rate: PerMinute(60) gives one token each second and not sixty at
// once each minute.
//
// In any span of time t a key is admitted at most burst + rate x t. GCRA, the algorithm that some other limiters
// name, admits exactly the same requests.
//
// # The default burst
//
// Without [Rule.WithBurst] the burst is the larger of the count and five seconds of the rate, at most 1e9:
//
//	PerSecond(100)   500     real clients are bursty; five seconds of a rate do not hurt a service that bears the rate
//	PerMinute(60)     60     five seconds would be 5, and who writes 60 per minute expects 60 to pass
//	PerHour(1000)   1000
//
// The burst is the number of requests of cost 1 that pass at one instant on a new key, not one more. A request that
// costs more than the burst can never pass.
//
// # Windows
//
// A window counts what was admitted and begins anew at its end. Windows do not begin with a client's first request: those
// of [Window] and [Sliding] are aligned to the Unix epoch (minutes and hours begin when the clock shows a full one, days
// at midnight UTC, weeks of 168 hours on Thursday), those of [Daily] and [Monthly] to the midnights of a time zone. So a
// fixed window admits up to twice its count around an edge, once before and once after. A sliding window does not:
// it also counts the window before, as much of it as a window that ends now would overlap. That assumes that the requests
// of the window before came evenly; the numbers are exact all the same.
//
// Which one to take: a bucket unless something else is asked for. It keeps no edge at which all clients come back, and
// tells a refused one the shortest wait. A sliding window is what quotas of an API usually promise; a calendar rule is
// what a contract says.
//
// Count, period and kind of a window can change while keys are in use: what was counted stays.
//
// # What is accepted
//
// Inside this range the arithmetic is exact in every store, on a clock of one microsecond:
//
//	count, reduced         1 to 1e9             Per(20, 2*time.Hour) reduces to 10 per hour
//	period, reduced        1us to 31 days       a whole number of microseconds
//	rate                   up to 1e9 per second
//	burst                  1 to 1e9
//	count of a window      1 to 1e9
//	window                 1ms to 31 days       a whole number of microseconds
//
// Constructors never fail and never panic: they keep what they are given, and [Rule.Validate] says everything that is
// wrong with it. Package gate calls it for each rule, so a wrong rule is an error when the gate is built and not at
// the first request. A limit of 0 is an error too: to switch a limiter off, set its mode.
//
// A window has no burst, and only Daily and Monthly have a zone: WithBurst and In on other rules are errors as well.
//
// A Rule is a small comparable value, safe to copy and to share between goroutines. Its zero value is no rule, which
// Validate refuses and [Rule.IsZero] finds.
package limit

import (
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// Rule is one limit. Make it with a constructor of this package or with [Parse]; change the burst of a bucket with
// WithBurst and the time zone of a calendar rule with In.
// Two rules are equal (==) if they were written with the same count, period, burst and *time.Location; PerMinute(60) and
// PerSecond(1).WithBurst(60) admit the same requests and are not equal, because they print differently.
type Rule = driver.Rule

// PerSecond is a token bucket that refills with n tokens per second, n from 1 to 1e9. Its burst is 5n, at most 1e9.
func PerSecond(n int) Rule { return Per(n, time.Second) }

// PerMinute is a token bucket that refills with n tokens per minute, n from 1 to 1e9. Its burst is n.
func PerMinute(n int) Rule { return Per(n, time.Minute) }

// PerHour is a token bucket that refills with n tokens per hour, n from 1 to 1e9. Its burst is n.
func PerHour(n int) Rule { return Per(n, time.Hour) }

// PerDay is a token bucket that refills with n tokens per 24 hours, n from 1 to 1e9. Its burst is n. It refills
// around the clock and knows no midnight.
func PerDay(n int) Rule { return Per(n, 24*time.Hour) }

// Per is a token bucket that refills with n tokens per period. Its burst is the larger of n and five seconds of the
// rate, at most 1e9. The period is a whole number of microseconds, up to 31 days once n and the period are reduced.
func Per(n int, period time.Duration) Rule { return driver.NewBucket(n, period) }

// Window admits n per window of length d, n from 1 to 1e9 and d from 1ms to 31 days. Its windows are aligned to the Unix
// epoch, in UTC: a window of an hour begins at the full hour, one of 24 hours at midnight UTC, one of 168 hours on
// Thursday. Around an edge up to 2n may be admitted in a short time; [Sliding] and the token buckets do not allow that.
func Window(n int, d time.Duration) Rule { return driver.NewWindow(driver.KindFixed, n, d) }

// Sliding admits n per window of length d, n from 1 to 1e9 and d from 1ms to 31 days, aligned as in [Window]. The window
// before counts as well, by the part of it that a window ending now would overlap: a request of cost c is admitted if
//
//	before x (rest of this window / d) + this window + c <= n
func Sliding(n int, d time.Duration) Rule { return driver.NewWindow(driver.KindSliding, n, d) }

// Daily admits n per calendar day, n from 1 to 1e9: from midnight to midnight in UTC, or in the zone that In names. Days
// on which clocks are changed have 23 or 25 hours. Where midnight is skipped then, the day begins when it would have.
func Daily(n int) Rule { return driver.NewWindow(driver.KindDaily, n, 0) }

// Monthly admits n per calendar month, n from 1 to 1e9: from midnight to midnight of the first days, in UTC or in the zone
// that In names.
func Monthly(n int) Rule { return driver.NewWindow(driver.KindMonthly, n, 0) }

// Unlimited limits nothing: a store is not asked, and no header is sent.
func Unlimited() Rule { return driver.Unlimited() }
