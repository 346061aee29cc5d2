package gate_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// wallet is a gate with one budget that does not refill, and what is left in it.
type wallet struct {
	*gate.Gate
	clock *clock
}

func newWallet(t *testing.T, burst int, change ...func(*gate.Config, *gate.RequestRate)) wallet {
	r := gate.RequestRate{Name: "p", Limit: limit.PerDay(1).WithBurst(burst), Key: gate.Const("k"), Match: gate.Not(gate.Paths("/free"))}
	at := newClock()
	c := gate.Config{Clock: at.now, Logger: new(lines).logger()}
	for _, f := range change {
		f(&c, &r)
	}
	c.Limiters = []gate.Limiter{r}
	return wallet{newGate(t, c), at}
}

func (w wallet) admit() *gate.Admission {
	return w.Admit(context.Background(), call("GET /x", "192.0.2.1"))
}

func (w wallet) left(t *testing.T) int {
	t.Helper()
	d, ok := w.Take(context.Background(), "p", 0, "k").Decision("p")
	if !ok {
		t.Fatal("not asked")
	}
	return d.Remaining
}

func (w wallet) wants(t *testing.T, left int) {
	t.Helper()
	if got := w.left(t); got != left {
		t.Errorf("%d left, want %d", got, left)
	}
}

func TestSettle(t *testing.T) {
	cost := func(n int) func(*gate.Config, *gate.RequestRate) {
		return func(_ *gate.Config, r *gate.RequestRate) { r.Cost = func(gate.Request) int { return n } }
	}
	w := newWallet(t, 100, cost(10))
	w.admit().Settle("p", 4) // cheaper than thought
	w.wants(t, 96)
	a := w.admit() // 86
	a.Settle("p", 30)
	a.Settle("p", 0) // once per policy
	w.wants(t, 66)
	a.Settle("nobody", 50)
	w.admit().Settle("p", -5) // ignored: 56
	w.wants(t, 56)
	w.admit().Settle("p", 1000) // debt is at most one capacity
	w.wants(t, 0)
	if ref := w.admit().Refusal(); ref == nil || ref.RetryAfter != 110*24*time.Hour || ref.RetryAfterSeconds() != 24*60*60 {
		t.Errorf("the wait does not include the debt: %+v", ref)
	}
	w.clock.advance(100 * 24 * time.Hour)
	w.wants(t, 0)
	w.clock.advance(11 * 24 * time.Hour)
	w.wants(t, 11)
}

// Where nothing was charged there is nothing to settle.
func TestSettleWithoutCharge(t *testing.T) {
	var none *gate.Admission
	none.Settle("p", 5)
	if none.Charge(context.Background(), "p", 5) != nil {
		t.Error("a nil admission refuses")
	}
	w := newWallet(t, 10)
	w.Admit(context.Background(), call("GET /free", "192.0.2.1")).Settle("p", 5)
	if err := w.SetMode("p", gate.Shadow); err != nil {
		t.Fatal(err)
	}
	a := w.admit() // the shadow's own state is charged
	a.Settle("p", 9)
	if a.Charge(context.Background(), "p", 9) != nil {
		t.Error("a shadow limiter refuses a charge")
	}
	if err := w.SetMode("p", gate.Enforce); err != nil {
		t.Fatal(err)
	}
	w.wants(t, 9)
	for range 20 {
		w.admit().Settle("p", 0) // allowed ones only: a refused one gives nothing back
	}
	w.wants(t, 9)
	broken := newWallet(t, 10, func(c *gate.Config, _ *gate.RequestRate) { c.Store = brokenStore{errDown} })
	broken.admit().Settle("p", 5)
	if broken.admit().Charge(context.Background(), "p", 5) != nil {
		t.Error("a charge is refused where the request failed open")
	}
}

func TestCharge(t *testing.T) {
	w := newWallet(t, 10)
	a := w.admit()
	ctx := context.Background()
	if ref := a.Charge(ctx, "p", 4); ref != nil {
		t.Errorf("%+v", ref)
	}
	w.wants(t, 5)
	if ref := a.Charge(ctx, "p", 6); ref == nil || ref.Status != 429 || ref.Remaining != 5 {
		t.Errorf("%+v", ref)
	}
	w.wants(t, 5)
	a.Settle("p", 2) // of the 5 that were charged
	w.wants(t, 8)
	if ref := w.admit().Charge(ctx, "p", -3); ref != nil { // charged as 1
		t.Errorf("%+v", ref)
	}
	w.wants(t, 6)
}

// BR-112: what a handler ended with decides; a status that the error handler will write counts, a panic too.
func TestBR112_SkipFailed(t *testing.T) {
	for name, tt := range map[string]struct {
		change         func(*gate.Config, *gate.RequestRate)
		failed, passed int
	}{
		"charge both":    {func(*gate.Config, *gate.RequestRate) {}, 1, 1},
		"SkipFailed":     {func(_ *gate.Config, r *gate.RequestRate) { r.SkipFailed = true }, 0, 1},
		"SkipSuccessful": {func(_ *gate.Config, r *gate.RequestRate) { r.SkipSuccessful = true }, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWallet(t, 100, tt.change)
			left := 100
			for _, end := range []struct {
				result gate.Result
				err    error
				panics bool
				failed bool
			}{
				{gate.Result{Status: 200}, nil, false, false},
				{gate.Result{Status: 302, Final: true}, nil, false, false},
				{gate.Result{Status: 404}, nil, false, true},
				{gate.Result{Status: 503, Final: true}, nil, false, true},
				{gate.Result{Status: 200}, errors.New("cut off"), false, true},
				{gate.Result{}, nil, true, true},
			} {
				func() {
					defer func() {
						if got := recover() != nil; got != end.panics {
							t.Errorf("panicked: %v", got)
						}
					}()
					_ = w.Serve(&ending{exchange: exchange{Call: call("GET /x", "192.0.2.1"), fields: map[string]string{}}, result: end.result, err: end.err, panics: end.panics})
				}()
				if end.failed {
					left -= tt.failed
				} else {
					left -= tt.passed
				}
				w.wants(t, left)
			}
			w.admit().Done(nil)
			w.admit().Done(errors.New("failed"))
			w.wants(t, left-tt.passed-tt.failed)
		})
	}
}

// ending is an exchange whose handler ends as it is told.
type ending struct {
	exchange
	result gate.Result
	err    error
	panics bool
}

func (x *ending) Next() (gate.Result, error) {
	if x.panics {
		panic("handler")
	}
	return x.result, x.err
}

// Skipping wins over settling, and gives back what is charged then.
func TestSkipAfterSettle(t *testing.T) {
	w := newWallet(t, 100, func(_ *gate.Config, r *gate.RequestRate) { r.SkipFailed = true })
	a := w.admit()
	a.Settle("p", 40)
	w.wants(t, 60)
	a.Done(errors.New("failed"))
	a.Done(errors.New("failed")) // once
	w.wants(t, 100)
}

// Settling from several goroutines of a handler charges once.
func TestSettleOnce(t *testing.T) {
	w := newWallet(t, 1000)
	for range 100 {
		a := w.admit()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { a.Settle("p", 3) })
		}
		all.Wait()
	}
	w.wants(t, 700)
}

// A limiter that gives back is not answered from the memory of refusals.
func TestNoMemoryOnceSettled(t *testing.T) {
	s := newShared(t)
	w := newWallet(t, 10, func(c *gate.Config, _ *gate.RequestRate) { c.Store = s })
	a := w.admit()
	for range 12 {
		w.admit()
	}
	before := s.calls.Load()
	w.admit()
	if s.calls.Load() != before {
		t.Fatal("a refusal is not remembered: the test shows nothing")
	}
	a.Settle("p", 0)
	if err := w.Close(context.Background()); err != nil { // waits for the correction
		t.Fatal(err)
	}
	again := newWallet(t, 10, func(c *gate.Config, r *gate.RequestRate) { c.Store, r.SkipFailed = s, true })
	if !again.admit().Allowed() {
		t.Error("what was given back is not there")
	}
	again.admit()
	before = s.calls.Load()
	again.admit()
	if s.calls.Load() == before {
		t.Error("a limiter that gives back is answered from memory")
	}
}

// pooled is an exchange whose memory belongs to another request once its own is over, as in Gin and Fiber.
type pooled struct {
	exchange
	t    *testing.T
	over bool
}

func (x *pooled) Context() context.Context {
	if x.over {
		x.t.Error("the request was looked at after it was over")
	}
	return x.exchange.Context()
}

// BR-116: work that goes on after the response may settle, and does not touch the request then.
func TestBR116_SettleAfterTheRequest(t *testing.T) {
	w := newWallet(t, 100)
	x := &pooled{exchange: exchange{Call: call("GET /x", "192.0.2.1"), fields: map[string]string{}}, t: t}
	if err := w.Serve(x); err != nil {
		t.Fatal(err)
	}
	x.over = true
	x.met.Settle("p", 40)
	w.wants(t, 60)
}
