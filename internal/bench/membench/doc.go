// Package membench measures decisions in the process: headgate's memory store beside other limiters and beside floors.
//
// Headgate's decision yields limit, remaining, reset and retry-after. Some peers only say yes or no; that is their good
// luck here. Every limiter gets the same keys in the same order, each worker an order of its own.
package membench
