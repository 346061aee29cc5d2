// Package wire makes the numbers, texts and bytes that a client sees: pure functions, no framework.
package wire

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxRetryAfter caps Retry-After: a client told to come back in a year has been told nothing.
const MaxRetryAfter = 24 * 60 * 60

// Ceil returns d in whole seconds, rounded up.
func Ceil(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}

// RetryAfter returns the seconds that a refused client is told: at least 1, at most a day.
func RetryAfter(d time.Duration) int64 { return min(max(Ceil(d), 1), MaxRetryAfter) }

// Jitter adds at most 20 % and one second to seconds, for 0 <= random < 1. It only ever adds: a client that returns
// early is refused again.
func Jitter(seconds int64, random float64) int64 {
	return seconds + int64(random*(0.2*float64(seconds)+1))
}

// Type is the coarse kind of a refusal in a body.
type Type string

// The types.
const (
	TypeRateLimit      Type = "rate_limit_error"
	TypeOverloaded     Type = "overloaded_error"
	TypeInvalidRequest Type = "invalid_request_error"
)

// Rate returns the message for an exhausted bucket.
func Rate(count int, period time.Duration, burst int, retryAfter int64) string {
	var b strings.Builder
	b.WriteString("Request rate limit exceeded: ")
	b.WriteString(strconv.Itoa(count))
	switch period {
	case time.Second:
		b.WriteString(" requests/second")
	case time.Minute:
		b.WriteString(" requests/minute")
	case time.Hour:
		b.WriteString(" requests/hour")
	case 24 * time.Hour:
		b.WriteString(" requests/day")
	default:
		b.WriteString(" requests per ")
		b.WriteString(Period(period))
	}
	b.WriteString(" sustained (bursts to ")
	b.WriteString(strconv.Itoa(burst))
	b.WriteString("). Retry after ")
	b.WriteString(strconv.FormatInt(retryAfter, 10))
	b.WriteString("s.")
	return b.String()
}

// Quota returns the message for an exhausted window.
func Quota(count int, window string, retryAfter int64) string {
	return "Request quota exceeded: " + strconv.Itoa(count) + " requests per " + window +
		". Retry after " + strconv.FormatInt(retryAfter, 10) + "s."
}

// Concurrent returns the message where every slot is taken.
func Concurrent(slots int, retryAfter int64) string {
	return "Concurrent request limit exceeded: " + strconv.Itoa(slots) + " requests in flight. Wait for one to finish; retry after " +
		strconv.FormatInt(retryAfter, 10) + "s."
}

// Cost returns the message for a cost that can never be admitted.
func Cost(cost, capacity int) string {
	return "Request cost " + strconv.Itoa(cost) + " exceeds the limit's capacity of " + strconv.Itoa(capacity) +
		". Retrying cannot succeed."
}

// StoreUnavailable returns the message for FailClosed.
func StoreUnavailable(retryAfter int64) string {
	return "The limiter's store is unavailable. Retry after " + strconv.FormatInt(retryAfter, 10) + "s."
}

// MissingKey returns the message for MissingKeyReject.
func MissingKey(policy string) string {
	return `The request carries no key for the limit "` + policy + `".`
}

// Period writes a duration without its zero parts: 1h, 1m30s.
func Period(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// Error is what a body says.
type Error struct {
	Type       Type
	Message    string
	LimitType  string
	Policy     string
	RetryAfter int64 // 0: left out
}

// JSONType is the content type of the default body.
const JSONType = "application/json"

// JSON renders the default body.
func JSON(e Error) []byte {
	b := make([]byte, 0, 128+len(e.Message)+len(e.LimitType)+len(e.Policy))
	b = append(b, `{"error":{"type":`...)
	b = appendString(b, string(e.Type))
	b = append(b, `,"message":`...)
	b = appendString(b, e.Message)
	b = append(b, `,"limit_type":`...)
	b = appendString(b, e.LimitType)
	b = append(b, `,"policy":`...)
	b = appendString(b, e.Policy)
	b = appendRetryAfter(b, e.RetryAfter)
	return append(b, '}', '}')
}

// ProblemType is the content type of an RFC 9457 body.
const ProblemType = "application/problem+json"

// problems are the registered problem types and their titles, by status.
var problems = map[int][2]string{
	400: {"about:blank", "Bad Request"},
	429: {"https://iana.org/assignments/http-problem-types#quota-exceeded",
		"Request cannot be satisfied as assigned quota has been exceeded"},
	503: {"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
		"Request cannot be satisfied due to temporary server capacity constraints"},
}

// Problem renders an RFC 9457 body; violated are the policies that refused.
func Problem(status int, e Error, violated []string) []byte {
	p, ok := problems[status]
	if !ok {
		p = [2]string{"about:blank", "Internal Server Error"}
	}
	b := append(make([]byte, 0, 320+len(e.Message)), `{"type":`...)
	b = appendString(b, p[0])
	b = append(b, `,"title":`...)
	b = appendString(b, p[1])
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, `,"detail":`...)
	b = appendString(b, e.Message)
	b = append(b, `,"violated-policies":[`...)
	for i, policy := range violated {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, policy)
	}
	b = append(b, `],"limit_type":`...)
	b = appendString(b, e.LimitType)
	b = appendRetryAfter(b, e.RetryAfter)
	return append(b, '}')
}

func appendRetryAfter(b []byte, seconds int64) []byte {
	if seconds == 0 {
		return b
	}
	b = append(b, `,"retry_after":`...)
	return strconv.AppendInt(b, seconds, 10)
}

// appendString appends s as a JSON string. Only what JSON demands is escaped: links stay readable.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < 0x20 || r == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default: // also turns what is not UTF-8 into U+FFFD
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
