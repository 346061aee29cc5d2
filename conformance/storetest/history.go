package storetest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

var historyCases = []Case{
	{"BR157_histories_agree_with_the_model", "whatever the times, costs, rules and corrections are, a store admits exactly what the model admits",
		func(p *probe) { p.histories(historyRules, false) }},
}

var windowHistoryCases = []Case{
	{"BR157_histories_of_windows_agree_with_the_model", "whatever the times, costs, rules, corrections and receipts are, a store admits exactly what the model admits",
		func(p *probe) { p.histories(windowHistoryRules(), false) }},
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

// histories plays random histories, always the same ones, against the store and the reference. With spread the claims of
// an entry may have different subjects.
func (p *probe) histories(rules []driver.Rule, spread bool) {
	for seed := range uint64(12) {
		h := &history{p: p, seed: seed, rng: rand.New(rand.NewPCG(seed, 0x4ead6a7e)), pool: rules, spread: spread,
			ref: reference{}, receipts: map[key]driver.Receipt{}, now: noon}
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
	pool   []driver.Rule
	spread bool
	ref    reference
	now    time.Time
	latest time.Time // the latest now so far
	keys   []key     // two subjects of each policy, one after the other
	rules  []driver.Rule
	wait   time.Duration // of the last answer: the edges are what a store gets wrong
	// receipts are those of the last answers about a key.
	receipts map[key]driver.Receipt
}

// chance is true once in n times.
func (h *history) chance(n int) bool { return h.rng.IntN(n) == 0 }

func (h *history) play() {
	h.tick()
	if h.chance(6) {
		h.rules[h.rng.IntN(len(h.rules))] = h.pool[h.rng.IntN(len(h.pool))]
	}
	if h.chance(6) {
		h.settle()
	}
	// A policy is in one mode for all requests of a call: a key may not be enforced and shadowed at the same time.
	shadow := []bool{h.chance(4), h.chance(4), h.chance(4)}
	batch := make([]driver.Entry, 1)
	if h.chance(4) {
		batch = make([]driver.Entry, 2+h.rng.IntN(6))
	}
	for i := range batch {
		batch[i].Claims = h.claims(shadow)
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
		c := k.claim(rule, h.cost(rule.Capacity()))
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

func (h *history) settle() {
	policy := h.rng.IntN(len(h.rules))
	k, rule := h.keys[2*policy+h.rng.IntN(2)], h.rules[policy]
	c := driver.Change{Kind: driver.Settle, Policy: k.policy, Subject: k.subject, Rule: rule, Amount: h.cost(rule.Capacity())}
	if h.chance(2) {
		c.Amount = -c.Amount
	}
	// A shared store's caller knows its own clock only, so while that is behind it may take a window for the running one
	// that is not.
	if rule.IsWindow() && !h.now.Before(h.latest) && !h.chance(3) {
		c.Receipt = h.receipts[k]
	}
	h.p.apply(h.now, c)
	h.ref.settle(h.now.UnixMicro(), &c)
}

func (h *history) compare(batch []driver.Entry) {
	want := make([]driver.Entry, len(batch))
	for i := range batch {
		want[i].Claims = append([]driver.Claim(nil), batch[i].Claims...)
		h.ref.decide(h.now.UnixMicro(), &want[i])
	}
	if err := h.p.store().Decide(context.Background(), h.now, batch); err != nil {
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
			h.receipts[key{c.Policy, c.Subject}] = w.Result.Receipt
			if c.Result != w.Result {
				h.p.fatalf("history %d, step %d, entry %d of %d, claim %d of %d (%v, cost %d, shadow %v):\n got %s\nwant %s",
					h.seed, h.step, i, len(batch), j, len(batch[i].Claims), c.Rule, c.Cost, c.Shadow, show(c.Result), show(w.Result))
			}
			h.wait = max(w.Result.RetryAfter, w.Result.ResetAfter*time.Duration(h.rng.IntN(2)))
		}
	}
}
