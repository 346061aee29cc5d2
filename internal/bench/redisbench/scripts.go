package redisbench

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/stores/redisscript"
)

// floorScript reads and writes a value of a bucket's size with an expiry: nothing that keeps state can do less.
const floorScript = `redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`

// hashScript is a token bucket as most projects write it: a hash with two fields, floating point, the caller's clock.
const hashScript = `local rate, burst, now, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local bucket = redis.call('HMGET', KEYS[1], 'level', 'updated')
local level, updated = tonumber(bucket[1]), tonumber(bucket[2])
if level == nil or updated == nil then
  level, updated = burst, now
end
level = math.min(burst, level + math.max(0, now - updated) * rate)
local ok = level >= cost
if ok then
  level = level - cost
end
redis.call('HSET', KEYS[1], 'level', tostring(level), 'updated', tostring(now))
redis.call('EXPIRE', KEYS[1], math.ceil(burst / rate) * 2)
return {ok and 1 or 0, math.floor(level)}`

// shaOf is the name under which a server caches a script.
func shaOf(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}

// The limit of every decision: more than anybody asks for, so that all are admitted and written, and refilled slowly, so
// that no key comes to its end during a run.
const (
	perSecond = 10
	burst     = 1_000_000
	policy    = "tenant"
)

var rule = driver.NewBucket(perSecond, time.Second).WithBurst(burst)

// keyset is what decisions are about, in every form that is needed.
type keyset struct {
	names    []string       // for peers
	subjects []string       // for a store
	stored   []string       // under which headgate's store keeps them
	requests []gate.Request // for a gate
	packs    []call         // headgate's calls that decide about all keys, 64 each
	single   call           // headgate's call for the first key alone
	slots    []string       // under which the store keeps the slots of a key
	both     call           // its call for the rate and a slot of the first key
	zrem     []string       // its command that gives this slot back
}

// call is one EVALSHA of headgate's script.
type call struct{ keys, args []string }

// packed is how many decisions a full call makes.
const packed = 64

func newKeyset(n int) (*keyset, error) {
	k := &keyset{}
	var rec recorder
	store := redisscript.New(&rec)
	defer store.Close()
	for i := range n {
		k.add(store, i)
	}
	var err error
	if k.single, err = rec.record(store, k.subjects[:1]); err != nil {
		return nil, err
	}
	if err := rec.recordSlots(store, k); err != nil {
		return nil, err
	}
	for from := 0; from+packed <= n; from += packed {
		c, err := rec.record(store, k.subjects[from:from+packed])
		if err != nil {
			return nil, err
		}
		k.packs = append(k.packs, c)
	}
	return k, nil
}

func (k *keyset) add(store *redisscript.Store, i int) {
	name := "tenant-" + strconv.Itoa(10_000_000+i)
	subject := driver.AppendSubject(driver.AppendSubject(driver.AppendSubject(nil, ""), "tenant"), name)
	k.names = append(k.names, name)
	k.subjects = append(k.subjects, string(subject))
	k.stored = append(k.stored, store.KeyName(policy, string(subject), rule))
	k.requests = append(k.requests, gate.Call{Operation: "POST /v1/routes", Values: map[string]any{"tenant": name}})
}

// recorder is a client that sends nothing and keeps what it was asked to send: so the bytes that are measured without a
// store are the store's own.
type recorder struct {
	last  call
	plain [][]string
}

var errRecorded = errors.New("recorded")

// EvalSHA implements redisscript.Client.
func (r *recorder) EvalSHAs(ctx context.Context, sha string, calls []redisscript.Call) {
	for i, one := range calls {
		calls[i].Reply, calls[i].Err = r.EvalSHA(ctx, sha, one.Keys, one.Args)
	}
}

func (r *recorder) EvalSHA(_ context.Context, _ string, keys, args []string) (string, error) {
	r.last = call{slices.Clone(keys), slices.Clone(args)}
	return "", errRecorded
}

// Eval implements redisscript.Client.
func (r *recorder) Eval(ctx context.Context, _ string, keys, args []string) (string, error) {
	return r.EvalSHA(ctx, "", keys, args)
}

// Pipe implements redisscript.Client.
func (r *recorder) Pipe(_ context.Context, commands [][]string) error {
	r.plain = commands
	return errRecorded
}

// slotLimit is the concurrency limit of every key: more slots than anybody takes.
var slotLimit = driver.NewSlots(100)

// recordSlots records what the store sends for a request that claims a slot beside its rate, and for the slot's release.
func (r *recorder) recordSlots(store *redisscript.Store, k *keyset) error {
	for _, subject := range k.subjects {
		k.slots = append(k.slots, store.KeyName(policy, subject, slotLimit))
	}
	subject, id, life := k.subjects[0], driver.ID{1: 0xff, 15: 1}, time.Minute
	err := store.Decide(context.Background(), time.Time{}, []driver.Entry{{Claims: []driver.Claim{
		{Policy: policy, Subject: subject, Rule: rule, Cost: 1},
		{Policy: policy, Subject: subject, Rule: slotLimit, Cost: 1, Lease: id, LeaseFor: life},
	}}})
	if !errors.Is(err, errRecorded) {
		return fmt.Errorf("redisbench: recording a call: %w", err)
	}
	err = store.Apply(context.Background(), time.Time{}, []driver.Change{
		{Kind: driver.Release, Policy: policy, Subject: subject, Rule: slotLimit, Lease: id},
	})
	if !errors.Is(err, errRecorded) {
		return fmt.Errorf("redisbench: recording a release: %w", err)
	}
	k.both = r.last
	if len(k.both.keys) != 2 || len(r.plain) != 1 || len(r.plain[0]) != 3 {
		return fmt.Errorf("redisbench: a call of %q, a release of %q", k.both.keys, r.plain)
	}
	k.zrem = r.plain[0]
	return nil
}

// acquire is the call that asks for the rate and a slot of key i, release the command that gives the slot back.
func (k *keyset) acquire(i int) []string {
	return call{[]string{k.stored[i], k.slots[i]}, k.both.args}.command(redisscript.SHA())
}

// busy takes a slot of key i for another request, which goes on for longer than a benchmark.
func (k *keyset) busy(i int) []string {
	return []string{"ZADD", k.slots[i], strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro(), 10), "another request"}
}

func (k *keyset) release(i int) []string { return []string{k.zrem[0], k.slots[i], k.zrem[2]} }

// record returns the one call that decides about subjects.
func (r *recorder) record(store *redisscript.Store, subjects []string) (call, error) {
	batch := make([]driver.Entry, len(subjects))
	for i, s := range subjects {
		batch[i].Claims = []driver.Claim{{Policy: policy, Subject: s, Rule: rule, Cost: 1}}
	}
	if err := store.Decide(context.Background(), time.Time{}, batch); !errors.Is(err, errRecorded) {
		return call{}, fmt.Errorf("redisbench: recording a call: %w", err)
	}
	if len(r.last.keys) != len(subjects) {
		return call{}, fmt.Errorf("redisbench: a call of %d keys for %d subjects", len(r.last.keys), len(subjects))
	}
	return r.last, nil
}

// command returns the call as it is sent.
func (c call) command(sha string) []string {
	return slices.Concat([]string{"EVALSHA", sha, strconv.Itoa(len(c.keys))}, c.keys, c.args)
}
