package xtest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/limit"
)

// ledger is what the reference model says of every key, with one rule and one state at a time.
type ledger struct {
	buckets map[string]driver.Bucket
	windows map[string]driver.Window
}

// admit says what the model answers, and takes it.
func (l *ledger) admit(key string, rule driver.Rule, cost int, now int64) driver.Result {
	if rule.IsWindow() {
		level := l.windows[key].Read(rule, now)
		taken := cost > 0 && level.Fits(rule, cost)
		if taken {
			l.windows[key] = level.Take(cost)
		}
		return level.Result(rule, cost, taken)
	}
	level := l.buckets[key].Read(rule, now)
	taken := cost > 0 && level.Fits(cost)
	if taken {
		l.buckets[key] = level.Take(rule, cost)
	}
	return level.Result(rule, cost, taken)
}

func (l *ledger) settle(key string, rule driver.Rule, amount int, receipt driver.Receipt, now int64) {
	if rule.IsWindow() {
		w, ok := l.windows[key]
		if level := w.Read(rule, now); amount != 0 && level.Runs(receipt) && (ok || amount > 0) {
			l.windows[key] = level.Settle(rule, amount)
		}
		return
	}
	b, ok := l.buckets[key]
	if amount != 0 && (ok || amount > 0) {
		l.buckets[key] = b.Read(rule, now).Settle(rule, amount)
	}
}

// flight is a request that one of the processes has in hand.
type flight struct {
	id      int
	worker  *process
	key     string
	rule    driver.Rule
	charge  int
	skip    string
	receipt driver.Receipt
	taken   bool
	settled bool
}

// Processes with different clients take turns on one server: requests of random costs under limits that change, corrected
// while they run, given back by how they end. Every answer is the model's.
func TestHistoriesOfSeveralProcesses(t *testing.T) {
	addr := redistest.Start(t, redistest.Single).Addr()
	workers := []*process{startWorker(t, "goredis", addr), startWorker(t, "rueidis", addr), startWorker(t, "goredis", addr)}
	rules := map[string][]driver.Rule{
		"bucket":  {limit.Per(7, time.Second).WithBurst(20), limit.Per(1, 3*time.Second).WithBurst(9), limit.PerSecond(1000).WithBurst(300)},
		"fixed":   {limit.Window(20, 10*time.Second), limit.Window(9, 10*time.Second), limit.Window(50, 4*time.Second)},
		"sliding": {limit.Sliding(20, 10*time.Second), limit.Sliding(7, 10*time.Second), limit.Window(15, 10*time.Second)},
		"day":     {limit.Daily(40), limit.Daily(15), limit.Monthly(60)},
	}
	kinds := []string{"bucket", "fixed", "sliding", "day"}
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 4))
		model := ledger{buckets: map[string]driver.Bucket{}, windows: map[string]driver.Window{}}
		now := time.Date(2031, 3, 31, 23, 59, 0, 0, time.UTC).UnixMicro()
		var flights []*flight
		for step := range 250 {
			now += rng.Int64N(1_500_000)
			if n := len(flights); n > 12 || n > 0 && rng.IntN(2) == 0 {
				i := rng.IntN(n)
				f := flights[i]
				if !f.settled && rng.IntN(2) == 0 {
					f.settle(&model, rng.IntN(30), now)
					continue
				}
				flights = append(flights[:i], flights[i+1:]...)
				f.end(&model, rng.IntN(2) == 0, now)
				continue
			}
			kind := kinds[rng.IntN(len(kinds))]
			rule := rules[kind][rng.IntN(100)*rng.IntN(2)%3] // mostly the first
			f := &flight{id: step, worker: workers[rng.IntN(len(workers))], rule: rule, charge: rng.IntN(12),
				key:  fmt.Sprintf("%s %d %d", kind, seed, rng.IntN(2)),
				skip: []string{"", "failed", "successful"}[rng.IntN(3)]}
			got := f.worker.tell(order{Op: "admit", ID: f.id, At: now, Tenant: f.key, Rule: rule.String(), Cost: f.charge, Gives: f.skip})
			want := model.admit(f.key, rule, f.charge, now)
			if got.Allowed != want.Allowed || got.Remaining != want.Remaining || got.RetryAfter != want.RetryAfter || got.ResetAfter != want.ResetAfter {
				t.Fatalf("seed %d, step %d, %v at cost %d: %+v; the model says %+v", seed, step, rule, f.charge, got, want)
			}
			f.taken, f.receipt = want.Allowed, want.Receipt
			flights = append(flights, f)
		}
		for _, f := range flights {
			f.end(&model, false, now)
		}
	}
}

func (f *flight) settle(model *ledger, actual int, now int64) {
	f.worker.tell(order{Op: "settle", ID: f.id, At: now, Cost: actual, Sends: f.taken && actual != f.charge})
	if f.taken {
		model.settle(f.key, f.rule, actual-f.charge, f.receipt, now)
		f.settled, f.charge = true, actual
	}
}

func (f *flight) end(model *ledger, failed bool, now int64) {
	skips := failed && f.skip == "failed" || !failed && f.skip == "successful"
	sends := f.taken && skips && f.charge > 0
	f.worker.tell(order{Op: "done", ID: f.id, At: now, Failed: failed, Sends: sends})
	if sends {
		model.settle(f.key, f.rule, -f.charge, f.receipt, now)
	}
}
