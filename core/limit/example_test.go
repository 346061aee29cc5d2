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
		limit.Unlimited(),
	} {
		fmt.Println(rule)
	}
	// Output:
	// 100/s
	// 100/s burst 20
	// 1000/h
	// 10/1m30s
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

func ExampleParse() {
	rule, err := limit.Parse("100/s burst 20")
	fmt.Println(rule == limit.PerSecond(100).WithBurst(20), err)

	_, err = limit.Parse("100/s burts 20")
	fmt.Println(err)

	_, err = limit.Parse("100/s burst 0")
	fmt.Println(err)
	// Output:
	// true <nil>
	// limit: Parse: "100/s burts 20": "burts" (at 7) is unknown; only "burst" and a number may follow the rate
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
