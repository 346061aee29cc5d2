package redisscript

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// Client is what a store needs of a Redis client. Implementations must be safe for concurrent use.
//
// A call must be sent at most once: one that timed out may have been executed, and would be charged twice. The deadline
// of ctx should be kept, but nothing hangs if it is not; ctx has the values of one of the callers, which may be gone by
// then. The slices must not be kept after the call; the strings may be. Errors are returned as the client made them; see
// [Classify].
type Client interface {
	// EvalSHA sends EVALSHA sha len(keys) keys... args... and returns the reply, which is a bulk string. A reply of
	// another type is an error of class [driver.ClassProtocol].
	EvalSHA(ctx context.Context, sha string, keys, args []string) (string, error)
	// Eval does the same with EVAL and the text of the script. It is called after a NOSCRIPT answer.
	Eval(ctx context.Context, script string, keys, args []string) (string, error)
	// EvalSHAs sends several EVALSHA together, in one pipeline, and answers each: with the reply or with an error.
	EvalSHAs(ctx context.Context, sha string, calls []Call)
	// Pipe sends plain commands together, each a name, a key and what else it needs, and returns the first error that the
	// server answered to one of them, or what kept it from answering. All that a command touches is in the hash slot of its
	// key. Twice does the same as once, so these may be sent again.
	Pipe(ctx context.Context, commands [][]string) error
}

// LateClient is implemented by clients that want to know that a call is late, which they may not notice for much longer: who
// asks a primary that hangs hears nothing of the one that took its place.
type LateClient interface {
	// Late is told that a caller has gone without an answer, and a key of what was asked. It must not block.
	Late(key string)
}

// Call is an EVALSHA among others: its keys and arguments, and what became of it.
type Call struct {
	Keys, Args []string
	Reply      string
	Err        error
}

// Option changes a [Store].
type Option func(*Store)

// WithPrefix sets what every key begins with, without braces. The default, and what "" means, is [DefaultPrefix].
func WithPrefix(prefix string) Option {
	return func(s *Store) {
		if prefix != "" {
			s.prefix = prefix
		}
	}
}

// WithTimeout sets how long a call may take whose context has no deadline. The default, and what 0 means, is
// [DefaultTimeout]; a negative one is an error.
func WithTimeout(d time.Duration) Option {
	return func(s *Store) {
		if d != 0 {
			s.timeout = d
		}
	}
}

// WithPackSize bounds how many claims of requests that wait at the same moment share a call. The default, the most, and what
// anything outside of 1 to 64 means, is 64: that holds the server for about 0.15 ms. 1 makes a call for each decision, for a
// server on which others would mind even that: calls that wait go in one pipeline, and cost the server about twice the work.
func WithPackSize(claims int) Option {
	return func(s *Store) {
		if claims >= 1 && claims <= packClaims {
			s.queue.pack = claims
		}
	}
}

// WithCluster says that the client speaks to a Redis Cluster: a call then has keys of one hash slot only, and a request on
// several is decided in parts.
func WithCluster() Option { return func(s *Store) { s.cluster = true } }

// DefaultTimeout bounds a call whose context has no deadline. Package gate always sets one.
const DefaultTimeout = time.Second

// Store is a [driver.Store] on one Redis server, on whatever a client presents as one, or with [WithCluster] on a Redis Cluster.
// It also implements [driver.KeyNamer], [driver.Inspector] and [driver.Parted].
type Store struct {
	client  Client
	late    func(key string) // the client's, if it wants to know
	prefix  string
	timeout time.Duration
	err     error
	cluster bool
	queue   queue
	lanes   []*queue       // of a cluster; the first is queue
	giving  sync.WaitGroup // what was taken by parts of refused requests goes back
}

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.KeyNamer  = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Parted    = (*Store)(nil)
)

// New returns a store that sends its calls through client, which it never closes. It does not connect and never fails;
// what is wrong with the options is returned by [Store.Err] and by every call.
func New(client Client, options ...Option) *Store {
	s := &Store{client: client, prefix: DefaultPrefix, timeout: DefaultTimeout, queue: queue{pack: packClaims}}
	for _, option := range options {
		option(s)
	}
	s.err = checkPrefix(s.prefix)
	s.late = func(string) {}
	if c, ok := client.(LateClient); ok {
		s.late = c.Late
	}
	if client == nil {
		s.err = errors.Join(s.err, errors.New("redisscript: the client is nil"))
	}
	if s.timeout < 0 {
		s.err = errors.Join(s.err, fmt.Errorf("redisscript: timeout %v is negative", s.timeout))
	}
	s.queue.store = s
	s.queue.most = 64 * runtime.GOMAXPROCS(0)
	if s.cluster {
		s.queue.most = max(s.queue.most/lanes, laneSenders)
		s.lanes = []*queue{&s.queue}
		for len(s.lanes) < lanes {
			s.lanes = append(s.lanes, &queue{store: s, most: s.queue.most, pack: s.queue.pack})
		}
	}
	return s
}

// Err says what is wrong with the options; nil if nothing is.
func (s *Store) Err() error { return s.err }

// KeyName returns the key under which the state of subject is kept; "" for a rule that has none.
func (s *Store) KeyName(policy, subject string, rule driver.Rule) string {
	kind := kindOf(rule)
	if kind == "" {
		return ""
	}
	return string(appendKey(nil, s.prefix, policy, subject, kind))
}

// Decide implements [driver.Store]. Entries share a call with whatever else is waiting; those of one batch stay together
// as far as 64 claims go. After an error some calls of a larger batch may have been decided.
//
// The context's values reach the client, its cancellation does not: a decision that was asked for is made, and counted,
// also if the caller leaves before the answer. Beyond the errors that [Classify] makes of the client's there are
// [driver.ClassOverflow], if the deadline passed before a sender was free, and [driver.ClassTimeout], if it passed later.
//
// After an error of another class than overflow and closed a slot may be held: whoever asked for it releases it. The store does so
// as well, once the call is back, if the caller had left by then.
func (s *Store) Decide(ctx context.Context, now time.Time, batch []driver.Entry) error {
	micros, err := s.check(now)
	if err != nil {
		return err
	}
	if len(batch) == 0 {
		return s.queue.open()
	}
	at := clock(micros)
	for len(batch) > 0 {
		j := s.queue.newJob(micros)
		j.request.at = at
		n := 0
		for ; n < len(batch); n++ {
			e, before := &batch[n], len(j.request.claims)
			e.Err = j.request.add(s.prefix, e)
			if len(j.request.claims) > packClaims {
				j.request.claims = j.request.claims[:before] // for the next call
				break
			}
		}
		if err := s.answer(ctx, j, batch[:n]); err != nil {
			return err
		}
		s.queue.recycle(j)
		batch = batch[n:]
	}
	return nil
}

// answer has a request answered, and writes the results of its entries.
func (s *Store) answer(ctx context.Context, j *job, entries []driver.Entry) error {
	if err := s.have(ctx, j, entries); err != nil {
		return err
	}
	for i, from := 0, 0; i < len(entries); i++ {
		e := &entries[i]
		if e.Err != nil {
			continue
		}
		claims := j.request.claims[from : from+len(e.Claims)]
		from += len(claims)
		if admitted := answer(claims, e); !admitted && s.cluster {
			s.giveBack(ctx, claims, e, j.now)
		}
	}
	return nil
}

// have has the claims of a job answered. When it fails the job belongs to a sender or to nobody.
func (s *Store) have(ctx context.Context, j *job, entries []driver.Entry) error {
	if !s.cluster || len(j.request.claims) == 0 {
		return s.ask(ctx, j)
	}
	return s.askApart(ctx, j, entries)
}

// Close waits until calls under way came back and decisions that wait were made, and ends the senders.
func (s *Store) Close() error {
	s.giving.Wait()
	for _, q := range s.lanes {
		q.close()
	}
	s.queue.close()
	return nil
}

// check returns now in microseconds, 0 for the server's clock.
func (s *Store) check(now time.Time) (int64, error) {
	if s.err != nil {
		return 0, &driver.Error{Class: driver.ClassOther, Err: s.err}
	}
	if now.IsZero() {
		return 0, nil
	}
	micros := now.UnixMicro()
	if micros <= 0 || micros > driver.MaxMicros {
		return 0, &driver.Error{Class: driver.ClassOther, Err: fmt.Errorf("redisscript: time %v is out of range", now)}
	}
	return micros, nil
}

// clock is our own time in microseconds, or the given one.
func clock(micros int64) int64 {
	if micros == 0 {
		return time.Now().UnixMicro()
	}
	return micros
}

// ask has a job done. When it fails the job belongs to a sender or to nobody. A job that asks nothing is done.
func (s *Store) ask(ctx context.Context, j *job) error {
	if len(j.request.claims) == 0 && !j.plain() {
		return s.queue.open()
	}
	if err := s.start(ctx, j); err != nil {
		return err
	}
	return s.lane(j).wait(ctx, j)
}

// start puts a job into the queue.
func (s *Store) start(ctx context.Context, j *job) error {
	j.ctx, j.asked = ctx, now()
	if deadline, ok := ctx.Deadline(); ok {
		j.deadline = momentOf(deadline)
	} else {
		j.deadline = j.asked + moment(s.timeout)
	}
	return s.lane(j).submit(j)
}
