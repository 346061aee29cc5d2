package redisscript

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/headgate-go/headgate/conformance/redistest"
)

// The slots of the script against the rules in its comments: records are written out here, past the codec and the model of
// package driver. What the store makes of them is in slotpack_test.go.

// slotModel is one sorted set: expiry by id.
type slotModel map[string]int64

// see returns the number of members that an acquire sees which was preceded by pending ones in the same call.
func (m slotModel) see(limit, now int64, pending int) int64 {
	if int64(len(m)+pending) >= limit {
		for id, expiry := range m {
			if expiry <= now {
				delete(m, id)
			}
		}
	}
	return int64(len(m) + pending)
}

func slotRecord(op, flags uint8, key int, limit, lease int64, id string) string {
	return rec(op, flags, key, 1, float64(limit), float64(lease)) + id
}

// slotScenario is two sets, and the leases taken on them.
type slotScenario struct {
	h    *harness
	rng  *rand.Rand
	keys []string
	sets [2]slotModel
	ids  []string
	now  int64
}

func (s *slotScenario) id() string {
	id := string(le.AppendUint64(le.AppendUint64(nil, s.rng.Uint64()), s.rng.Uint64()))
	s.ids = append(s.ids, id)
	return id
}

// acquire is a request of several claims, all or nothing; it returns its records and what they see.
func (s *slotScenario) acquire(lease int64) (records string, saw []float64) {
	var added [2][]string
	refused := false
	claims := 1 + s.rng.IntN(3)
	for i := range claims {
		key, limit, id := s.rng.IntN(2), int64(1+s.rng.IntN(4)), s.id()
		flags := uint8(0)
		if i == claims-1 {
			flags = flagLast
		}
		records += slotRecord(opSlots, flags, key+1, limit, lease, id)
		m := s.sets[key].see(limit, s.now, len(added[key]))
		saw = append(saw, float64(m))
		if m >= limit {
			refused = true
		} else if !refused {
			added[key] = append(added[key], id)
		}
	}
	for key := range s.sets {
		for _, id := range added[key] {
			if !refused {
				s.sets[key][id] = s.now + lease
			}
		}
	}
	return records, saw
}

// renew is a renewal, and sometimes in the same call an acquire that may sweep what was renewed.
func (s *slotScenario) renew(lease int64) (records string, saw []float64) {
	id, key := s.ids[s.rng.IntN(len(s.ids))], s.rng.IntN(2)
	set := s.sets[key]
	_, held := set[id]
	records = slotRecord(opRenew, flagLast, key+1, 0, lease, id)
	saw = append(saw, map[bool]float64{true: 1}[held])
	if s.rng.IntN(2) == 0 {
		limit, other := int64(len(set)), s.id()
		records += slotRecord(opSlots, flagLast, key+1, limit, lease, other)
		m := set.see(limit, s.now, 0)
		saw = append(saw, float64(m))
		if m < limit {
			set[other] = s.now + lease
		}
	}
	if _, held := set[id]; held {
		set[id] = s.now + lease
	}
	return records, saw
}

func (s *slotScenario) step() error {
	s.now += s.rng.Int64N(15_000_000)
	lease := []int64{30_000_000, 60_000_000, 5_000_000}[s.rng.IntN(3)]
	ask := s.acquire
	if len(s.ids) > 0 && s.rng.IntN(4) == 0 {
		ask = s.renew
	}
	records, saw := ask(lease)
	arg := head(0, records)
	replies, err := s.h.conn.Pipe(
		evalCommand("EVALSHA", s.h.sha, s.keys, []string{arg, strconv.FormatInt(s.now, 10)}),
		[]string{"ZRANGE", s.keys[0], "0", "-1", "WITHSCORES"}, []string{"ZRANGE", s.keys[1], "0", "-1", "WITHSCORES"})
	if err != nil {
		return err
	}
	if answer, ok := replies[0].(redistest.Error); ok {
		return answer
	}
	if reply, want := replies[0].(string), doubles(saw...); reply != want {
		return fmt.Errorf("at %d:\n%swant\n%s", s.now, FormatCall(arg, reply), FormatCall(arg, want))
	}
	for i, set := range s.sets {
		got := replies[1+i].([]any)
		if len(got) != 2*len(set) {
			return fmt.Errorf("at %d: %d members, want %d:\n%s", s.now, len(got)/2, len(set), FormatCall(arg, replies[0].(string)))
		}
		for j := 0; j < len(got); j += 2 {
			if want := strconv.FormatInt(set[got[j].(string)], 10); got[j+1] != want {
				return fmt.Errorf("at %d: member %x has score %v, want %s", s.now, got[j], got[j+1], want)
			}
		}
	}
	return nil
}

// slotLives checks how long a set lives by the server's clock: from one to two leases, and never less than before.
func slotLives(h *harness) error {
	key := []string{h.fresh()}
	for i, step := range []struct {
		op        uint8
		lease     int64 // seconds
		low, high int64
	}{
		{opSlots, 60, 110, 120},
		{opSlots, 5, 100, 120},
		{opSlots, 100, 90, 120}, // enough is left
		{opSlots, 300, 590, 600},
		{opRenew, 10, 580, 600},
		{opRenew, 1000, 1990, 2000},
	} {
		id := fmt.Sprintf("id-%013d", i)
		if step.op == opRenew {
			id = fmt.Sprintf("id-%013d", 0)
		}
		reply, _, lives, _, err := h.call(0, key, head(0, slotRecord(step.op, flagLast, 1, 10, step.lease*1e6, id)))
		if err != nil {
			return err
		}
		want := doubles(float64(i))
		if step.op == opRenew {
			want = doubles(1)
		}
		if reply != want || lives[0] < step.low*1000 || lives[0] > step.high*1000+2 {
			return fmt.Errorf("step %d: reply %q, life %d ms", i, reply, lives[0])
		}
	}
	// A set that somebody made immortal gets a life with the next lease.
	if _, err := h.conn.Do("PERSIST", key[0]); err != nil {
		return err
	}
	_, _, lives, _, err := h.call(0, key, head(0, slotRecord(opSlots, flagLast, 1, 10, 60e6, "0123456789abcdef")))
	if err == nil && lives[0] <= 0 {
		err = errors.New("the key is immortal")
	}
	return err
}

func slots(h *harness) error {
	for seed := range uint64(200) {
		s := &slotScenario{h: h, rng: rand.New(rand.NewPCG(seed, 11)), keys: []string{h.fresh(), h.fresh()},
			sets: [2]slotModel{{}, {}}, now: 1_700_000_000_000_000}
		for range 30 {
			if err := s.step(); err != nil {
				return fmt.Errorf("seed %d: %w", seed, err)
			}
		}
	}
	return slotLives(h)
}

func TestSlotsAgainstModel(t *testing.T) {
	t.Parallel()
	if err := slots(newHarness(t, redistest.Start(t, redistest.Single), script)); err != nil {
		t.Error(err)
	}
}
