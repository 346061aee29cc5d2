// Package driver says what a store of limiter state is.
//
// Most code does not need it: applications use package gate, and name rules with package limit.
// It is for those who write a store, and it holds the reference model that every store must agree with
// (see [Bucket], [Window] and [Slots]). conformance/storetest proves that a store does.
//
// A store may implement more than [Store]: [KeyNamer], [Inspector], [InProcess], [Parted] and [Advisor] are found by type
// assertion.
package driver

import (
	"context"
	"time"
)

// Store decides and records in one atomic step.
//
// Implementations must be safe for concurrent use, must not panic on any input, and must not keep a reference
// to a batch or its claims after the call. The strings of a claim stay valid and unchanged for ever, so they may be kept.
type Store interface {
	// Decide answers every entry of the batch, in place. All claims of an entry that are not shadow are taken,
	// or none is; every claim is evaluated, also after a refusal. Entries on the same key see each other in order.
	//
	// A zero now means the store's own clock: in a shared store the server's. Tests and replays give the time.
	// An error concerns the whole call and means that the store failed, never that a limit was hit; what is wrong
	// with one entry alone (a negative cost, an invalid or unlimited rule) is in its Err. It returns when ctx ends or its deadline
	// passes, whatever the store's client does; see DeadlineOnly.
	Decide(ctx context.Context, now time.Time, batch []Entry) error

	// Apply gives back, settles, releases and renews. It must be idempotent where a change names a lease, does not
	// depend on order, and is best effort: the caller does not repeat a change that failed.
	Apply(ctx context.Context, now time.Time, changes []Change) error

	// Close releases what the store started; it never closes a client that it was given.
	// A second Close is a no-op. After Close, Decide and Apply return an error of class [ClassClosed].
	Close() error
}

// KeyNamer is implemented by stores whose keys a person can look up.
type KeyNamer interface {
	// KeyName returns the key under which the store keeps the state of subject under policy and rule.
	KeyName(policy, subject string, rule Rule) string
}

// Inspector is implemented by stores that an operator can clear a key in. Looking at one needs no more than [Store.Decide] with
// cost 0.
type Inspector interface {
	// Reset makes subject a key never seen under policy, whatever its rule: buckets and windows start anew, leases are
	// forgotten (whoever holds them goes on, and their renewals find them lost). It is no error if there is nothing.
	Reset(ctx context.Context, policy, subject string) error
}

// Advisor is implemented by stores that can tell what about their set-up will hurt.
type Advisor interface {
	// Advise returns warnings, after asking the server where it must. It is called once, in the background.
	Advise(ctx context.Context) []Advice
}

// Advice is one warning: a stable code, explained in docs/warnings.md, and a sentence that says what to change.
type Advice struct{ Code, Text string }

// Entry is one request's claims.
type Entry struct {
	Claims []Claim
	Err    error // what was wrong with this entry only; its claims are then not decided and nothing was taken
}

// Claim asks for the share of one limiter.
type Claim struct {
	// Policy is the limiter's name.
	Policy string
	// Subject is the canonical key (see [AppendSubject]) in memory that outlives the call.
	Subject string
	// Rule is the rule in force for this claim; state does not bake it in, so it may differ from call to call.
	Rule Rule
	// Cost is what the request weighs. 0 is a pure read: allowed, and nothing is written.
	// Above the rule's capacity it is refused with [ReasonCost]; negative, the entry fails. Of slots it is 0 or 1.
	Cost int
	// Shadow claims are taken only if the request is admitted and they fit; they never refuse it. No key is both shadow
	// and enforcing in one entry, nor twice shadow.
	Shadow bool
	// Lease and LeaseFor name a slot and how long it lives unless renewed, see [Claim.CheckLease]; zero for rates.
	// No two claims carry the same ID, but for one that is asked again because its answer was lost.
	Lease    ID
	LeaseFor time.Duration
	// Result is the store's answer.
	Result Result
}

// Result is what a store says of one claim.
type Result struct {
	// Allowed says that the claim fits. It was taken only if every enforcing claim of its entry fits too.
	Allowed bool
	// Reason says why it does not fit; zero when it does.
	Reason Reason
	// Remaining is what is left after the decision, whole tokens, 0 to the rule's capacity.
	Remaining int
	// RetryAfter is the time until this cost would fit, to the microsecond; 0 when it fits or never can.
	RetryAfter time.Duration
	// ResetAfter is the time until the state equals a fresh one; of a window, until it ends.
	ResetAfter time.Duration
	// Fraction is the part of a token above Remaining.
	Fraction Fraction
	// Receipt identifies what was taken, for a later [Settle].
	Receipt Receipt
}

// Fraction is Num/Den of a token, 0 <= Num < Den; the zero value is none.
type Fraction struct{ Num, Den int64 }

// Receipt says in which window something was taken, in microseconds of the store's clock; zero for a bucket,
// whose shares never lapse.
type Receipt struct{ Start, Unit int64 }

// ID names a lease: 8 random bytes per process, then a counter.
type ID [16]byte

// Change is one correction after a decision.
type Change struct {
	Kind            ChangeKind
	Policy, Subject string
	Rule            Rule
	Amount          int // Settle: tokens to take, negative to give back
	Lease           ID
	LeaseFor        time.Duration
	Receipt         Receipt // Settle: of the decision; a window other than the one it names is left alone (see [WindowLevel.Runs])
	Lost            bool    // set by Renew when the lease was gone
}

// ChangeKind says what a [Change] does.
type ChangeKind uint8

const (
	// Settle takes Amount, or gives it back if negative, without asking whether it fits: a bucket may fall into
	// debt by at most its capacity, a window may count twice its limit. Settling 0, and giving back to a key without
	// state, write nothing; nor does settling what was taken in a window that is over.
	Settle ChangeKind = iota + 1
	// Release gives a lease back. One that is not there is no fault: it may be released more than once.
	Release
	// Renew lets a lease live for LeaseFor from now on. One that is gone stays gone, and Lost says so.
	Renew
)

// Reason says why a decision is what it is, where the outcome alone does not.
type Reason uint8

const (
	// ReasonNone: nothing to add.
	ReasonNone Reason = iota
	// ReasonLimit: the limit was reached; waiting helps.
	ReasonLimit
	// ReasonCost: the cost is above the rule's capacity; waiting cannot help.
	ReasonCost
	// ReasonMissingKey: the request carries no key for this limiter.
	ReasonMissingKey
	// ReasonInvalidCost: the cost function answered a negative number; 1 was charged.
	ReasonInvalidCost
	// ReasonMemory: refused from the local memory of a recent refusal, without asking the store.
	ReasonMemory
	// ReasonOverridden: an override of the operator decided.
	ReasonOverridden
)

var reasons = [...]string{"", "limit", "cost_exceeds_limit", "missing_key", "invalid_cost", "memory", "overridden"}

// String returns the word used in telemetry; empty for ReasonNone.
func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return "unknown"
}
