package telemetry

import (
	"sync"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/metric"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
)

const defaultTenants = 20

// longestName bounds what is kept of a name that comes from outside.
const longestName = 64

// tenants counts refusals by tenant, apart by mode: what a limiter in Shadow would have refused nobody has felt.
type tenants struct {
	mu    sync.Mutex
	modes [2]struct {
		mode   gate.Mode
		counts *sketch
	}
}

func newTenants(named int) *tenants {
	t := &tenants{}
	for i, mode := range []gate.Mode{gate.Enforce, gate.Shadow} {
		t.modes[i].mode, t.modes[i].counts = mode, newSketch(named)
	}
	return t
}

func (t *tenants) refused(name string, mode gate.Mode, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.modes {
		if m.mode == mode {
			m.counts.refused(name, now)
		}
	}
}

func (t *tenants) observe(refusals metric.Int64Observable, to metric.Observer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.modes {
		m.counts.collect(func(name string, n int64) {
			to.ObserveInt64(refusals, n, metric.WithAttributes(keyTenant.String(name), keyMode.String(m.mode.String())))
		})
	}
}

// tenant names whoever a decision is about: by the user's function, else by digest. Empty where there is no key.
func (o *Observer) tenant(e *gate.Event, d *gate.Decision) string {
	if o.name != nil {
		if name := o.name(e.Request, *d); name != "" {
			return shortened(name)
		}
	}
	return d.KeyDigest()
}

func shortened(name string) string {
	if len(name) <= longestName {
		return name
	}
	n := longestName
	for n > 0 && !utf8.RuneStart(name[n]) {
		n--
	}
	return name[:n]
}

// ownLimit says whether a tenant was refused, or would have been, by what it did itself: not because the store or the fleet
// was in trouble, nor for the want of a key.
func ownLimit(d *gate.Decision) bool {
	return (d.Outcome == gate.OutcomeDenied || d.Outcome == gate.OutcomeWouldDeny) && (d.Limit > 0 || d.Reason != gate.ReasonMissingKey)
}

// asksTokens says whether a cost is in tokens. Of slots it is one each, and there is nothing to add up.
func asksTokens(d *gate.Decision) bool { return d.Rule.Kind() != driver.KindSlots }
