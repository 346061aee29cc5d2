package guard_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/internal/guard"
)

func claim(rule driver.Rule, subject string, cost int) *driver.Claim {
	return &driver.Claim{Policy: "p", Subject: subject, Rule: rule, Cost: cost}
}

// bucket is a store of one key: the model.
type bucket struct{ state driver.Bucket }

func (b *bucket) decide(c *driver.Claim, now int64) {
	level := b.state.Read(c.Rule, now)
	fits := level.Fits(c.Cost)
	c.Result = level.Result(c.Rule, c.Cost, fits)
	if fits && c.Cost > 0 {
		b.state = level.Take(c.Rule, c.Cost)
	}
}

// The memory never refuses what the store would admit, and tells the same numbers, to the microsecond for waits.
func TestRefusalsAgreeWithTheStore(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 9))
	answered := 0
	for round := range 300 {
		rule := driver.NewBucket(1+rng.IntN(50), time.Duration(1+rng.IntN(20_000))*time.Millisecond).WithBurst(1 + rng.IntN(40))
		if rule.Validate() != nil {
			continue
		}
		memory, store := guard.NewRefusals(), &bucket{}
		now := int64(1_800_000_000_000_000)
		for step := range 200 {
			now += rng.Int64N(400_000)
			c := claim(rule, "s", 1+rng.IntN(rule.Capacity()))
			at := time.Duration(now) * time.Microsecond
			want := *c
			probe := *store
			probe.decide(&want, now)
			if memory.Lookup(c, at) {
				answered++
				if want.Result.Allowed {
					t.Fatalf("round %d step %d: refused from memory, %v would admit", round, step, rule)
				}
				diff := c.Result.RetryAfter - want.Result.RetryAfter
				if diff < 0 || diff > time.Microsecond || c.Result.Reason != driver.ReasonMemory {
					t.Fatalf("round %d step %d: told %v, the store %v", round, step, c.Result.RetryAfter, want.Result.RetryAfter)
				}
				if c.Result.Remaining != want.Result.Remaining || c.Result.ResetAfter-want.Result.ResetAfter > time.Microsecond {
					t.Fatalf("round %d step %d: told %+v, the store %+v", round, step, c.Result, want.Result)
				}
				continue
			}
			store.decide(c, now)
			memory.Remember(c, at)
		}
	}
	if answered < 1000 {
		t.Errorf("only %d answers from memory: the test does not reach what it is about", answered)
	}
}

// A hammering client with a long wait reaches the store once in two seconds; a cost below the refused one always does.
func TestRefusalsBoundCalls(t *testing.T) {
	memory, store := guard.NewRefusals(), &bucket{}
	rule := driver.NewBucket(1, time.Hour).WithBurst(10)
	calls := 0
	ask := func(cost int, at time.Duration) driver.Result {
		c := claim(rule, "s", cost)
		if !memory.Lookup(c, at) {
			calls++
			store.decide(c, 1+int64(at/time.Microsecond))
			memory.Remember(c, at)
		}
		return c.Result
	}
	ask(6, 0)
	calls = 0
	for at := time.Second; at < 21*time.Second; at += 10 * time.Millisecond {
		if ask(5, at).Allowed {
			t.Fatal("admitted")
		}
	}
	if calls != 10 {
		t.Errorf("%d calls in 20 s, want 10", calls)
	}
	if res := ask(4, 21*time.Second); !res.Allowed {
		t.Errorf("a cost that fits is refused: %+v", res)
	}
}

func TestRefusalsForget(t *testing.T) {
	rule, other := driver.NewBucket(1, time.Hour), driver.NewBucket(2, time.Hour)
	refused := func(rule driver.Rule, subject string) *driver.Claim {
		c := claim(rule, subject, 1)
		c.Result = driver.Result{Reason: driver.ReasonLimit, RetryAfter: time.Minute, ResetAfter: time.Hour}
		return c
	}
	memory := guard.NewRefusals()
	memory.Remember(refused(rule, "s"), 0)
	if !memory.Lookup(claim(rule, "s", 1), time.Second) {
		t.Fatal("not remembered")
	}
	for name, c := range map[string]*driver.Claim{"other rule": claim(other, "s", 1), "other key": claim(rule, "t", 1),
		"cost 0": claim(rule, "s", 0), "cost above the capacity": claim(rule, "s", 9)} {
		if memory.Lookup(c, time.Second) {
			t.Errorf("%s: answered", name)
		}
	}
	if memory.Lookup(claim(rule, "s", 1), 2*time.Second) || memory.Lookup(claim(rule, "s", 1), -time.Second) {
		t.Error("answered out of its time")
	}
	memory.Forget("p", "s")
	if memory.Lookup(claim(rule, "s", 1), time.Second) {
		t.Error("not forgotten")
	}
	memory.Remember(refused(rule, "s"), 0)
	memory.Clear()
	if memory.Lookup(claim(rule, "s", 1), time.Second) {
		t.Error("not cleared")
	}
	allowed := claim(rule, "s", 1)
	allowed.Result.Allowed = true
	memory.Remember(allowed, 0)
	if memory.Lookup(claim(rule, "s", 1), time.Second) {
		t.Error("an admission is remembered as a refusal")
	}
}

// An attacker with a million keys does not grow it, and the latest refusals are still known.
func TestRefusalsAreBounded(t *testing.T) {
	memory := guard.NewRefusals()
	rule := driver.NewBucket(1, time.Hour)
	known := 0
	const keys = 100_000
	for i := range keys {
		c := claim(rule, fmt.Sprint(i), 1)
		c.Result = driver.Result{Reason: driver.ReasonLimit, RetryAfter: time.Minute}
		memory.Remember(c, time.Duration(i))
	}
	for i := range keys {
		if memory.Lookup(claim(rule, fmt.Sprint(i), 1), time.Second) {
			known++
		}
	}
	if known < 1<<15 || known > 1<<16 {
		t.Errorf("%d keys known of %d", known, keys)
	}
}
