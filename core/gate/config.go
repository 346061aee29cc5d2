package gate

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/shed"
)

// Config says what a [Gate] does. Only Limiters is required. New checks all of it at once.
type Config struct {
	// Name is part of every stored key and of telemetry. Gates of equal name share their counters on one store, as
	// replicas of a service must; gates with different rules on one store need different names. Empty is a name too.
	// Lower-case letters, digits, "_", "." and "-", at most 64.
	Name string
	// Store keeps the limiters' state. Nil: a new in-process store, closed with the gate. A store given here is not
	// closed by the gate.
	Store driver.Store
	// Limiters are asked in this order; at least one. Values, not pointers.
	Limiters []Limiter
	// Tier says how important a request is, for shedders. Nil, or TierByMethod: GET, HEAD and OPTIONS are reads, the
	// rest are writes; nothing is critical unless this function says so.
	Tier func(Request) Tier
	// Client says how the client's address is found. The zero value trusts nobody: the socket's peer is the client.
	Client ClientAddress
	// Exempt are paths that pass without being asked anything, counted or given headers: health, readiness, metrics.
	// They match byte for byte: nothing is cleaned or folded, so no other spelling of a path slips through.
	Exempt []string
	// Routes are route templates, "GET /v1/routes/:id" or without a method. They label telemetry where the framework
	// cannot tell the matched route.
	Routes []string
	// Headers chooses the dialects of rate-limit headers; 0 is HeadersStandard.
	Headers HeaderSet
	// Body renders a refusal. Nil: the JSON object that the README shows.
	Body Body
	// DocsURL, if set, ends the message of a refusal: "See https://...".
	DocsURL string
	// StoreTimeout bounds one call of the store. 0 is the default: 50 ms.
	StoreTimeout time.Duration
	// Instances is the number of processes that share the limits; needed by FailLocal only.
	Instances int
	// Observer is told every decision. Nil: nobody. Several: [Observers].
	Observer Observer
	// Control are sources of [Settings], started by New and ended by Close.
	Control []Source
	// Logger gets warnings and failures, at most one line a second and kind. Nil: slog.Default().
	Logger *slog.Logger
	// Clock gives the time to limiters, for tests and replays. Nil: the store's own clock.
	Clock func() time.Time
	// Rand draws jitter, 0 <= x < 1. Nil: math/rand/v2. It must be safe for concurrent use.
	Rand func() float64
}

// ClientAddress says how the client's address is found. Nobody is trusted until named: the zero value takes the
// socket's peer.
type ClientAddress struct {
	// Trusted are the networks of your own proxies. From a peer in them, the forwarding header is read from the right,
	// skipping trusted addresses; the first other address is the client.
	Trusted []netip.Prefix
	// TrustUnix trusts peers that have no address: unix sockets.
	TrustUnix bool
	// Header names the forwarding header: empty for X-Forwarded-For, "Forwarded" (RFC 7239), or one that holds a single
	// address such as "CF-Connecting-IP". It is read only from a trusted peer, and no other header is.
	Header string
	// IPv6Bits is the size of network that counts as one IPv6 client, 32 to 128. 0: 64, what one household is given.
	IPv6Bits int
}

// Tier is how important a request is; see the constants.
type Tier = shed.Tier

// The tiers, in the order in which they are shed.
const (
	TierByMethod = shed.TierByMethod
	TierSandbox  = shed.TierSandbox
	TierRead     = shed.TierRead
	TierWrite    = shed.TierWrite
	TierCritical = shed.TierCritical
)

// Mode says how much of a limiter is in force.
type Mode uint8

const (
	// Enforce is the zero value: refusals are sent.
	Enforce Mode = iota
	// Shadow decides in full, on the limiter's own state, and reports what it would have refused; the request passes
	// and no header is sent.
	Shadow
	// Off does nothing at all.
	Off
)

var modes = [...]string{"enforce", "shadow", "off"}

// String returns the word used in configuration and telemetry.
func (m Mode) String() string { return name(modes[:], int(m)) }

// OnMissingKey says what happens to a request that carries no key for a limiter. Whatever is chosen is counted, and an
// absent key is never a bucket that everybody without one shares.
type OnMissingKey uint8

const (
	// MissingKeyUseClientIP is the zero value: the client's address is the key, with RequestRate.Anonymous as the limit
	// if that is set.
	MissingKeyUseClientIP OnMissingKey = iota
	// MissingKeySkip passes the limiter by.
	MissingKeySkip
	// MissingKeyReject answers 400.
	MissingKeyReject
)

// OnStoreError says what happens to a request when the store failed.
type OnStoreError uint8

const (
	// FailOpen is the zero value: the request passes, without rate-limit headers, and is counted as fail_open.
	FailOpen OnStoreError = iota
	// FailClosed answers 503.
	FailClosed
	// FailLocal decides in this process with the limit divided by Config.Instances.
	FailLocal
)

// Jitter says whether Retry-After is spread upwards, so that clients refused together do not return together.
type Jitter uint8

const (
	// JitterDefault is on for shedders, off for limiters.
	JitterDefault Jitter = iota
	// JitterOn adds at most 20 % and one second.
	JitterOn
	// JitterOff adds nothing.
	JitterOff
)

// Counting says how a fleet's slots are counted.
type Counting uint8

// Exact counts every request in the store; the zero value.
const Exact Counting = 0

// HeaderSet is a set of dialects of rate-limit headers, combined with |.
type HeaderSet uint8

const (
	// HeadersStandard sends RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset, what most clients read today.
	HeadersStandard HeaderSet = 1 << iota
	// HeadersDraft sends RateLimit-Policy and RateLimit of the IETF draft.
	HeadersDraft
	// HeadersLegacy sends the same numbers as HeadersStandard under X-RateLimit-*.
	HeadersLegacy
	// HeadersNone sends none of them; Retry-After stays. It stands alone.
	HeadersNone
)

// Body renders the body of a refusal. It gets the request and the refusal, never a framework's context, so that the
// bytes are the same everywhere.
type Body func(Request, *Refusal) (contentType string, body []byte)

func name(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "unknown"
}
