package redisscript

import (
	"math"
	"testing"
)

func TestFormatState(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		doubles(499, 0.25, 1767323045000006):                       "bucket: 499 + 0.2500 tokens at 2026-01-02T03:04:05.000006Z",
		doubles(-1e9, 0, 4503599627370495):                         "bucket: -1000000000 + 0.0000 tokens at 2112-09-17T23:53:47.370495Z",
		doubles(0, 0, math.NaN()):                                  "bucket: 0 + 0.0000 tokens at NaN",
		"\x02\x00\x00\x00\x05\x00\x00\x00" + doubles(1767323045e6): "window: 5, 2 in the one before, at 2026-01-02T03:04:05.000000Z",
		"":   `unknown: 0 bytes ""`,
		"12": `unknown: 2 bytes "12"`,
	} {
		equal(t, "state", FormatState(value), want)
	}
}

func TestFormatCall(t *testing.T) {
	t.Parallel()
	arg := head(1, rec(opBucket, flagLast|flagShadow, 1, 1, 5, 1, 1000, 2), rec(opFixed, 0, 1, 1, 5, 0, 1000, 2),
		rec(opBucket, flagLast|flagSettle, 1, 1, 5, 1, 1000, -2), slotRecord(opSlots, 0, 2, 4, 1e6, "0123456789abcdef"),
		win{op: opCalendar, limit: 3, boundary: [4]int64{1, 2, 3, 4}}.encode(1, 0, 1), rec(15, 0, 1, 1, 0, 0, 0, 0)) + "xy"
	equal(t, "call", FormatCall(arg, doubles(5, 0, 1, 2, 3, 4, 7, 0.5)), `bucket last shadow key 1: burst 5, 1 per 1000us, cost 2 -> 5 0
fixed key 1: limit 5, phase 0us, period 1000us, cost 2 -> 1 2
bucket last settle key 1: burst 5, 1 per 1000us, cost -2 -> 3 4
slots key 2: max 4, lease 1000000us, id 30313233343536373839616263646566 -> 7
calendar key 1: limit 3, from 2 to 3, cost 1 -> 0.5 missing
op 15 key 1: limit 0, phase 0us, period 0us, cost 0 -> missing
2 bytes too many in the argument
`)
	pair := doubles(5, 1, 1000, 2) + "\x04\x00\x00\x00" + doubles(1e6) + "0123456789abcdef"
	equal(t, "pair", FormatCall(pair, doubles(5, 0, 3)), `bucket key 1: burst 5, 1 per 1000us, cost 2 -> 5 0
slots last key 2: max 4, lease 1000000us, id 30313233343536373839616263646566 -> 3
`)
	for _, arg := range []string{"", "x", "xy", "xyz"} {
		FormatCall(arg, "reply")
	}
	equal(t, "too much", FormatCall(doubles(1, 1, 1, 1), doubles(1, 0, 0)), "bucket key 1: burst 1, 1 per 1us, cost 1 -> 1 0\n8 bytes too many in the reply\n")
}
