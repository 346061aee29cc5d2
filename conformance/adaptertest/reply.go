package adaptertest

import (
	"bytes"
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

// untouched checks that the gate sent nothing of its own.
func (p *reply) untouched() *reply { return p.silent().lacks(fieldRetryAfter, "Cache-Control") }

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
	return p.is(503).silent().has(fieldRetryAfter, "1").problem("overloaded_error", 1).
		says("The limiter's store is unavailable. Retry after 1s.")
}

// limitTypeRate is what bodies say of a gate.RequestRate.
const limitTypeRate = "request_rate"

// errorBody is what both forms of a body say.
type errorBody struct {
	Type, Message string
	LimitType     string `json:"limit_type"`
	Policy        string
	RetryAfter    int `json:"retry_after"`
}

// problemTypes are the types of the default body, by those of RFC 9457.
var problemTypes = map[string]string{
	"about:blank": "invalid_request_error",
	"https://iana.org/assignments/http-problem-types#quota-exceeded":             "rate_limit_error",
	"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity": "overloaded_error",
}

// problem checks what the body of a rate's refusal and its fields have in common; a retryAfter of 0 is none.
func (p *reply) problem(kind string, retryAfter int) *reply {
	return p.problemOf(limitTypeRate, kind, retryAfter)
}

func (p *reply) problemOf(limitType, kind string, retryAfter int) *reply {
	p.has("Content-Type", p.x.variant.contentType()).has("Cache-Control", "no-store").has("Content-Length", strconv.Itoa(len(p.body)))
	if b := p.decoded(); b.Type != kind || b.RetryAfter != retryAfter || b.LimitType != limitType {
		p.failf("the body is %s; want type %s, limit_type %s, retry_after %d", p.body, kind, limitType, retryAfter)
	}
	if !slices.Equal(p.body, bytes.TrimSpace(p.body)) {
		p.failf("the body ends in white space: %q", p.body)
	}
	if retryAfter == 0 && bytes.Contains(p.body, []byte("retry_after")) {
		p.failf("the body is %s; want no retry_after", p.body)
	}
	return p
}

// decoded reads the body in the form of the variant.
func (p *reply) decoded() errorBody {
	var plain struct{ Error errorBody }
	if !p.x.variant.problem {
		if err := json.Unmarshal(p.body, &plain); err != nil {
			p.failf("the body %q is no JSON: %v", p.body, err)
		}
		return plain.Error
	}
	var b struct {
		errorBody
		Detail, Title string
		Status        int
		Violated      []string `json:"violated-policies"`
	}
	if err := json.Unmarshal(p.body, &b); err != nil || b.Status != p.status || b.Title == "" {
		p.failf("the body %q is no problem of status %d: %v", p.body, p.status, err)
	}
	b.Type, b.Message, b.Policy = problemTypes[b.Type], b.Detail, strings.Join(b.Violated, ",")
	return b.errorBody
}

// says checks the message of the body.
func (p *reply) says(message string) *reply {
	if got := p.decoded().Message; got != message {
		p.failf("the message is %q; want %q", got, message)
	}
	return p
}

// of checks the policy of the body. The form of RFC 9457 has all that refused.
func (p *reply) of(policy string) *reply {
	got := p.decoded().Policy
	if got != policy && !(p.x.variant.problem && slices.Contains(strings.Split(got, ","), policy)) {
		p.failf("the policy is %q; want %q", got, policy)
	}
	return p
}
