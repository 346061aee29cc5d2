package gate

import (
	"net/textproto"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/limit"
)

// Outcome is what one limiter made of one request.
type Outcome uint8

// The outcomes. Their words are the values of headgate.outcome in telemetry.
const (
	OutcomeAllowed    Outcome = iota // had no objection; charged unless another limiter refused
	OutcomeDenied                    // refused with 429
	OutcomeShed                      // refused with 503
	OutcomeWouldDeny                 // in Shadow: 429 otherwise
	OutcomeWouldShed                 // in Shadow: 503 otherwise
	OutcomeFailOpen                  // the store failed; let through
	OutcomeFailClosed                // the store failed; refused with 503
	OutcomeFailLocal                 // the store failed; decided in this process
	OutcomeSkipped                   // not asked: no key and MissingKeySkip, or refused before it was its turn
	OutcomeRejected                  // no key and MissingKeyReject: 400
	OutcomeCanceled                  // the client left before the answer
)

var outcomes = [...]string{"allowed", "denied", "shed", "would_deny", "would_shed", "fail_open", "fail_closed",
	"fail_local", "skipped", "rejected", "canceled"}

// String returns the word used in telemetry.
func (o Outcome) String() string { return name(outcomes[:], int(o)) }

// Reason says why, where the outcome alone does not.
type Reason = driver.Reason

// The reasons.
const (
	ReasonNone        = driver.ReasonNone
	ReasonLimit       = driver.ReasonLimit
	ReasonCost        = driver.ReasonCost
	ReasonMissingKey  = driver.ReasonMissingKey
	ReasonInvalidCost = driver.ReasonInvalidCost
	ReasonMemory      = driver.ReasonMemory
	ReasonOverridden  = driver.ReasonOverridden
)

// Decision is what one limiter decided about one request. The zero value says nothing.
type Decision struct {
	Gate, Policy, LimitType string
	Outcome                 Outcome
	Mode                    Mode
	// Reason says why; ReasonNone for an ordinary admission.
	Reason Reason
	// Limit is the number that Remaining counts down from; Cost is what was asked for. All are 0 where the limiter was
	// not evaluated.
	Limit, Remaining, Cost int
	// RetryAfter is the exact time until this cost would be admitted; 0 where it was admitted or waiting cannot help.
	RetryAfter time.Duration
	// ResetAfter is the exact time until the key's budget is whole again.
	ResetAfter time.Duration
	// Rule is the rule in force for this request.
	Rule limit.Rule
	// Err is the store's failure behind fail_open and fail_closed.
	Err error

	subject *string // by pointer, so that printing a decision does not print the key
}

// KeyDigest names the key without telling it: the digest under which stores and logs know it. Empty where no key was
// read.
func (d Decision) KeyDigest() string {
	if d.subject == nil || *d.subject == "" {
		return ""
	}
	return driver.Digest(*d.subject)
}

// refuses says whether the outcome ends the request.
func (o Outcome) refuses() bool {
	return o == OutcomeDenied || o == OutcomeShed || o == OutcomeFailClosed || o == OutcomeRejected
}

// Refusal is the answer to a request that may not pass. Its Decision is the one that is reported, of those in Violated.
type Refusal struct {
	Decision
	// Status is 429 or 503; 400 for a missing key; 500 from Take with a policy that does not exist.
	Status int
	// Message says what was exceeded and what to do, as it stands in the body.
	Message string
	// DocsURL is Config.DocsURL.
	DocsURL string
	// Violated are the decisions of every limiter that refused, in configuration order.
	Violated []Decision

	wait    int64 // Retry-After in seconds, with jitter; 0: none
	headers []header
}

type header struct{ name, value string }

// SetHeader sets a response field, for a custom [Body]. The fields that a gate itself sets cannot be changed.
func (r *Refusal) SetHeader(name, value string) {
	r.headers = append(r.headers, header{textproto.CanonicalMIMEHeaderKey(name), value})
}

// RetryAfterSeconds is the value of Retry-After: whole seconds, rounded up, with jitter where that is on. 0: the header
// is not sent, since waiting cannot help.
func (r *Refusal) RetryAfterSeconds() int64 { return r.wait }

// Policy describes a limiter of a gate.
type Policy struct {
	Name, LimitType string
	Mode            Mode   // in force now
	Limit           string // the rule as limit.Parse reads it
	Key, Match      string // as text; Match is empty for all requests
}
