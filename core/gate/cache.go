package gate

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/headgate-go/headgate/core/internal/guard"
	"github.com/headgate-go/headgate/core/limit"
)

const (
	cachedLimits = 100_000          // keys held; beyond, some are forgotten
	loadPatience = 10 * time.Second // how long one load may take in the background
	retryLoad    = time.Second      // how soon a load that failed is tried again
)

// CacheLimits makes a RequestRate.LimitFor out of a look-up that is too slow for the request path, a plan in a database for
// example. A key seen for the first time is waited for, 50 ms at most; then, and where the look-up failed, the request gets
// the limiter's own Limit. A result is used for ttl; after that it goes on being used while it is looked up again, in the
// background, and as long as that fails. There is one look-up per key at a time, with a context of its own that ends after
// ten seconds. A panic of load counts as its error. At most 100,000 keys are held.
//
// A ttl of 0 or below, and a nil load, panic: they are mistakes in the program.
func CacheLimits(ttl time.Duration, load func(ctx context.Context, key string) (limit.Rule, error)) func(Request, string) (limit.Rule, bool) {
	if ttl <= 0 || load == nil {
		panic(fmt.Sprintf("gate: CacheLimits: ttl %v and the function must be given", ttl))
	}
	c := &limitCache{ttl: ttl, load: load, entries: map[string]*cachedLimit{}}
	return c.get
}

type limitCache struct {
	ttl  time.Duration
	load func(context.Context, string) (limit.Rule, error)

	mu      sync.Mutex
	entries map[string]*cachedLimit
}

// cachedLimit is what is known of one key; guarded by the cache's mutex.
type cachedLimit struct {
	rule    limit.Rule
	known   bool
	due     time.Time     // when it is to be looked up again
	loading chan struct{} // closed when the look-up under way is over; nil if there is none
}

func (c *limitCache) get(r Request, key string) (limit.Rule, bool) {
	c.mu.Lock()
	e := c.entries[key]
	if e == nil {
		c.makeRoom()
		e = &cachedLimit{}
		key = strings.Clone(key) // it may point into the request
		c.entries[key] = e
	}
	if e.loading == nil && !time.Now().Before(e.due) {
		e.loading = make(chan struct{})
		go c.refresh(context.WithoutCancel(r.Context()), strings.Clone(key), e, e.loading)
	}
	rule, known, loading := e.rule, e.known, e.loading
	c.mu.Unlock()
	if known || loading == nil {
		return rule, known
	}
	patience := time.NewTimer(guard.DefaultTimeout)
	defer patience.Stop()
	select {
	case <-loading:
		c.mu.Lock()
		defer c.mu.Unlock()
		return e.rule, e.known
	case <-patience.C:
		return limit.Rule{}, false
	}
}

// refresh looks a key up. What was known before stays if that fails.
func (c *limitCache) refresh(ctx context.Context, key string, e *cachedLimit, done chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, loadPatience)
	defer cancel()
	rule, err := c.call(ctx, key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		e.rule, e.known, e.due = rule, true, time.Now().Add(c.ttl)
	} else {
		e.due = time.Now().Add(min(c.ttl, retryLoad))
	}
	e.loading = nil
	close(done)
}

func (c *limitCache) call(ctx context.Context, key string) (rule limit.Rule, err error) {
	defer func() {
		if p := recover(); p != nil { // nobody above this goroutine could
			err = fmt.Errorf("gate: CacheLimits: the look-up panicked: %v", p)
			slog.Error("headgate: " + err.Error())
		}
	}()
	if rule, err = c.load(ctx, key); err == nil {
		err = rule.Validate()
	}
	return rule, err
}

// makeRoom forgets keys that are not being looked up, a quarter of them at a time so that it is not done for each.
func (c *limitCache) makeRoom() {
	if len(c.entries) < cachedLimits {
		return
	}
	for key, e := range c.entries {
		if len(c.entries) <= cachedLimits*3/4 {
			return
		}
		if e.loading == nil {
			delete(c.entries, key)
		}
	}
}
