package redisscript

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
)

// Packs of requests that claim slots, by the codec and the script, against the model of package driver.

// slotPack is a scenario: two subjects with slots, the second of them in shadow, and two with a bucket.
type slotPack struct {
	h        *harness
	rng      *rand.Rand
	subjects []string
	sets     [2]driver.Slots
	buckets  model
	ids      []driver.ID
	now      int64
}

var slotPackRate = bucket(1, time.Minute, 6)

func (s *slotPack) id() driver.ID {
	var id driver.ID
	le.PutUint64(id[:], s.rng.Uint64())
	le.PutUint64(id[8:], s.rng.Uint64())
	s.ids = append(s.ids, id)
	return id
}

func (s *slotPack) lease() time.Duration {
	return []time.Duration{5 * time.Second, 30 * time.Second, time.Minute, 3 * time.Hour}[s.rng.IntN(4)]
}

func (s *slotPack) claim() driver.Claim { return s.claimOn(s.rng.IntN(4)) }

func (s *slotPack) claimOn(i int) driver.Claim {
	c := driver.Claim{Policy: "p", Subject: s.subjects[i], Rule: slotPackRate, Cost: s.rng.IntN(3), Shadow: i%2 == 1}
	if i < 2 {
		c.Rule, c.Cost, c.Lease, c.LeaseFor = driver.NewSlots(1+s.rng.IntN(5)), 1, s.id(), s.lease()
		if s.rng.IntN(4) == 0 {
			c.Cost = 0
		}
	}
	return c
}

// held is what a claim on slots finds, where pending is what its entry would take.
func (s *slotPack) held(i int, pending driver.Slots, c *driver.Claim) int {
	all := maps.Clone(s.sets[i])
	maps.Copy(all, pending)
	if c.Cost == 0 {
		return all.Live(s.now)
	}
	n := all.Held(c.Rule.Capacity(), s.now)
	maps.DeleteFunc(s.sets[i], func(id driver.ID, _ int64) bool { _, stays := all[id]; return !stays })
	return n
}

// decide answers an entry by the model.
func (s *slotPack) decide(e *driver.Entry) {
	pending, before := [2]driver.Slots{{}, {}}, maps.Clone(s.buckets)
	results := make([]func(admitted bool) driver.Result, len(e.Claims))
	admitted := true
	for i := range e.Claims {
		c := &e.Claims[i]
		var fits bool
		if set := map[string]int{s.subjects[0]: 0, s.subjects[1]: 1}; c.Rule.Kind() == driver.KindSlots {
			k := set[c.Subject]
			held := s.held(k, pending[k], c)
			fits = c.Cost == 0 || held < c.Rule.Capacity()
			if fits && admitted && c.Cost > 0 {
				pending[k].Take(c.Lease, s.now+c.LeaseFor.Microseconds())
			}
			results[i] = func(admitted bool) driver.Result {
				return driver.SlotResult(c.Rule, c.Cost, held, admitted && fits && c.Cost > 0)
			}
		} else {
			level := s.buckets[c.Subject].Read(c.Rule, s.now)
			fits = c.Cost == 0 || level.Fits(c.Cost)
			if fits && admitted && c.Cost > 0 {
				s.buckets[c.Subject] = level.Take(c.Rule, c.Cost)
			}
			results[i] = func(admitted bool) driver.Result {
				return level.Result(c.Rule, c.Cost, admitted && fits && c.Cost > 0)
			}
		}
		admitted = admitted && (fits || c.Shadow)
	}
	for i, result := range results {
		e.Claims[i].Result = result(admitted)
	}
	if !admitted {
		s.buckets = before
		return
	}
	for i := range s.sets {
		maps.Copy(s.sets[i], pending[i])
	}
}

// renewals are changes for leases of which some are over, some gone, and some were never taken.
func (s *slotPack) renewals() (list []driver.Change) {
	for i := range s.rng.IntN(3) {
		if recent := s.ids[max(0, len(s.ids)-20):]; len(recent) > 1 { // a different one each
			half := recent[i*len(recent)/2 : (i+1)*len(recent)/2]
			list = append(list, driver.Change{Kind: driver.Renew, Policy: "p", Subject: s.subjects[s.rng.IntN(2)], Rule: driver.NewSlots(1),
				Lease: half[s.rng.IntN(len(half))], LeaseFor: s.lease()})
		}
	}
	return list
}

// tick moves the clock, now and then to the very moment at which a lease is over.
func (s *slotPack) tick() {
	now := s.now
	s.now += s.rng.Int64N(15_000_000)
	if s.rng.IntN(3) == 0 {
		for _, until := range s.sets[0] {
			if until > now {
				s.now = min(s.now, until)
			}
		}
	}
}

// step makes one call: changes and a few entries, or, every third time, what most calls are: a request for rate and a slot.
func (s *slotPack) step() error {
	s.tick()
	var renewals []driver.Change
	batch := make([]driver.Entry, 1)
	if s.rng.IntN(3) == 0 {
		batch[0].Claims = []driver.Claim{s.claimOn(2), s.claimOn(0)}
		if s.rng.IntN(2) == 0 {
			slices.Reverse(batch[0].Claims)
		}
	} else {
		renewals, batch = s.renewals(), make([]driver.Entry, 1+s.rng.IntN(6))
		for i := range batch {
			for range 1 + s.rng.IntN(4) {
				batch[i].Claims = append(batch[i].Claims, s.claim())
			}
		}
	}
	var changes request
	for i := range renewals {
		if err := changes.addChange("hg", &renewals[i]); err != nil {
			return err
		}
	}
	want := make([]driver.Entry, len(batch))
	requests := []*request{&changes}
	for i := range batch {
		want[i].Claims = append([]driver.Claim(nil), batch[i].Claims...)
		r := &request{}
		if err := r.add("hg", &batch[i]); err != nil {
			return err
		}
		requests = append(requests, r)
		s.decide(&want[i])
	}
	var p pack
	arg := p.encode(requests)
	reply, _, lives, _, err := s.h.call(s.now, p.keys, arg)
	if err == nil {
		err = p.decode(reply)
	}
	if err != nil {
		return err
	}
	for i := range batch {
		requests[1+i].answer(&batch[i], 0)
	}
	if !reflect.DeepEqual(batch, want) {
		return fmt.Errorf("at %d\n got %+v\nwant %+v\n%s", s.now, batch, want, FormatCall(arg, reply))
	}
	return s.checkSets(renewals, &changes, p.keys, lives)
}

// checkSets compares what is stored, and what renewals were told.
func (s *slotPack) checkSets(renewals []driver.Change, changes *request, keys []string, lives []int64) error {
	changes.lost(renewals)
	for _, c := range renewals {
		set := s.sets[0]
		if c.Subject == s.subjects[1] {
			set = s.sets[1]
		}
		if lost := !set.Renew(c.Lease, s.now+c.LeaseFor.Microseconds()); c.Lost != lost {
			return fmt.Errorf("at %d: renewed %x: lost %v, want %v", s.now, c.Lease, c.Lost, lost)
		}
	}
	for i, set := range s.sets {
		key := string(appendKey(nil, "hg", "p", s.subjects[i], kindSlots))
		reply, err := s.h.conn.Do("ZRANGE", key, "0", "-1", "WITHSCORES")
		if err != nil {
			return err
		}
		members, last := reply.([]any), int64(0)
		if len(members) != 2*len(set) {
			return fmt.Errorf("at %d: %d members, want %d", s.now, len(members)/2, len(set))
		}
		for j := 0; j < len(members); j += 2 {
			until := set[driver.ID([]byte(members[j].(string)))]
			if last = max(last, until); members[j+1] != strconv.FormatInt(until, 10) {
				return fmt.Errorf("at %d: member %x has score %v, want %d", s.now, members[j], members[j+1], until)
			}
		}
		// The set outlives its leases.
		for k := range keys {
			if life := lives[k] - hour + 1000; keys[k] == key && len(set) > 0 && life < (last-s.now)/1000 {
				return fmt.Errorf("at %d: the set lives %d ms; its longest lease %d ms", s.now, life, (last-s.now)/1000)
			}
		}
	}
	return nil
}

func slotPacks(h *harness) error {
	for seed := range uint64(150) {
		s := &slotPack{h: h, rng: rand.New(rand.NewPCG(seed, 5)), sets: [2]driver.Slots{{}, {}}, buckets: model{}, now: 1_700_000_000_000_000}
		for range 4 {
			s.subjects = append(s.subjects, h.fresh())
		}
		for i := range 30 {
			if err := s.step(); err != nil {
				return fmt.Errorf("seed %d, step %d: %w", seed, i, err)
			}
		}
	}
	return nil
}

func TestSlotPacksAgainstModel(t *testing.T) {
	t.Parallel()
	if err := slotPacks(newHarness(t, redistest.Start(t, redistest.Single), script)); err != nil {
		t.Error(err)
	}
}
