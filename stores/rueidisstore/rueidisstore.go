// Package rueidisstore keeps limits in Redis through rueidis: limits that every process shares, one round trip a request.
//
//	gate.Config{Store: rueidisstore.New(client), ...}
//
// Any options of the client will do; AlwaysPipelining and DisableCache fit a limiter best,
// and with many callers a single connection (PipelineMultiplex -1) that waits 20 us for company (MaxFlushDelay). rueidis.NewClient itself dials,
// so a service that must start while Redis is down retries that call, or uses goredisstore.
package rueidisstore

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/stores/redisscript"
)

// Store is a driver.Store on Redis. It never closes the client it was given.
type Store struct {
	*redisscript.Store
	client rueidis.Client
}

// Option changes a store.
type Option = redisscript.Option

// WithPrefix sets what every key begins with, without braces. Default: "hg".
func WithPrefix(prefix string) Option { return redisscript.WithPrefix(prefix) }

// WithPackSize bounds how many claims of requests that wait at the same moment share a call: 1 to 64, the default. 1 sends
// a call for each decision, for a server on which others would mind the 0.15 ms that a full one takes.
func WithPackSize(claims int) Option { return redisscript.WithPackSize(claims) }

// New returns a store on the server of client, on the primary that its sentinels name, or on its cluster. What is wrong with the options is the error of every call.
func New(client rueidis.Client, options ...Option) *Store {
	var c redisscript.Client
	if client != nil {
		c = sender{client}
		if client.Mode() == rueidis.ClientModeCluster {
			options = append(options, redisscript.WithCluster())
		}
	}
	return &Store{Store: redisscript.New(c, options...), client: client}
}

// Advise implements driver.Advisor: it looks at the server's eviction policy. A rueidis client does not show its options.
func (s *Store) Advise(ctx context.Context) []driver.Advice {
	if s.client == nil {
		return nil
	}
	info, err := s.client.Do(ctx, s.client.B().Info().Section("memory").Build()).ToString()
	if err != nil {
		return nil // some services forbid INFO; that is no fault
	}
	return redisscript.Advise(info)
}

// sender sends the script, and plain commands. rueidis repeats only what reads, so a script is sent once.
type sender struct{ client rueidis.Client }

func (s sender) EvalSHA(ctx context.Context, sha string, keys, args []string) (string, error) {
	return reply(s.client.Do(ctx, s.client.B().Evalsha().Sha1(sha).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()))
}

func (s sender) Eval(ctx context.Context, script string, keys, args []string) (string, error) {
	return reply(s.client.Do(ctx, s.client.B().Eval().Script(script).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()))
}

// EvalSHAs implements redisscript.Client.
func (s sender) EvalSHAs(ctx context.Context, sha string, calls []redisscript.Call) {
	list := make(rueidis.Commands, len(calls))
	for i, c := range calls {
		list[i] = s.client.B().Evalsha().Sha1(sha).Numkeys(int64(len(c.Keys))).Key(c.Keys...).Arg(c.Args...).Build()
	}
	for i, r := range s.client.DoMulti(ctx, list...) {
		calls[i].Reply, calls[i].Err = reply(r)
	}
}

// Pipe implements redisscript.Client.
func (s sender) Pipe(ctx context.Context, commands [][]string) error {
	list := make(rueidis.Commands, len(commands))
	for i, c := range commands {
		list[i] = s.client.B().Arbitrary(c[0]).Keys(c[1]).Args(c[2:]...).Build()
	}
	for _, r := range s.client.DoMulti(ctx, list...) {
		if err := r.Error(); err != nil {
			return err
		}
	}
	return nil
}

func reply(r rueidis.RedisResult) (string, error) {
	if err := r.Error(); err != nil && !rueidis.IsRedisNil(err) { // nil is a reply of another type
		return "", err
	}
	text, err := r.ToString()
	if err != nil { // another type
		return "", &driver.Error{Class: driver.ClassProtocol, Err: err}
	}
	return text, nil
}
