package redisscript

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"
)

// FormatState returns a stored state as text: what GET answers for the key of a bucket or a window. Slots are a sorted set, of
// which ZRANGE key 0 -1 WITHSCORES shows the leases, and the microsecond at which each is over.
//
//	bucket: 499 + 0.2500 tokens at 2026-01-02T03:04:05.000006Z
func FormatState(value string) string {
	switch b := []byte(value); len(b) {
	case 24:
		return fmt.Sprintf("bucket: %s + %.4f tokens at %s", number(double(b)), double(b[8:]), instant(double(b[16:])))
	case 16:
		return fmt.Sprintf("window: %d, %d in the one before, at %s", binary.LittleEndian.Uint32(b[4:]),
			binary.LittleEndian.Uint32(b), instant(double(b[8:])))
	}
	return fmt.Sprintf("unknown: %d bytes %q", len(value), value)
}

// FormatCall returns a call's ARGV[1] and its reply as text, a line for each record: what was asked, and what was seen.
//
//	bucket key 1: burst 500, 1 per 10000us, cost 1 -> 499, 2500
func FormatCall(arg, reply string) string {
	var out strings.Builder
	a, r := []byte(arg), []byte(reply)
	line := func(name string, flags uint16, key, count int, v []byte, seen int) {
		fmt.Fprintf(&out, "%s%s key %d", name, formatFlags(flags), key)
		if count > 1 {
			fmt.Fprintf(&out, " x%d", count)
		}
		out.WriteString(": " + formatNumbers(name, v) + " ->")
		for range seen {
			if len(r) < 8 {
				out.WriteString(" missing")
				break
			}
			out.WriteString(" " + number(double(r)))
			r = r[8:]
		}
		out.WriteByte('\n')
	}
	switch len(a) {
	case fastSize:
		line("bucket", 0, 1, 1, a, 2)
	case pairSize:
		line("bucket", 0, 1, 1, a[:fastSize], 2)
		most := math.Float64bits(float64(binary.LittleEndian.Uint32(a[fastSize:])))
		line("slots", flagLast, 2, 1, append(binary.LittleEndian.AppendUint64(nil, most), a[fastSize+4:]...), 1)
	default:
		for a = a[min(headSize, len(a)):]; len(a) >= recordSize; {
			word, key, count := binary.LittleEndian.Uint16(a), int(binary.LittleEndian.Uint16(a[2:])), int(binary.LittleEndian.Uint16(a[4:]))
			op := uint8(word % (1 << flagShift))
			seen := width(op)
			if op == opEach {
				seen *= count
			}
			line(opName(op), word>>flagShift, key, count, a[6:recordSize], seen)
			a = a[recordSize:]
			if op == opCalendar {
				a = a[min(16, len(a)):]
			}
			if word>>flagShift&flagReceipt != 0 {
				a = a[min(8, len(a)):]
			}
		}
		if len(a) > 0 {
			fmt.Fprintf(&out, "%d bytes too many in the argument\n", len(a))
		}
	}
	if len(r) > 0 {
		fmt.Fprintf(&out, "%d bytes too many in the reply\n", len(r))
	}
	return out.String()
}

func opName(op uint8) string {
	switch op {
	case opEach:
		return "buckets"
	case opRepeat, opBucket:
		return "bucket"
	case opSlots:
		return "slots"
	case opFixed:
		return "fixed"
	case opSliding:
		return "sliding"
	case opCalendar:
		return "calendar"
	case opRenew:
		return "renew"
	}
	return fmt.Sprintf("op %d", op)
}

func formatFlags(flags uint16) string {
	text := ""
	for i, name := range [...]string{" last", " shadow", " settle"} {
		if flags>>i&1 != 0 {
			text += name
		}
	}
	return text
}

func formatNumbers(name string, v []byte) string {
	n := func(i int) string { return number(double(v[8*i:])) }
	switch name {
	case "bucket", "buckets":
		return fmt.Sprintf("burst %s, %s per %sus, cost %s", n(0), n(1), n(2), n(3))
	case "slots", "renew":
		return fmt.Sprintf("max %s, lease %sus, id %x", n(0), n(1), v[16:32])
	case "calendar":
		return fmt.Sprintf("limit %s, from %s to %s, cost %s", n(0), n(1), n(2), n(3))
	}
	return fmt.Sprintf("limit %s, phase %sus, period %sus, cost %s", n(0), n(1), n(2), n(3))
}

func double(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }

// number prints a double without an exponent, as all of them are whole.
func number(x float64) string { return fmt.Sprintf("%.16g", x) }

func instant(us float64) string {
	if !(us >= 0 && us < 1<<53) {
		return number(us)
	}
	return time.UnixMicro(int64(us)).UTC().Format("2006-01-02T15:04:05.000000Z")
}
