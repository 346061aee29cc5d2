package redisscript

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// setSlots fills in the record of a claim on slots. A cost of 0 asks under a limit of 0, by which the script knows that it
// only looks; it is not to refuse its request, so it goes as a shadow claim.
func (c *claim) setSlots(asked *driver.Claim) error {
	if err := asked.CheckLease(); err != nil {
		return fmt.Errorf("redisscript: policy %q: %w", asked.Policy, err)
	}
	if asked.Cost == 0 {
		c.flags = flagShadow
		return nil
	}
	c.setLease(asked.Rule.Capacity(), asked.Lease, asked.LeaseFor)
	return nil
}

// setLease fills in the numbers of an acquire, or with a limit of 0 of a renewal. The bytes of the id are sent as they are.
func (c *claim) setLease(limit int, id driver.ID, life time.Duration) {
	c.v = [4]uint64{math.Float64bits(float64(limit)), math.Float64bits(float64(life / time.Microsecond)),
		binary.LittleEndian.Uint64(id[:8]), binary.LittleEndian.Uint64(id[8:])}
}

// lease returns the id of an acquire or a renewal, as a sorted set has it.
func (c *claim) lease() string {
	var id [16]byte
	binary.LittleEndian.PutUint64(id[:8], c.v[2])
	binary.LittleEndian.PutUint64(id[8:], c.v[3])
	return string(id[:])
}

// held is how many leases the script counted before it took one.
func (c *claim) held() int { return int(c.saw[0]) }

// saneSlots says whether the script could have seen this.
func (c *claim) saneSlots() bool {
	if c.op == opRenew {
		return c.saw[0] == 0 || c.saw[0] == 1
	}
	return c.saw[0] >= 0 && c.saw[0] <= driver.MaxCount
}

// forsaken adds the leases to give back that a request may have taken whose caller was told that the store failed. Which
// of its claims were refused by another one is not looked at: giving back what was not taken is no fault.
func (r *request) forsaken(err error, list *leaseList) {
	if err != nil && !mayBeDone(err) {
		return
	}
	for i := range r.claims {
		c := &r.claims[i]
		if c.op != opSlots {
			continue
		}
		if limit := int64(math.Float64frombits(c.v[0])); limit > 0 && (err != nil || c.saw[0] < limit) {
			list.add(c.key, c.lease())
		}
	}
}

// mayBeDone says of the failure of a call whether the script may have run, or may still run, all the same: unless the
// server said that it did not.
func mayBeDone(err error) bool {
	switch driver.ClassOf(err) {
	case driver.ClassTimeout, driver.ClassProtocol, driver.ClassOther:
		return !hitsOthers(err)
	}
	return false
}

// leaseList is a list of leases to be given back: a command for each key.
type leaseList struct {
	commands [][]string
	of       map[string]int // the command of a key
}

func (l *leaseList) add(key, id string) {
	if i, ok := l.of[key]; ok {
		l.commands[i] = append(l.commands[i], id)
		return
	}
	if l.of == nil {
		l.of = map[string]int{}
	}
	l.of[key] = len(l.commands)
	l.commands = append(l.commands, []string{"ZREM", key, id})
}
