package limit_test

import (
	"fmt"
	"time"

	"github.com/headgate-go/headgate/core/limit"
)

func Example() {
	for _, rule := range []limit.Rule{
		limit.PerSecond(100),
		limit.PerSecond(100).WithBurst(20),
		limit.PerHour(1000),
		limit.Per(10, 90*time.Second),
		limit.Sliding(10, time.Minute),
		limit.Window(5000, time.Hour),
		limit.Daily(5000),
		limit.Unlimited(),
	} {
		fmt.Println(rule)
	}
	// Output:
	// 100/s
	// 100/s burst 20
	// 1000/h
	// 10/1m30s
	// 10/m sliding
	// 5000/h window
	// 5000/day
	// unlimited
}

// Five seconds of the rate, but never less than the count that was written.
func ExamplePerSecond() {
	fmt.Println(limit.PerSecond(100).Capacity())
	fmt.Println(limit.PerMinute(60).Capacity())
	fmt.Println(limit.PerSecond(100).WithBurst(20).Capacity())
	// Output:
	// 500
	// 60
	// 20
}

func ExamplePer() {
	rule := limit.Per(10, 90*time.Second)
	fmt.Println(rule, rule.Capacity())
	// Output: 10/1m30s 10
}

// A calendar rule belongs to a time zone. A program that may run where no zones are installed imports time/tzdata.
func ExampleDaily() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(limit.Daily(5000).In(berlin))
	fmt.Println(limit.Monthly(100_000))
	// Output:
	// 5000/day Europe/Berlin
	// 100000/month
}

// Weeks are windows of 168 hours; they begin on Thursday, as the Unix epoch did.
func ExampleWindow() {
	fmt.Println(limit.Window(20_000, 7*24*time.Hour))

	fmt.Println(limit.Window(100, 3600).Validate())
	// Output:
	// 20000/168h0m0s window
	// window 3.6us is shorter than 1ms; did you mean 3600*time.Second?
}

func ExampleParse() {
	rule, err := limit.Parse("100/s burst 20")
	fmt.Println(rule == limit.PerSecond(100).WithBurst(20), err)

	_, err = limit.Parse("100/s burts 20")
	fmt.Println(err)

	_, err = limit.Parse("100/s burst 0")
	fmt.Println(err)
	// Output:
	// true <nil>
	// limit: Parse: "100/s burts 20": "burts" (at 7) is unknown; "burst" and a number, "sliding" or "window" may follow the rate
	// limit: Parse: "100/s burst 0": burst 0; the smallest is 1
}

// Constructors keep what they are given; Validate says everything that is wrong with it.
func ExampleRule_validate() {
	fmt.Println(limit.PerSecond(100).Validate())
	fmt.Println(limit.PerSecond(0).WithBurst(-1).Validate())
	// Output:
	// <nil>
	// rate 0 per 1s; the smallest count is 1 (Off is a mode, not a number)
	// burst -1; the smallest is 1
}
