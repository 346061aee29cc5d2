// Package memory is the in-process store of limiter state: exact, bounded, without a goroutine.
//
// A gate without a store makes one for itself, so most programs never name this package. Make a store with [New]
// to share it between gates, to bound it, or to see its [Stats].
//
// State lives in this process only: every process, and every child of a prefork server, counts for itself.
//
// Inside a testing/synctest bubble make the store inside the bubble; its clock and its sweeper are then the bubble's.
package memory

import (
	"context"
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// DefaultMaxKeys is how many keys a store holds unless told otherwise. A million keys take about 45 MB.
const DefaultMaxKeys = 1_000_000

const (
	// minPerShard keeps what a shard may hold large against the scatter of the hash: with 4096 keys or more its
	// standard deviation is below 1.6 %, so the first shard is full when the store is at least 93 % full.
	minPerShard = 4096
	// maxShards is reached at 64 million keys. Up to there no shard holds more than 8191 keys, and that bounds how
	// long growing, sweeping or evicting can hold one: a fraction of a millisecond.
	maxShards = 1 << 14
)

// Store is a [driver.Store] in the memory of the process. Make it with [New]; the zero value holds nothing and
// is not usable. All methods are safe for concurrent use.
//
// A decision takes the locks of all shards its claims touch, in ascending order, so all or nothing over several
// claims is exact. A key is kept only as a 64-bit hash with a seed of this store: the chance that any two of a million
// keys share their state is about 3 in 10^8, and nobody outside can aim at it. Subjects are not kept.
//
// Slots are held until they are released, see [Store.InProcess]. They are never evicted and no bound of this store counts
// them: there are as many as requests in flight have taken. A key without a lease takes no memory.
//
// The context of a decision is not looked at: nothing here waits for anything but a mutex.
type Store struct {
	shards []shard
	mask   uint64
	seed   maphash.Seed

	start  time.Time // when the store was made, with its monotonic reading
	base   int64     // the same in microseconds after 1970
	closed atomic.Bool

	wake  atomic.Uint32 // the tick of the next sweep; never if none is planned
	mu    sync.Mutex    // guards timer and every change of wake
	timer *time.Timer
}

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.KeyNamer  = (*Store)(nil)
	_ driver.InProcess = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

// Option changes what [New] makes.
type Option func(*options)

type options struct{ maxKeys int }

// WithMaxKeys bounds how many keys the store holds; below 1 means [DefaultMaxKeys].
//
// Keys of slots do not count: what requests in flight hold is never given up.
//
// Below 8192 the bound is exact. Above, the keys are spread over shards with an equal share of the bound each, so a
// store may begin to evict a few per cent before it is full; it never holds more. See [Stats] for what is evicted.
func WithMaxKeys(n int) Option { return func(o *options) { o.maxKeys = n } }

// New makes an empty store. It starts nothing: the first key arms a timer, and the last one to go leaves none.
//
// A store that is dropped without [Store.Close] is collected like any other value, also while keys are in it.
func New(opts ...Option) *Store {
	o := options{}
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	if o.maxKeys < 1 {
		o.maxKeys = DefaultMaxKeys
	}
	n := shardCount(o.maxKeys)
	now := time.Now()
	s := &Store{
		shards: make([]shard, n),
		mask:   uint64(n - 1),
		seed:   maphash.MakeSeed(),
		start:  now,
		base:   micros(now),
	}
	for i := range s.shards {
		s.shards[i].bound = o.maxKeys / n
		if i < o.maxKeys%n {
			s.shards[i].bound++ // together exactly maxKeys
		}
		s.shards[i].low = never
	}
	s.wake.Store(never)
	return s
}

// shardCount is the largest power of two that leaves every shard at least minPerShard keys.
func shardCount(maxKeys int) int {
	n := min(maxKeys/minPerShard, maxShards)
	if n < 2 {
		return 1
	}
	return 1 << (bits.Len(uint(n)) - 1)
}

// Decide answers every entry of the batch in place, one after another; see [driver.Store]. An invalid or unlimited rule, a
// negative cost, or a lease that [driver.Claim.CheckLease] finds fault with is the Err of its entry alone. The only error
// is [driver.ErrClosed]. The context is not looked at, so a canceled one changes nothing.
//
// A given now outside the years 1970 to 2112 counts as the nearest time inside. State written at a given time is kept
// one hour longer than its rule needs, since the sweeper goes by the real clock.
func (s *Store) Decide(_ context.Context, now time.Time, batch []driver.Entry) error {
	if s.closed.Load() {
		return driver.ErrClosed
	}
	if len(batch) == 1 && len(batch[0].Claims) == 1 {
		e, c := &batch[0], &batch[0].Claims[0]
		if c.Rule.Kind() == driver.KindSlots {
			s.decideSlot(e, c) // without reading the clock, which would be a third of what it costs
		} else {
			s.decideOne(e, c, s.read(now))
		}
		return nil
	}
	clk := s.read(now)
	for i := range batch {
		if e := &batch[i]; len(e.Claims) == 1 {
			s.decideOne(e, &e.Claims[0], clk)
		} else {
			s.decideMany(e, clk)
		}
	}
	return nil
}

// Close ends the sweeper and gives the memory back. A second Close is a no-op, and neither fails. After it Decide and
// Apply return [driver.ErrClosed].
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.mu.Lock()
	if s.timer != nil {
		s.timer.Stop()
	}
	s.wake.Store(never)
	s.mu.Unlock()
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		sh.clear()
		sh.leases = leases{}
		sh.mu.Unlock()
	}
	return nil
}

// Stats is what a store holds and what it had to give up.
type Stats struct {
	// Keys is the number of keys held now, those included that equal a fresh key and were not swept yet.
	Keys int
	// Evictions counts keys given up since the store was made although they did not equal a fresh key: the bound
	// forced it. Each was the nearest to fresh of its shard, to about a tenth of a second; of windows that end together,
	// to about a second, one of the emptiest. If this grows, raise [WithMaxKeys] or put a limiter by client address in front.
	Evictions uint64
	// Leases is the number of slots held now, of all keys.
	Leases int
}

// Stats counts. It takes the lock of one shard after another, so it is cheap and no snapshot.
func (s *Store) Stats() Stats {
	var st Stats
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		st.Keys += sh.count
		st.Evictions += sh.evictions
		st.Leases += sh.leases.count
		sh.mu.Unlock()
	}
	return st
}

// KeyName names the state of subject under policy and rule as a shared store would, "{digest}:policy:b1" for a bucket,
// w1 for a window and c1 for slots; the empty string for a rule without state. Here it is only a name: keys are kept as
// hashes and cannot be looked up by it.
func (s *Store) KeyName(policy, subject string, rule driver.Rule) string {
	switch {
	case rule.Kind() == driver.KindBucket:
		return "{" + driver.Digest(subject) + "}:" + policy + ":b1"
	case rule.IsWindow():
		return "{" + driver.Digest(subject) + "}:" + policy + ":w1"
	case rule.Kind() == driver.KindSlots:
		return "{" + driver.Digest(subject) + "}:" + policy + ":c1"
	}
	return ""
}

// What a key's state may be. Windows of all kinds are one, so that the kind can change under live keys; a bucket that
// becomes a window starts anew.
const (
	bucketState = uint64(driver.KindBucket)
	windowState = uint64(driver.KindFixed)
	slotState   = uint64(driver.KindSlots)
)

func stateOf(r *driver.Rule) uint64 {
	switch r.Kind() {
	case driver.KindBucket:
		return bucketState
	case driver.KindSlots:
		return slotState
	}
	return windowState
}

// hash names the state of subject under policy. The hashes of the strings are added, one of them times an odd
// constant, so that nothing is joined or copied: where only one string differs the sums differ whenever its hashes do,
// and where both do they meet by chance only, the seed being secret. It is never 0, which marks a free slot.
func (s *Store) hash(policy, subject string, state uint64) uint64 {
	const odd = 0x9e3779b97f4a7c15 // 2^64 / the golden ratio
	h := maphash.String(s.seed, subject) + (maphash.String(s.seed, policy)+state*odd)*odd
	if h == 0 {
		return odd
	}
	return h
}

// shard returns where a hash lives. It uses the low bits; the place inside the shard is made from the high ones.
func (s *Store) shard(h uint64) *shard { return &s.shards[h&s.mask] }
