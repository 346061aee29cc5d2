package memory_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/memory"
)

var manySlots = driver.NewSlots(1_000_000)

// holder is one goroutine that takes slots and gives them back.
type holder struct {
	store   *memory.Store
	batch   []driver.Entry
	slot    *driver.Claim // of the batch
	changes []driver.Change
	next    uint64
}

// newHolder makes a holder whose requests claim the slot of key, and before it what else is given.
func newHolder(s *memory.Store, process uint64, key string, before ...driver.Claim) *holder {
	claims := append(before, driver.Claim{Policy: "slots", Subject: key, Rule: manySlots, Cost: 1, LeaseFor: time.Minute})
	h := &holder{store: s, batch: []driver.Entry{{Claims: claims}}, slot: &claims[len(claims)-1],
		changes: []driver.Change{{Kind: driver.Release, Policy: "slots", Subject: key, Rule: manySlots}}}
	binary.LittleEndian.PutUint64(h.slot.Lease[:], rand.Uint64()+process)
	return h
}

// again names the next lease without asking for it.
func (h *holder) again() {
	h.next++
	binary.BigEndian.PutUint64(h.slot.Lease[8:], h.next)
}

func (h *holder) acquire(b testing.TB) {
	h.again()
	decide(b, h.store, time.Time{}, h.batch)
}

func (h *holder) release(b testing.TB) {
	h.changes[0].Subject, h.changes[0].Lease = h.slot.Subject, h.slot.Lease
	if err := h.store.Apply(context.Background(), time.Time{}, h.changes); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkSlots is a slot taken and given back, of a key with as many others held.
func BenchmarkSlots(b *testing.B) {
	for _, held := range []int{0, 10, 1000, 100_000} {
		b.Run("beside "+strconv.Itoa(held), func(b *testing.B) {
			s := memory.New()
			defer s.Close()
			h := newHolder(s, 0, "key")
			for range held {
				h.acquire(b)
			}
			b.ReportAllocs()
			for b.Loop() {
				h.acquire(b)
				h.release(b)
			}
		})
	}
	b.Run("refused", func(b *testing.B) {
		s := memory.New()
		defer s.Close()
		h := newHolder(s, 0, "key")
		h.acquire(b)
		h.slot.Rule = driver.NewSlots(1)
		b.ReportAllocs()
		for b.Loop() {
			h.acquire(b)
		}
	})
}

func BenchmarkSlotsParallel(b *testing.B) {
	s := memory.New()
	defer s.Close()
	var worker atomic.Uint64
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		h := newHolder(s, worker.Add(1), "key")
		for pb.Next() {
			h.acquire(b)
			h.release(b)
		}
	})
}

// BenchmarkSlots100kKeys takes a slot of a key with none, and gives it back, among 100,000 keys of which half hold one.
func BenchmarkSlots100kKeys(b *testing.B) {
	keys := subjects(100_000)
	s := memory.New()
	defer s.Close()
	h := newHolder(s, 0, "")
	for i := 0; i < len(keys); i += 2 {
		h.slot.Subject = keys[i]
		h.acquire(b)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	b.ReportAllocs()
	for b.Loop() {
		h.slot.Subject = keys[rng.Uint32N(50_000)*2+1]
		h.acquire(b)
		h.release(b)
	}
}

// BenchmarkRateAndSlots is the request of a tenant that has both limits, until its slot is given back.
func BenchmarkRateAndSlots(b *testing.B) {
	s := memory.New()
	defer s.Close()
	key := subjects(1)[0]
	h := newHolder(s, 0, key, driver.Claim{Policy: "tenant", Subject: key, Rule: fastRule, Cost: 1})
	b.ReportAllocs()
	for b.Loop() {
		h.acquire(b)
		h.release(b)
	}
}

// BenchmarkLeaseMemory reports what a lease costs, on a key of its own and on one key, and how long a collection takes.
func BenchmarkLeaseMemory(b *testing.B) {
	for _, spread := range []bool{true, false} {
		b.Run("on a key of its own "+strconv.FormatBool(spread), func(b *testing.B) {
			for b.Loop() {
				keys := subjects(100_000)
				before := heap()
				s := memory.New()
				h := newHolder(s, 0, "key")
				for i := range keys {
					if spread {
						h.slot.Subject = keys[i]
					}
					h.acquire(b)
				}
				b.ReportMetric(float64(heap()-before)/float64(s.Stats().Leases), "B/lease")
				s.Close()
			}
		})
	}
}
