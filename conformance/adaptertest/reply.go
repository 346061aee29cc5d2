package adaptertest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// reply is a response with what a case asserts about it. The assertions return it, to be chained.
type reply struct {
	response
	x *exam
	r request
}

func (p *reply) failf(format string, args ...any) *reply {
	p.x.failf("%s: %s", p.r, fmt.Sprintf(format, args...))
	return p
}

// is checks the status.
func (p *reply) is(status int) *reply {
	if p.status != status {
		p.failf("the status is %d; want %d", p.status, status)
	}
	return p
}

// has checks that a field is there once, with this value.
func (p *reply) has(name, value string) *reply {
	if got := p.values(name); len(got) != 1 || got[0] != value {
		p.failf("%s is %q; want %q, once", name, got, value)
	}
	return p
}

// lacks checks that fields are not there.
func (p *reply) lacks(names ...string) *reply {
	for _, name := range names {
		if got := p.values(name); len(got) > 0 {
			p.failf("%s is %q; want no such field", name, got)
		}
	}
	return p
}

// Names of fields.
const (
	fieldLimit      = "RateLimit-Limit"
	fieldRemaining  = "RateLimit-Remaining"
	fieldReset      = "RateLimit-Reset"
	fieldRetryAfter = "Retry-After"
)

// budget checks the three fields of the standard dialect.
func (p *reply) budget(limit, remaining, reset int) *reply {
	return p.has(fieldLimit, strconv.Itoa(limit)).has(fieldRemaining, strconv.Itoa(remaining)).
		has(fieldReset, strconv.Itoa(reset))
}

// untouched checks that the gate sent nothing of its own.
func (p *reply) untouched() *reply {
	return p.lacks(fieldLimit, fieldRemaining, fieldReset, fieldRetryAfter, "Cache-Control", "RateLimit-Policy", "RateLimit")
}

// text checks the body.
func (p *reply) text(want string) *reply {
	if string(p.body) != want {
		p.failf("the body is %.200q; want %.200q", p.body, want)
	}
	if p.cut {
		p.failf("the body is cut short")
	}
	return p
}

// passed checks that the response is the handler's, of the behaviour Write.
func (p *reply) passed() *reply {
	return p.is(200).text(Text).has("Content-Type", TextType).lacks(fieldRetryAfter)
}

// refused checks a 429 with its numbers and its default body.
func (p *reply) refused(limit, remaining, reset, retryAfter int) *reply {
	return p.is(429).budget(limit, remaining, reset).has(fieldRetryAfter, strconv.Itoa(retryAfter)).
		problem("rate_limit_error", retryAfter)
}

// unavailable checks the 503 of a limiter whose store failed.
func (p *reply) unavailable() *reply {
	return p.is(503).lacks(fieldLimit, fieldRemaining, fieldReset).has(fieldRetryAfter, "1").problem("overloaded_error", 1).
		says("The limiter's store is unavailable. Retry after 1s.")
}

// errorBody is the default body of a refusal.
type errorBody struct {
	Error struct {
		Type, Message string
		LimitType     string `json:"limit_type"`
		Policy        string
		RetryAfter    *int `json:"retry_after"`
	}
}

// problem checks what the default body and its fields have in common; a retryAfter of 0 is none.
func (p *reply) problem(kind string, retryAfter int) *reply {
	p.has("Content-Type", "application/json").has("Cache-Control", "no-store").has("Content-Length", strconv.Itoa(len(p.body)))
	b := p.decoded()
	after := 0
	if b.Error.RetryAfter != nil {
		after = *b.Error.RetryAfter
	}
	if b.Error.Type != kind || after != retryAfter || b.Error.LimitType != "request_rate" {
		p.failf("the body is %s; want type %s, limit_type request_rate, retry_after %d", p.body, kind, retryAfter)
	}
	if !slices.Equal(p.body, []byte(strings.TrimSpace(string(p.body)))) {
		p.failf("the body ends in white space: %q", p.body)
	}
	return p
}

func (p *reply) decoded() (b errorBody) {
	if err := json.Unmarshal(p.body, &b); err != nil {
		p.failf("the body %q is no JSON: %v", p.body, err)
	}
	return b
}

// says checks the message of the default body.
func (p *reply) says(message string) *reply {
	if got := p.decoded().Error.Message; got != message {
		p.failf("the message is %q; want %q", got, message)
	}
	return p
}

// of checks the policy of the default body.
func (p *reply) of(policy string) *reply {
	if got := p.decoded().Error.Policy; got != policy {
		p.failf("the policy is %q; want %q", got, policy)
	}
	return p
}
