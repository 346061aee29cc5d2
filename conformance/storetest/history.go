package storetest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

var historyCases = []Case{
	{"BR157_histories_agree_with_the_model", "whatever the times, costs, rules and corrections are, a store admits exactly what the model admits",
		func(p *probe) { p.histories(historyRules, apart) }},
	{"histories_through_several_stores_agree_with_the_model", "a store that keeps to itself what it should share: every process has a limit of its own, or corrects what it has never seen",
		func(p *probe) { p.histories(historyRules, byTurns) }},
}

var windowHistoryCases = []Case{
	{"BR157_histories_of_windows_agree_with_the_model", "whatever the times, costs, rules, corrections and receipts are, a store admits exactly what the model admits",
		func(p *probe) { p.histories(windowHistoryRules(), apart) }},
	{"histories_of_windows_through_several_stores_agree_with_the_model", "a process that corrects a window by what it knows of it, while others have gone on",
		func(p *probe) { p.histories(windowHistoryRules(), byTurns) }},
}

// historyRules are what keys of a history are limited by: everyday ones, and the corners of the supported range.
var historyRules = []driver.Rule{
	perSecond(10, 10), perSecond(3, 7), perMinute(7, 3), perSecond(1000, 100), perDay(5),
	driver.NewBucket(5, 2*time.Second).WithBurst(4),
	driver.NewBucket(1, time.Hour),
	driver.NewBucket(1, time.Microsecond).WithBurst(2),
	driver.NewBucket(1_000_000_000, time.Second).WithBurst(1_000_000_000),
	driver.NewBucket(999_999_937, driver.MaxPeriod).WithBurst(1_000_000_000),
	driver.NewBucket(1, driver.MaxPeriod).WithBurst(3),
	driver.NewBucket(999_999, 24*time.Hour).WithBurst(999_999),
	driver.NewBucket(7, 1500*time.Nanosecond).WithBurst(1000),
}

// windowHistoryRules are windows of all kinds, and a few buckets beside them: a policy may change from one to the other.
func windowHistoryRules() []driver.Rule {
	return []driver.Rule{
		fixed(5, time.Second), sliding(7, 2*time.Second), fixed(100, time.Minute), sliding(10, 1500*time.Millisecond),
		fixed(1, time.Millisecond), sliding(3, time.Millisecond), sliding(1_000_000_000, time.Hour), fixed(1_000_000_000, time.Hour),
		sliding(999_999_937, driver.MaxPeriod), fixed(3, 7*24*time.Hour), sliding(20, 24*time.Hour),
		driver.NewWindow(driver.KindDaily, 7, 0), daily(20, "Europe/Berlin"), monthly(50, "America/New_York"), monthly(999_999, "Pacific/Kiritimati"),
		perSecond(10, 10), perMinute(7, 3),
	}
}

// manner is how a history is played.
type manner int

const (
	apart   manner = iota // the claims of an entry have one subject
	spread                // they may have different ones
	byTurns               // as apart, through several stores on the same state
)

// histories plays random histories, always the same ones, against the store and the reference.
func (p *probe) histories(rules []driver.Rule, how manner) {
	stores := []driver.Store{p.store()}
	if how == byTurns {
		stores = p.handles(3)
	}
	for seed := range uint64(12) {
		h := &history{p: p, seed: seed, rng: rand.New(rand.NewPCG(seed, 0x4ead6a7e+uint64(how))), stores: stores, pool: rules, spread: how == spread,
			ref: newReference(p.store()), receipts: map[key]driver.Receipt{}, leases: map[key][]driver.ID{}, now: noon}
		if seed == 0 {
			h.now = time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC)
		}
		for _, policy := range []string{"a", "b", "c"} {
			for _, subject := range []string{"s", "t"} {
				h.keys = append(h.keys, p.keyOf(fmt.Sprint(policy, seed), subject))
			}
			h.rules = append(h.rules, rules[h.rng.IntN(len(rules))])
		}
		for h.step = range 200 {
			h.play()
		}
	}
}

type history struct {
	p      *probe
	seed   uint64
	step   int
	rng    *rand.Rand
	stores []driver.Store
	pool   []driver.Rule
	spread bool
	ref    *reference
	now    time.Time
	latest time.Time // the latest now so far
	keys   []key     // two subjects of each policy, one after the other
	rules  []driver.Rule
	wait   time.Duration // of the last answer: the edges are what a store gets wrong
	// receipts are those of the last answers about a key.
	receipts map[key]driver.Receipt
	// leases are all that were asked for under a key, also those that are gone.
	leases map[key][]driver.ID
	// skipped is a claim that was taken and that somebody may give back; its cost is 0 if there is none.
	skipped driver.Claim
}

// chance is true once in n times.
func (h *history) chance(n int) bool { return h.rng.IntN(n) == 0 }

func (h *history) play() {
	h.tick()
	if h.chance(6) {
		h.rules[h.rng.IntN(len(h.rules))] = h.pool[h.rng.IntN(len(h.pool))]
	}
	h.correct()
	// A policy is in one mode for all requests of a call: a key may not be enforced and shadowed at the same time.
	shadow := []bool{h.chance(4), h.chance(4), h.chance(4)}
	batch := make([]driver.Entry, 1)
	if h.chance(4) {
		batch = make([]driver.Entry, 2+h.rng.IntN(6))
	}
	for i := range batch {
		batch[i].Claims = h.claims(shadow)
	}
	if len(batch) == 1 && len(batch[0].Claims) == 1 && h.chance(6) {
		h.askAgain(&batch[0].Claims[0])
	}
	h.compare(batch)
}

func (h *history) tick() {
	var d time.Duration
	switch n := h.rng.IntN(20); {
	case n < 5:
	case n < 7:
		d = time.Duration(1+h.rng.IntN(3)) * time.Microsecond
	case n < 11:
		d = time.Duration(h.rng.Int64N(int64(2*time.Second))) / 1000 * 1000
	case n < 12:
		d = time.Duration(h.rng.Int64N(int64(2*time.Hour))) / 1000 * 1000
	case n < 13 && h.chance(3):
		d = time.Duration(h.rng.Int64N(int64(40*24*time.Hour))) / 1000 * 1000
	case n < 14:
		d = -time.Duration(h.rng.Int64N(int64(10*time.Second))) / 1000 * 1000
	case n < 17 && h.wait < 100*24*time.Hour:
		d = h.wait - time.Microsecond
	case h.wait < 100*24*time.Hour:
		d = h.wait
	}
	if h.now = h.now.Add(d); h.now.After(h.latest) {
		h.latest = h.now
	}
}

func (h *history) claims(shadow []bool) []driver.Claim {
	var claims []driver.Claim
	subject := h.rng.IntN(2)
	for range 1 + h.rng.IntN(4)*h.rng.IntN(2) {
		policy := h.rng.IntN(len(h.rules))
		if h.spread {
			subject = h.rng.IntN(2)
		}
		k, rule := h.keys[2*policy+subject], h.rules[policy]
		c := h.claim(k, rule)
		c.Shadow = shadow[policy]
		used := false
		for _, other := range claims {
			used = used || other.Policy == c.Policy && other.Subject == c.Subject
		}
		if used && (c.Shadow || !h.chance(3)) {
			continue // what two shadow claims on one key see is nobody's promise
		}
		claims = append(claims, c)
	}
	return claims
}

func (h *history) claim(k key, rule driver.Rule) driver.Claim {
	if rule.Kind() == driver.KindSlots {
		return h.slot(k, rule)
	}
	return k.claim(rule, h.cost(rule.Capacity()))
}

func (h *history) cost(capacity int) int {
	switch h.rng.IntN(16) {
	case 0, 1:
		return 0
	case 2, 3:
		return capacity
	case 4:
		return capacity + 1
	case 5:
		return capacity/2 + 1
	case 6:
		return 1 + h.rng.IntN(capacity)
	case 7:
		return math.MaxInt
	case 8:
		if h.chance(4) {
			return -1 - h.rng.IntN(3)
		}
		return 2
	}
	return 1
}

// correct makes changes, in one call: what something turned out to cost, or a claim given back as if it had not been, and
// leases released and renewed.
func (h *history) correct() {
	var changes []driver.Change
	switch {
	case h.chance(6):
		policy := h.rng.IntN(len(h.rules))
		k, rule := h.keys[2*policy+h.rng.IntN(2)], h.rules[policy]
		amount := h.cost(rule.Capacity())
		if h.chance(2) {
			amount = -amount
		}
		changes = h.settlement(changes, k, rule, amount, h.receipts[k])
	case h.skipped.Cost > 0 && h.chance(4):
		c, k := &h.skipped, key{h.skipped.Policy, h.skipped.Subject}
		rule := c.Rule
		if h.chance(2) {
			rule = h.rules[slices.Index(h.keys, k)/2] // today's
		}
		changes = h.settlement(changes, k, rule, -c.Cost, c.Result.Receipt)
		c.Cost = 0
	}
	changes = h.leaseChanges(changes)
	if len(changes) == 0 {
		return
	}
	want := slices.Clone(changes)
	if err := h.store().Apply(context.Background(), h.now, changes); err != nil {
		h.p.fatalf("Apply: %v", err)
	}
	for i := range want {
		h.ref.apply(h.now.UnixMicro(), &want[i])
		if changes[i].Lost != want[i].Lost {
			h.p.fatalf("history %d, step %d, renewal: lost %t, want %t", h.seed, h.step, changes[i].Lost, want[i].Lost)
		}
	}
}

func (h *history) settlement(changes []driver.Change, k key, rule driver.Rule, amount int, receipt driver.Receipt) []driver.Change {
	if rule.Kind() == driver.KindSlots {
		return changes // a slot is released
	}
	c := driver.Change{Kind: driver.Settle, Policy: k.policy, Subject: k.subject, Rule: rule, Amount: amount}
	// A shared store's caller knows its own clock only, so while that is behind it may take a window for the running one
	// that is not.
	if rule.IsWindow() && !h.now.Before(h.latest) && !h.chance(3) {
		c.Receipt = receipt
	}
	return append(changes, c)
}

// store returns the store whose turn it is.
func (h *history) store() driver.Store { return h.stores[h.rng.IntN(len(h.stores))] }

func (h *history) compare(batch []driver.Entry) {
	want := make([]driver.Entry, len(batch))
	for i := range batch {
		want[i].Claims = append([]driver.Claim(nil), batch[i].Claims...)
		h.ref.decide(h.now.UnixMicro(), &want[i])
	}
	if err := h.store().Decide(context.Background(), h.now, batch); err != nil {
		h.p.fatalf("Decide: %v", err)
	}
	for i := range batch {
		if (batch[i].Err == nil) != (want[i].Err == nil) {
			h.p.fatalf("history %d, step %d, entry %d of %d: Err %v, want %v", h.seed, h.step, i, len(batch), batch[i].Err, want[i].Err)
		}
		if want[i].Err != nil {
			continue
		}
		for j := range batch[i].Claims {
			c, w := &batch[i].Claims[j], &want[i].Claims[j]
			h.p.sane(c)
			if h.now.Before(h.latest) {
				c.Result.Receipt.Start = w.Result.Receipt.Start // for the same reason: it does not know when state was written
			}
			if c.Result != w.Result {
				h.p.fatalf("history %d, step %d, entry %d of %d, claim %d of %d (%v, cost %d, shadow %v):\n got %s\nwant %s",
					h.seed, h.step, i, len(batch), j, len(batch[i].Claims), c.Rule, c.Cost, c.Shadow, show(c.Result), show(w.Result))
			}
			h.note(w)
		}
	}
}

// note remembers of an answer what the next steps may be about.
func (h *history) note(c *driver.Claim) {
	h.wait = max(c.Result.RetryAfter, c.Result.ResetAfter*time.Duration(h.rng.IntN(2)))
	k := key{c.Policy, c.Subject}
	switch h.receipts[k] = c.Result.Receipt; {
	case c.Rule.Kind() != driver.KindSlots:
		if c.Result.Allowed && h.chance(3) {
			h.skipped = *c
		}
	case c.Cost == 1:
		h.wait = c.LeaseFor
		h.leases[k] = append(h.leases[k], c.Lease)
	}
}
