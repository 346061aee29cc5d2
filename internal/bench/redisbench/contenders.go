package redisbench

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/headgate-go/headgate/stores/redisscript"
)

// contender is a way to decide through Redis.
type contender struct {
	name    string
	scripts []string // to be loaded
	open    opener
}

// opener connects. It returns a function for each caller, which decides about the key of a number, and one that ends it.
type opener func(addr string, keys *keyset, callers int) (decide []func(key int) error, end func(), err error)

// errRefused ends a benchmark: no decision is meant to be refused, and a refusal is cheaper than an admission.
var errRefused = errors.New("redisbench: a decision was refused")

// The contenders. Clients have the options that they are documented with: go-redis its defaults, rueidis those that fit a
// limiter with many callers, which are in the documentation of rueidisstore. There is no rueidis limiter among them: its module could not be fetched.
var (
	redisRate = contender{"redis_rate, go-redis", nil, onGoRedis(func(client *redis.Client, keys *keyset) func(int) error {
		limiter := redis_rate.NewLimiter(client)
		limit := redis_rate.Limit{Rate: perSecond, Burst: burst, Period: time.Second}
		return func(key int) error {
			res, err := limiter.Allow(context.Background(), keys.names[key], limit)
			if err == nil && res.Allowed != 1 {
				return errRefused
			}
			return err
		}
	})}
	bareGoRedis = contender{"bare EVALSHA of headgate's script, go-redis", []string{redisscript.Script()},
		onGoRedis(func(client *redis.Client, keys *keyset) func(int) error {
			sha, arg := redisscript.SHA(), any(keys.single.args[0])
			return func(key int) error {
				return client.EvalSha(context.Background(), sha, keys.stored[key:key+1], arg).Err()
			}
		})}
	floorGoRedis = contender{"GET + SET PX in a script, go-redis", []string{floorScript},
		onGoRedis(func(client *redis.Client, keys *keyset) func(int) error {
			sha, value, life := shaOf(floorScript), any(floorValue), any(floorLife)
			return func(key int) error {
				return client.EvalSha(context.Background(), sha, keys.names[key:key+1], value, life).Err()
			}
		})}
	hashGoRedis = contender{"hash bucket script, go-redis", []string{hashScript},
		onGoRedis(func(client *redis.Client, keys *keyset) func(int) error {
			sha := shaOf(hashScript)
			return func(key int) error {
				list, err := client.EvalSha(context.Background(), sha, keys.names[key:key+1], perSecond, burst, seconds(), 1).Int64Slice()
				if err == nil && list[0] != 1 {
					return errRefused
				}
				return err
			}
		})}
	bareRueidis = contender{"bare EVALSHA of headgate's script, rueidis", []string{redisscript.Script()}, openBareRueidis}

	aloneGoRedis = headgate("headgate, one call per decision, go-redis", viaGoRedis, alone)
	storeGoRedis = headgate("headgate, go-redis", viaGoRedis, together)
	gateGoRedis  = headgate("headgate through gate.Admit, go-redis", viaGoRedis, throughGate)
	aloneRueidis = headgate("headgate, one call per decision, rueidis", viaRueidis, alone)
	storeRueidis = headgate("headgate, rueidis", viaRueidis, together)
	gateRueidis  = headgate("headgate through gate.Admit, rueidis", viaRueidis, throughGate)
)

// floorValue and floorLife are what the floor's script writes: as many bytes as a bucket has, for a minute.
const (
	floorValue = "0123456789abcdef01234567"
	floorLife  = "60000"
)

// onGoRedis opens something that all callers share.
func onGoRedis(limiter func(client *redis.Client, keys *keyset) func(key int) error) opener {
	return func(addr string, keys *keyset, callers int) ([]func(int) error, func(), error) {
		client := redis.NewClient(&redis.Options{Addr: addr})
		return slices.Repeat([]func(int) error{limiter(client, keys)}, callers), func() { _ = client.Close() }, nil
	}
}

func newRueidis(addr string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true, AlwaysPipelining: true,
		PipelineMultiplex: -1, MaxFlushDelay: 20 * time.Microsecond})
}

func openBareRueidis(addr string, keys *keyset, callers int) ([]func(int) error, func(), error) {
	client, err := newRueidis(addr)
	if err != nil {
		return nil, nil, err
	}
	sha, arg := redisscript.SHA(), keys.single.args[0]
	decide := func(key int) error {
		_, err := client.Do(context.Background(), client.B().Evalsha().Sha1(sha).Numkeys(1).Key(keys.stored[key]).Arg(arg).Build()).ToString()
		return err
	}
	return slices.Repeat([]func(int) error{decide}, callers), client.Close, nil
}

// seconds is the caller's clock as a script reads it.
func seconds() string {
	return strconv.FormatFloat(float64(time.Now().UnixMicro())/1e6, 'f', 6, 64)
}
