package membench

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/go-chi/httprate"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	ululememory "github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/memory"
)

// quota is what a limiter is told to admit.
type quota int

const (
	plenty quota = iota // more than anybody asks for
	scarce              // once a day and key
	brief               // once per [window] and key; idle keys are swept after [sweepAt]
)

// The life of keys that are to be swept. Filling a million of them takes less than sweepAt.
const (
	window  = 2 * time.Second
	sweepAt = 3 * time.Second
	most    = 1_000_000_000 // what plenty is
)

// take asks about a key; false is a refusal or a failure.
type take func(key string) bool

// opened is a limiter at work.
type opened struct {
	taker func() take // for one worker
	size  func() int  // keys held; nil where nobody can tell
	close func()
}

// limiter is a way to decide in the process.
type limiter struct {
	name string
	open func(q quota) opened
}

func nothing() {}

// shared is a limiter whose function all workers share.
func shared(t take) opened { return opened{taker: func() take { return t }, close: nothing} }

func headgateRule(q quota) driver.Rule {
	switch q {
	case scarce:
		return driver.NewBucket(1, 24*time.Hour)
	case brief:
		return driver.NewBucket(1, window).WithBurst(1)
	}
	return driver.NewBucket(1, time.Second).WithBurst(most)
}

const policy = "tenant"

// openHeadgate decides with the time that now returns; nil: the store's own clock.
func openHeadgate(now func() time.Time, options ...memory.Option) func(q quota) opened {
	return func(q quota) opened {
		store, rule := memory.New(options...), headgateRule(q)
		return opened{
			size:  func() int { return store.Stats().Keys },
			close: func() { _ = store.Close() },
			taker: func() take {
				batch := []driver.Entry{{Claims: []driver.Claim{{Policy: policy, Rule: rule, Cost: 1}}}}
				return func(key string) bool {
					c := &batch[0].Claims[0]
					c.Subject = key
					var at time.Time
					if now != nil {
						at = now()
					}
					return store.Decide(context.Background(), at, batch) == nil && batch[0].Err == nil && c.Result.Allowed
				}
			},
		}
	}
}

// The limiters that are compared, with the settings that their documentation shows.
var (
	headgate      = limiter{"headgate", openHeadgate(nil)}
	headgateLarge = limiter{"headgate, made for 3,000,000 keys", openHeadgate(nil, memory.WithMaxKeys(3_000_000))}

	headgateCoarse = limiter{"headgate, 1 ms clock given by the caller", func(q quota) opened {
		now, stop := coarse()
		start := time.Now().UnixMicro()
		o := openHeadgate(func() time.Time { return time.UnixMicro(start + now()/1000) })(q)
		o.close = stop
		return o
	}}

	// throughGate is all of a gate but the framework: key, store, admission. It keeps the subjects itself.
	throughGate = limiter{"headgate through gate.Admit", func(q quota) opened {
		g := gate.Must(gate.New(gate.Config{Limiters: []gate.Limiter{gate.RequestRate{Name: policy, Limit: headgateRule(q), Key: gate.Header("X-Tenant")}}}))
		return opened{close: func() { _ = g.Close(context.Background()) }, taker: func() take {
			var r request
			return func(key string) bool {
				r.tenant = key
				a := g.Admit(context.Background(), &r)
				a.Done(nil)
				return a.Allowed()
			}
		}}
	}}

	timeRate = limiter{"x/time/rate in a sync.Map", func(q quota) opened {
		limit, burst := map[quota]rate.Limit{plenty: 1, scarce: rate.Every(24 * time.Hour), brief: rate.Every(window)}[q], 1
		if q == plenty {
			burst = most
		}
		var m sync.Map
		return shared(func(key string) bool {
			v, ok := m.Load(key)
			if !ok {
				v, _ = m.LoadOrStore(key, rate.NewLimiter(limit, burst))
			}
			return v.(*rate.Limiter).Allow()
		})
	}}
	goLimiter = limiter{"sethvargo/go-limiter", func(q quota) opened {
		c := map[quota]memorystore.Config{
			plenty: {Tokens: most, Interval: time.Hour},
			scarce: {Tokens: 1, Interval: 24 * time.Hour},
			brief:  {Tokens: 1, Interval: window / 4, SweepInterval: sweepAt, SweepMinTTL: window / 4},
		}[q]
		store := must(memorystore.New(&c))
		o := shared(func(key string) bool {
			_, _, _, ok, err := store.Take(context.Background(), key)
			return ok && err == nil
		})
		o.close = func() { _ = store.Close(context.Background()) }
		return o
	}}
	ululeLimiter = limiter{"ulule/limiter", func(q quota) opened {
		r := map[quota]ulule.Rate{
			plenty: {Period: time.Hour, Limit: most}, scarce: {Period: 24 * time.Hour, Limit: 1}, brief: {Period: window / 4, Limit: 1},
		}[q]
		options := ulule.StoreOptions{Prefix: ulule.DefaultPrefix, CleanUpInterval: ulule.DefaultCleanUpInterval}
		if q == brief {
			options.CleanUpInterval = sweepAt
		}
		l := ulule.New(ululememory.NewStoreWithOptions(options), r)
		return shared(func(key string) bool {
			c, err := l.Get(context.Background(), key)
			return err == nil && !c.Reached
		})
	}}
	throttledLimiter = limiter{"throttled", func(q quota) opened {
		// Without a bound on its keys, which is its fastest store: the bounded one takes a lock for every reading.
		store := must(memstore.NewCtx(0))
		quotas := map[quota]throttled.RateQuota{
			plenty: {MaxRate: throttled.PerSec(1), MaxBurst: most - 1}, scarce: {MaxRate: throttled.PerDay(1)}, brief: {MaxRate: throttled.PerDuration(1, window)},
		}
		l := must(throttled.NewGCRARateLimiterCtx(store, quotas[q]))
		return shared(func(key string) bool {
			limited, _, err := l.RateLimitCtx(context.Background(), key, 1)
			return err == nil && !limited
		})
	}}
	httprateLimiter = limiter{"go-chi/httprate", func(q quota) opened {
		limit, length := 1, map[quota]time.Duration{plenty: time.Hour, scarce: 24 * time.Hour, brief: window * 3 / 4}[q]
		if q == plenty {
			limit = most
		}
		l := httprate.NewRateLimiter(limit, length)
		return opened{close: nothing, taker: func() take {
			r, w := must(http.NewRequest(http.MethodGet, "/", nil)), headers{}
			return func(key string) bool { return !l.OnLimit(w, r, key) }
		}}
	}}
	failsafeLimiter = limiter{"failsafe-go in a sync.Map", func(q quota) opened {
		executions, period := uint(1), map[quota]time.Duration{plenty: time.Hour, scarce: 24 * time.Hour, brief: window}[q]
		if q == plenty {
			executions = most
		}
		var m sync.Map
		return shared(func(key string) bool {
			v, ok := m.Load(key)
			if !ok {
				v, _ = m.LoadOrStore(key, ratelimiter.NewBursty[any](executions, period))
			}
			return v.(ratelimiter.RateLimiter[any]).TryAcquirePermit()
		})
	}}
)

// peers are what headgate is measured against. The floors stand apart: they are no limiters that anybody could use.
var peers = []limiter{timeRate, goLimiter, ululeLimiter, throttledLimiter, httprateLimiter, failsafeLimiter}

// request is the little that a gate asks of one.
type request struct {
	gate.Call
	tenant string
}

// Header implements gate.Request.
func (r *request) Header(string) string { return r.tenant }

// headers is a response of which only the header is used.
type headers http.Header

func (h headers) Header() http.Header         { return http.Header(h) }
func (h headers) Write(p []byte) (int, error) { return len(p), nil }
func (h headers) WriteHeader(int)             {}

func must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("membench: a limiter could not be made: %v", err))
	}
	return v
}
