package storetest_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

func (t *slotTwin) Apply(_ context.Context, now time.Time, changes []driver.Change) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	us := micros(now)
	for i := range changes {
		c := &changes[i]
		if t.oneKindOnly && c.Kind != changes[0].Kind {
			continue
		}
		switch h := t.at(c.Policy, c.Subject); c.Kind {
		case driver.Settle:
			t.settle(h, us, c)
		case driver.Release:
			t.release(h, t.id(c.Lease))
		case driver.Renew:
			t.renew(h, us, c)
		}
	}
	return nil
}

func (t *slotTwin) settle(h *holding, us int64, c *driver.Change) {
	if t.sharesKinds {
		clear(h.leases)
	}
	switch {
	case c.Amount == 0:
	case c.Rule.IsWindow():
		if level := h.window.Read(c.Rule, us); level.Runs(c.Receipt) && (c.Amount > 0 || h.window.Time != 0) {
			h.window = level.Settle(c.Rule, c.Amount)
		}
	case c.Amount > 0 || h.bucket.Time != 0:
		h.bucket = h.bucket.Read(c.Rule, us).Settle(c.Rule, c.Amount)
	}
}

func (t *slotTwin) release(h *holding, id driver.ID) {
	_, held := h.leases[id]
	switch {
	case t.releaseLost:
		left := maps.Clone(h.leases)
		t.yield()
		delete(left, id)
		h.leases = left
		return
	case t.releaseCounts && !held:
		h.extra--
	case t.releasesAny && !held:
		for other := range h.leases {
			id = other
		}
	case t.releasesEverywhere:
		for _, other := range t.state {
			delete(other.leases, id)
		}
	case t.sharesKinds && held:
		h.bucket = driver.Bucket{}
	}
	delete(h.leases, id)
}

func (t *slotTwin) renew(h *holding, us int64, c *driver.Change) {
	id, until := t.id(c.Lease), t.until(us, c.LeaseFor)
	_, held := h.leases[id]
	if t.renewElsewhere {
		for _, other := range t.state {
			if _, ok := other.leases[id]; ok {
				held, h = true, other
			}
		}
	}
	if held && !t.renewIdle || t.renewRevives {
		h.leases[id] = until
	}
	if !held && t.renewTakes {
		h.extra++
	}
	switch {
	case t.renewAlways:
		held = true
	case t.renewNever:
		held = false
	}
	if c.Lost = c.Lost && t.keepsLost || !held; t.renewRevives {
		c.Lost = false
	}
}

func (t *slotTwin) Reset(_ context.Context, policy, subject string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.at(policy, subject)
	if !t.resetsNothing && !t.resetsRatesOnly {
		clear(h.leases)
	}
	if !t.resetsNothing && !t.resetsLeasesOnly {
		h.bucket, h.window = driver.Bucket{}, driver.Window{}
	}
	for k := range t.state {
		if t.resetsSubject && strings.HasSuffix(k, subject) || t.resetsPolicy && strings.HasPrefix(k, fmt.Sprintf("%d %s ", len(policy), policy)) {
			delete(t.state, k)
		}
	}
	return nil
}
