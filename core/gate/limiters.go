package gate

import (
	"time"

	"github.com/headgate-go/headgate/core/limit"
	"github.com/headgate-go/headgate/core/shed"
)

// Limiter is one of RequestRate, ConcurrentRequests, FleetUsage, WorkerUtilization and AdmissionQueue. Pass values.
type Limiter interface {
	limitType() string
}

// RequestRate asks whether a key sends too much: requests, weighted by cost, against a rate. Refuses with 429.
type RequestRate struct {
	// Name of the policy: in headers, telemetry and stored keys. Lower-case letters, digits, "_", "." and "-", at most
	// 64, unique in the gate. Empty: "request_rate".
	Name string
	// Limit is the rule, for example limit.PerSecond(100).WithBurst(500). Required.
	Limit limit.Rule
	// Key says whose budget a request draws on. Nil: ClientIP().
	Key Key
	// OnMissingKey says what happens without a key. Zero: MissingKeyUseClientIP.
	OnMissingKey OnMissingKey
	// Anonymous is the rule when the key fell back to the client's address. Zero: Limit.
	Anonymous limit.Rule
	// LimitFor chooses the rule for a key, for example by plan. It gets the key's parts joined by "+" and runs on every
	// request. False, a zero or an invalid rule: Limit. Nil: Limit for everybody.
	LimitFor func(r Request, key string) (limit.Rule, bool)
	// Cost weighs a request. 0 costs nothing; above the rule's burst it is refused; negative is charged as 1 and
	// counted as invalid_cost. Nil: 1.
	Cost func(Request) int
	// Match chooses the requests that the limiter is about. Nil: all.
	Match Match
	// Mode is where the limiter starts; see Gate.SetMode. Zero: Enforce.
	Mode Mode
	// OnStoreError says what happens when the store failed. Zero: FailOpen.
	OnStoreError OnStoreError
	// SkipFailed gives the cost back when the handler failed: a status of 400 or more, an error or a panic.
	SkipFailed bool
	// SkipSuccessful gives the cost back when the handler did not fail.
	SkipSuccessful bool
	// Approximate spends slices of the budget locally, for fewer round trips.
	Approximate bool
	// Jitter spreads Retry-After upwards. Zero: off.
	Jitter Jitter
}

// ConcurrentRequests asks whether a key holds too much: requests in flight. Refuses with 429.
//
// A request that is admitted holds a slot until its response is over: until the handler returns, and in Fiber until a stream
// that it began is sent or a connection that it took over is closed. The slot is given back after the response, whether the
// handler returned, failed or panicked. In a shared store it is a lease, which is renewed every LeaseTime/3 for as long as the
// request takes: if the process dies, its slots are free again one LeaseTime after their last renewal.
type ConcurrentRequests struct {
	// Name of the policy, as in [RequestRate]. Empty: "concurrent_requests".
	Name string
	// Max is how many requests a key may have in flight, 1 to 1e9. Required.
	Max int
	// MaxFor chooses Max for a key, for example by plan. It gets the key's parts joined by "+" and runs on every request. False,
	// 0 or a negative number: Max. Nil: Max for everybody. A lower Max throws nobody out: it lets nobody in for a while.
	MaxFor func(r Request, key string) (int, bool)
	// Key says whose requests are counted together. Nil: ClientIP().
	Key Key
	// OnMissingKey says what happens without a key. Zero: MissingKeyUseClientIP.
	OnMissingKey OnMissingKey
	// Match chooses the requests that the limiter is about. Nil: all.
	Match Match
	// Mode is where the limiter starts; see Gate.SetMode. In Shadow it holds slots for the requests that it would have
	// admitted. Zero: Enforce.
	Mode Mode
	// OnStoreError says what happens when the store failed. Zero: FailOpen.
	OnStoreError OnStoreError
	// LeaseTime is how long a slot outlives a process that died with it, in whole milliseconds up to 31 days. Longer than the
	// longest pause of a process or of the store that should cost nobody a slot; requests may take longer. 0: 60 s.
	LeaseTime time.Duration
	// RetryAfter is what a refused client is told: when a slot becomes free, nobody knows. 0: 1 s.
	RetryAfter time.Duration
	// Jitter spreads Retry-After upwards. Zero: off.
	Jitter Jitter
}

// FleetUsage asks whether low-priority work crowds out high-priority work: a reserve of the fleet's capacity that
// only critical requests can use. Refuses with 503.
type FleetUsage struct {
	Name         string        // policy; empty: "fleet_usage"
	Capacity     int           // requests that the whole fleet can serve at a time
	Reserve      float64       // share kept for critical requests; 0: 0.20
	Resource     string        // what the capacity is of, where it is not the fleet itself
	Counting     Counting      // zero: Exact
	Match        Match         // nil: all requests
	Mode         Mode          // zero: Enforce
	OnStoreError OnStoreError  // zero: FailOpen; never FailClosed
	LeaseTime    time.Duration // 0: 60 s
	RetryAfter   time.Duration // 0: 5 s
	Jitter       Jitter        // zero: on
}

// WorkerUtilization asks whether this box is drowning, and sheds tiers in order. Refuses with 503.
type WorkerUtilization struct {
	Name          string        // policy; empty: "worker_utilization"
	Signals       []shed.Signal // nil: what this machine can tell
	MaxInFlight   int           // requests that saturate this process; 0: not a signal
	ShedCritical  bool          // allow shedding of critical requests too
	RestoreFactor float64       // how much faster shedding ends than it begins; 0: 1
	Leak          float64       // how fast shedding ends between the thresholds; 0: not at all
	Sample        time.Duration // 0: 1 s
	Hold          time.Duration // how long full overload is borne before shedding; 0: 28 s
	Ramp          time.Duration // from nothing shed to everything; 0: 120 s
	Match         Match         // nil: all requests
	Mode          Mode          // zero: Enforce
	RetryAfter    time.Duration // 0: 5 s
	Jitter        Jitter        // zero: on
}

// AdmissionQueue lets a bounded number of requests run and the most important of the others wait. Refuses with 503.
type AdmissionQueue struct {
	Name        string            // policy; empty: "admission_queue"
	Slots       int               // requests that run at a time; 0: adapted to the load
	MaxInFlight int               // bound on the adapted slots; 0: 4096
	MaxWaiting  int               // 0: 32 per processor
	Cost        func(Request) int // seats of a request; nil: 1
	LongLived   Match             // streams and upgrades, counted apart; nil: none
	Match       Match             // nil: all requests
	Mode        Mode              // zero: Enforce
	RetryAfter  time.Duration     // 0: 1 s
	Jitter      Jitter            // zero: on
}

func (RequestRate) limitType() string        { return "request_rate" }
func (ConcurrentRequests) limitType() string { return "concurrent_requests" }
func (FleetUsage) limitType() string         { return "fleet_usage" }
func (WorkerUtilization) limitType() string  { return "worker_utilization" }
func (AdmissionQueue) limitType() string     { return "admission_queue" }
