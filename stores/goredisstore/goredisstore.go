// Package goredisstore keeps limits in Redis through go-redis: limits that every process shares, one round trip a request.
//
//	gate.Config{Store: goredisstore.New(rdb), ...}
//
// Any options of the client will do. Decisions keep their own deadline whatever the client's timeouts are, and a decision
// that timed out is never sent again, since it may have been executed.
package goredisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/stores/redisscript"
)

// Store is a driver.Store on Redis. It never closes the client it was given.
type Store struct {
	*redisscript.Store
	client redis.UniversalClient
}

// Option changes a store.
type Option = redisscript.Option

// WithPrefix sets what every key begins with, without braces. Default: "hg".
func WithPrefix(prefix string) Option { return redisscript.WithPrefix(prefix) }

// WithPackSize bounds how many claims of requests that wait at the same moment share a call: 1 to 64, the default. 1 sends
// a call for each decision, for a server on which others would mind the 0.15 ms that a full one takes.
func WithPackSize(claims int) Option { return redisscript.WithPackSize(claims) }

// New returns a store on the server of client, on the primary that its sentinels name, or on its cluster. It does not dial: a
// service starts while Redis is down. What is wrong with the options is the error of every call.
func New(client redis.UniversalClient, options ...Option) *Store {
	var c redisscript.Client
	switch client := client.(type) {
	case nil:
	case *redis.ClusterClient:
		c, options = sender{client, &suspects{client: client}}, append(options, redisscript.WithCluster())
	default:
		c = sender{client: client}
	}
	return &Store{Store: redisscript.New(c, options...), client: client}
}

// Advise implements driver.Advisor: it looks at the client's options and at the server's eviction policy.
func (s *Store) Advise(ctx context.Context) []driver.Advice {
	if s.client == nil {
		return nil
	}
	list := adviseOptions(s.client)
	info, err := s.client.Info(ctx, "memory").Result()
	if err != nil {
		return list // some services forbid INFO; that is no fault
	}
	return append(list, redisscript.Advise(info)...)
}

func adviseOptions(client redis.UniversalClient) (list []driver.Advice) {
	deadline, replicas := true, false
	switch c := client.(type) {
	case *redis.Client:
		deadline = c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		o := c.Options()
		deadline, replicas = o.ContextTimeoutEnabled, o.ReadOnly || o.RouteByLatency || o.RouteRandomly
	}
	if !deadline {
		list = append(list, driver.Advice{Code: "goredis-context-timeout", Text: "the go-redis client ignores deadlines: a call to a " +
			"silent server holds a connection until ReadTimeout; set ContextTimeoutEnabled in its options"})
	}
	if replicas {
		list = append(list, driver.Advice{Code: "replica-reads", Text: "the go-redis client may send commands to replicas, which cannot " +
			"decide; give the limiter a client without ReadOnly, RouteByLatency and RouteRandomly"})
	}
	return list
}

// sender sends the script, and plain commands.
type sender struct {
	client   redis.UniversalClient
	suspects *suspects // of a cluster
}

// Late implements redisscript.LateClient: the client itself waits for its ReadTimeout, 5 s by default.
func (s sender) Late(key string) { s.suspects.late(key) }

func (s sender) EvalSHA(ctx context.Context, sha string, keys, args []string) (string, error) {
	return s.send(ctx, evalsha, boxed(sha), keys, args)
}

func (s sender) Eval(ctx context.Context, script string, keys, args []string) (string, error) {
	return s.send(ctx, eval, script, keys, args)
}

// What is the same in every call is put into an interface once, which is an allocation.
var evalsha, eval, ourSHA any = "evalsha", "eval", redisscript.SHA()

func boxed(sha string) any {
	if sha == ourSHA {
		return ourSHA
	}
	return sha
}

func (s sender) send(ctx context.Context, name, script any, keys, args []string) (string, error) {
	if s.suspects.has(ctx, keys[0]) {
		if cmd := command(ctx, name, script, keys, args); s.suspects.ask(ctx, keys[0], cmd) {
			return s.reply(keys[0], cmd)
		}
	}
	cmd := command(ctx, name, script, keys, args)
	_ = s.client.Process(ctx, cmd) // the error is the command's
	if cmd.Err() == nil {
		s.suspects.answered(ctx, keys[0])
	}
	return s.reply(keys[0], cmd)
}

// EvalSHAs implements redisscript.Client.
func (s sender) EvalSHAs(ctx context.Context, sha string, calls []redisscript.Call) {
	if s.suspects.any(ctx, calls) {
		var each sync.WaitGroup
		for i := range calls {
			each.Go(func() { calls[i].Reply, calls[i].Err = s.EvalSHA(ctx, sha, calls[i].Keys, calls[i].Args) })
		}
		each.Wait()
		return
	}
	pipe := s.client.Pipeline()
	commands := make([]once, len(calls))
	for i, c := range calls {
		commands[i] = command(ctx, evalsha, boxed(sha), c.Keys, c.Args)
		_ = pipe.Process(ctx, commands[i]) // only queues
	}
	_, _ = pipe.Exec(ctx) // its error is that of one of them
	for i := range calls {
		calls[i].Reply, calls[i].Err = s.reply(calls[i].Keys[0], commands[i])
	}
}

func command(ctx context.Context, name, script any, keys, args []string) once {
	list := make([]any, 3, 3+len(keys)+len(args))
	list[0], list[1], list[2] = name, script, len(keys)
	for _, k := range keys {
		list = append(list, k)
	}
	for _, a := range args {
		list = append(list, a)
	}
	return once{redis.NewCmd(ctx, list...)}
}

func (s sender) reply(key string, cmd once) (string, error) {
	if err := cmd.Err(); err != nil && !errors.Is(err, redis.Nil) { // nil is a reply of another type
		if outdated(err) {
			s.suspects.late(key)
		}
		return "", err
	}
	text, ok := cmd.Val().(string)
	if !ok {
		return "", &driver.Error{Class: driver.ClassProtocol, Err: fmt.Errorf("goredisstore: a reply of type %T; a string is expected", cmd.Val())}
	}
	return text, nil
}

// outdated says of a failure that it may come of asking a node that was a primary.
func outdated(err error) bool {
	var answered redis.Error
	if !errors.As(err, &answered) {
		return true
	}
	word, _, _ := strings.Cut(err.Error(), " ")
	switch word {
	case "READONLY", "CLUSTERDOWN", "LOADING", "MASTERDOWN":
		return true
	}
	return false
}

// Pipe implements redisscript.Client. Its commands might be sent again; but a server that does not answer is not to keep a
// sender for four times as long.
func (s sender) Pipe(ctx context.Context, commands [][]string) error {
	pipe := s.client.Pipeline()
	var failed error
	for _, command := range commands {
		list := make([]any, len(command))
		for i, part := range command {
			list[i] = part
		}
		cmd := once{redis.NewCmd(ctx, list...)}
		if key := command[1]; s.suspects.has(ctx, key) {
			if s.suspects.ask(ctx, key, cmd) {
				failed = cmp.Or(failed, cmd.Err())
				continue
			}
			cmd = once{redis.NewCmd(ctx, list...)} // without the replica's answer
		}
		_ = pipe.Process(ctx, cmd) // only queues
	}
	if pipe.Len() == 0 {
		return failed
	}
	_, err := pipe.Exec(ctx)
	return cmp.Or(err, failed)
}

// once is a command that is not sent again after a failure: go-redis repeats a script that timed out three times by
// default, and each of them may have been executed. It still follows a cluster's redirections.
type once struct{ *redis.Cmd }

// NoRetry tells go-redis.
func (once) NoRetry() bool { return true }
