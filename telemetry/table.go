package telemetry

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
)

// The keys of attributes.
const (
	keyGate          = attribute.Key("headgate.gate")
	keyPolicy        = attribute.Key("headgate.policy")
	keyLimitType     = attribute.Key("headgate.limit_type")
	keyOutcome       = attribute.Key("headgate.outcome")
	keyReason        = attribute.Key("headgate.reason")
	keyMode          = attribute.Key("headgate.mode")
	keyEnd           = attribute.Key("headgate.end")
	keyStore         = attribute.Key("headgate.store")
	keyState         = attribute.Key("headgate.state")
	keyTenant        = attribute.Key("headgate.tenant")
	keyRoute         = attribute.Key("http.route")
	keyErrorType     = attribute.Key("error.type")
	keyRetryAfter    = attribute.Key("headgate.retry_after")
	keyStoreDuration = attribute.Key("headgate.store.duration")
)

// What stands where there is no name.
const (
	unmatched = "unmatched" // no route
	other     = "other"     // one of too many
)

// kind is what an instrument measures.
type kind string

const (
	counter           kind = "Counter"
	observableCounter kind = "Counter, observed"
	upDownCounter     kind = "UpDownCounter"
	histogram         kind = "Histogram"
	observableGauge   kind = "Gauge, observed"
)

// instrument describes one; docs/telemetry.md is written from it.
type instrument struct {
	kind       kind
	name, unit string
	about      string
	attributes []attribute.Key
	buckets    []float64 // of a histogram
}

var (
	decisions = instrument{
		kind: counter, name: "headgate.decisions", unit: "{decision}",
		about: "Decisions, one for each limiter that a request met",
		attributes: []attribute.Key{
			keyGate, keyPolicy, keyLimitType, keyOutcome, keyReason, keyMode, keyRoute, keyErrorType,
		},
	}
	cost = instrument{
		kind: counter, name: "headgate.cost", unit: "{token}",
		about:      "Tokens that requests asked of rates, by what became of them",
		attributes: []attribute.Key{keyPolicy, keyOutcome},
	}
	decisionDuration = instrument{
		kind: histogram, name: "headgate.decision.duration", unit: "s",
		about:      "Time that a gate took to decide about a request, without the handler",
		attributes: []attribute.Key{keyStore, keyOutcome, keyErrorType},
		buckets:    []float64{50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 1},
	}
	leasesActive = instrument{
		kind: upDownCounter, name: "headgate.leases.active", unit: "{request}",
		about:      "Requests of this process that hold a slot now",
		attributes: []attribute.Key{keyPolicy},
	}
	leaseDuration = instrument{
		kind: histogram, name: "headgate.lease.duration", unit: "s",
		about:      "Time that a slot was held",
		attributes: []attribute.Key{keyPolicy, keyEnd},
		// Those of HTTP's own request durations, and some for streams.
		buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 300},
	}
	storeBreaker = instrument{
		kind: observableGauge, name: "headgate.store.breaker", unit: "1",
		about:      "State of the breaker in front of the store: 1 for the one it is in, 0 for the others",
		attributes: []attribute.Key{keyGate, keyState},
	}
	tenantRefusals = instrument{
		kind: observableCounter, name: "headgate.tenant.refusals", unit: "{decision}",
		about:      "Refusals of the tenants with most of them, and of all others together",
		attributes: []attribute.Key{keyTenant, keyMode},
	}
)

// instruments lists them as docs/telemetry.md does.
var instruments = []instrument{decisions, cost, decisionDuration, leasesActive, leaseDuration, storeBreaker, tenantRefusals}

// breakerStates are what [gate.Event].Breaker can say.
var breakerStates = []string{"closed", "open", "half_open"}

// errorClasses are the values of error.type; the list is closed, so that no error text becomes one. The first stands for no
// error.
var errorClasses = []driver.Class{
	"", driver.ClassTimeout, driver.ClassNoScript, driver.ClassClusterDown, driver.ClassReadOnly, driver.ClassLoading,
	driver.ClassOOM, driver.ClassBusy, driver.ClassAuth, driver.ClassProtocol, driver.ClassClock, driver.ClassOverflow,
	driver.ClassClosed, driver.ClassOther,
}

// class is an index into errorClasses.
type class uint8

func classOf(err error) class {
	if err == nil {
		return 0
	}
	got := driver.ClassOf(err)
	for i, c := range errorClasses {
		if c == got {
			return class(i)
		}
	}
	return class(len(errorClasses) - 1)
}

// ranks says how much an outcome matters to a request that met several limiters.
var ranks = [...]int{
	gate.OutcomeSkipped: 0, gate.OutcomeAllowed: 1, gate.OutcomeWouldShed: 2, gate.OutcomeWouldDeny: 3, gate.OutcomeFailLocal: 4,
	gate.OutcomeFailOpen: 5, gate.OutcomeCanceled: 6, gate.OutcomeFailClosed: 7, gate.OutcomeShed: 8, gate.OutcomeDenied: 9,
	gate.OutcomeRejected: 10,
}

func rank(o gate.Outcome) int {
	if int(o) < len(ranks) {
		return ranks[o]
	}
	return 0
}
