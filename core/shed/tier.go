// Package shed holds load shedding: tiers and signals, and later the controller and the queue behind them.
//
// Most code does not need it: package gate names everything here that an application configures.
package shed

import "time"

// Tier is how important a request is. Lower tiers are shed first.
type Tier uint8

const (
	// TierByMethod is the zero value: let the method decide. GET, HEAD and OPTIONS are TierRead, everything else is
	// TierWrite. A method never makes a request critical.
	TierByMethod Tier = iota
	// TierSandbox is shed first: trials, test keys, batch work.
	TierSandbox
	// TierRead is shed before writes.
	TierRead
	// TierWrite is shed before critical work.
	TierWrite
	// TierCritical is shed last, and by most shedders never.
	TierCritical
)

var tiers = [...]string{"by_method", "sandbox", "read", "write", "critical"}

// String returns the word used in configuration and telemetry.
func (t Tier) String() string {
	if int(t) < len(tiers) {
		return tiers[t]
	}
	return "unknown"
}

// Signal is one measure of how busy this process is.
type Signal interface {
	// Read returns the utilization at now, 0 idle to 1 saturated, and false where it cannot be told.
	Read(now time.Time) (utilization float64, ok bool)
}
