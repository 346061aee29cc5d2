package redisbench

import (
	"fmt"
	"strconv"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/internal/bench/rounds"
	"github.com/headgate-go/headgate/stores/redisscript"
)

// Suite is the Redis part on one server.
type Suite struct {
	meter     meter
	keys      *keyset
	load      load
	decisions int // of a flood
	list      []rounds.Benchmark
}

// The floods, by their names in tables.
const (
	floodBucket = "headgate's script, one decision, pipeline of 16"
	floodFloor  = "GET + SET PX in a script, pipeline of 16"
	floodHash   = "hash bucket script, pipeline of 16"
	floodPacked = "headgate's script, 64 decisions a call, one call at a time"
	floodOne    = "headgate's script, one decision, one call at a time"
	floodBoth   = "headgate's script, one decision about rate and concurrency, pipeline of 16"
	floodBoth1  = "headgate's script, one decision about rate and concurrency, one call at a time"
	floodBusy   = "the same of a tenant with another request in flight, pipeline of 16"
	floodBusy1  = "the same of a tenant with another request in flight, one call at a time"
)

// runs says which contenders run with how many callers.
var runs = []struct {
	contender
	callers []int
}{
	{redisRate, []int{1, 16, 64, 256}},
	{hashGoRedis, []int{64, 256}},
	{floorGoRedis, []int{64}},
	{bareGoRedis, []int{1, 64}},
	{aloneGoRedis, []int{16, 64, 256}},
	{storeGoRedis, []int{1, 64, 256}},
	{gateGoRedis, []int{1, 64, 256}},
	{bareRueidis, []int{1, 64}},
	{aloneRueidis, []int{64}},
	{storeRueidis, []int{1, 64, 256}},
	{gateRueidis, []int{64, 256}},
}

// newSuite prepares everything that is measured on server: with so many keys, load for loads, and so many decisions a flood.
func newSuite(server *redistest.Server, keys int, l load, decisions int) (*Suite, error) {
	set, err := newKeyset(keys)
	if err != nil {
		return nil, err
	}
	s := &Suite{meter: meter{server}, keys: set, load: l, decisions: decisions}
	for _, r := range runs {
		for _, callers := range r.callers {
			s.list = append(s.list, rounds.Benchmark{Name: with(r.contender, callers), Long: callers == 1,
				Run: func() (rounds.Sample, error) { return s.run(r.contender, callers) }})
		}
	}
	for _, f := range s.floods() {
		s.list = append(s.list, rounds.Benchmark{Name: f.name,
			Run: func() (rounds.Sample, error) { return f.run(s.meter, s.decisions) }})
	}
	return s, nil
}

// with is the name of a benchmark.
func with(c contender, callers int) string {
	if callers == 1 {
		return c.name + ", 1 caller"
	}
	return fmt.Sprintf("%s, %d callers", c.name, callers)
}

func (s *Suite) run(c contender, callers int) (rounds.Sample, error) {
	if err := s.meter.reset(c.scripts...); err != nil {
		return nil, err
	}
	decide, end, err := c.open(s.meter.server.Addr(), s.keys, callers)
	if err != nil {
		return nil, err
	}
	defer end()
	return s.load.run(s.meter, decide, len(s.keys.names))
}

func (s *Suite) floods() []flood {
	k, n := s.keys, len(s.keys.names)
	floorSHA, hashSHA := shaOf(floorScript), shaOf(hashScript)
	one := func(i int) []string { return call{k.stored[i : i+1], k.single.args}.command(redisscript.SHA()) }
	rate, most := strconv.Itoa(perSecond), strconv.Itoa(burst)
	return []flood{
		{name: floodBucket, scripts: []string{redisscript.Script()}, depth: 16, worth: 1, count: n, command: one},
		{name: floodOne, scripts: []string{redisscript.Script()}, depth: 1, worth: 1, count: n, command: one, part: 4},
		{name: floodBoth, scripts: []string{redisscript.Script()}, depth: 16, worth: 1, count: n, command: k.acquire, undo: k.release},
		{name: floodBoth1, scripts: []string{redisscript.Script()}, depth: 1, worth: 1, count: n, command: k.acquire, undo: k.release, part: 4},
		{name: floodBusy, scripts: []string{redisscript.Script()}, depth: 16, worth: 1, count: n, command: k.acquire, before: k.busy, undo: k.release},
		{name: floodBusy1, scripts: []string{redisscript.Script()}, depth: 1, worth: 1, count: n, command: k.acquire, before: k.busy, undo: k.release, part: 4},
		{name: floodFloor, scripts: []string{floorScript}, depth: 16, worth: 1, count: n, command: func(i int) []string {
			return call{k.stored[i : i+1], []string{floorValue, floorLife}}.command(floorSHA)
		}},
		{name: floodHash, scripts: []string{hashScript}, depth: 16, worth: 1, count: n, command: func(i int) []string {
			return call{k.stored[i : i+1], []string{rate, most, seconds(), "1"}}.command(hashSHA)
		}},
		{name: floodPacked, scripts: []string{redisscript.Script()}, depth: 1, worth: packed, count: len(k.packs), command: func(i int) []string {
			return k.packs[i].command(redisscript.SHA())
		}},
	}
}
