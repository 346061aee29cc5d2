package memory

import (
	"math/rand/v2"
	"testing"

	"github.com/headgate-go/headgate/core/driver"
)

// TestLeases plays random operations on the leases of a few keys, whose hashes crowd at the end of the table and wrap
// around it, against maps.
func TestLeases(t *testing.T) {
	for seed := range uint64(10) {
		s, rng := New(), rand.New(rand.NewPCG(seed, 11))
		l, model := &leases{}, map[uint64]map[leaseID]bool{}
		keys := []uint64{rng.Uint64()<<4 | 1, rng.Uint64()<<4 | 2, ^uint64(3), ^uint64(7), 5} // which differ in their last four bits
		hash := func(key uint64, id leaseID) uint64 {
			driverID := id.id()
			if h := s.leaseHash(key, &driverID); id.b%3 > 0 {
				return h
			}
			return ^uint64(255) | key<<4 | id.b&15 // not one that a store makes, but one that a table must stand
		}
		most := 1 << rng.IntN(9)
		for step := range 2000 {
			key, id := keys[rng.IntN(len(keys))], leaseID{a: 1, b: uint64(rng.IntN(most))}
			if model[key] == nil {
				model[key] = map[leaseID]bool{}
			}
			// In waves, so that the table grows and shrinks.
			if rng.IntN(1000) < 500+300*(1-step/500%2*2) {
				l.take(key, hash(key, id), id)
				model[key][id] = true
			} else {
				l.release(key, hash(key, id), id)
				delete(model[key], id)
			}
			same(t, l, model, hash, step)
		}
	}
}

func same(t *testing.T, l *leases, model map[uint64]map[leaseID]bool, hash func(uint64, leaseID) uint64, step int) {
	t.Helper()
	count, keys, used := 0, 0, 0
	for key, ids := range model {
		if got := l.held(key); got != len(ids) {
			t.Fatalf("step %d: %d leases of a key, want %d", step, got, len(ids))
		}
		for id := range ids {
			if _, ok := l.find(hash(key, id), id); !ok {
				t.Fatalf("step %d: a lease is lost", step)
			}
		}
		if count += len(ids); len(ids) > 0 {
			keys++
		}
	}
	for i := range l.table {
		if l.table[i].hash != 0 {
			used++
		} else if l.table[i] != (lease{}) {
			t.Fatalf("step %d: a free entry holds %+v", step, l.table[i])
		}
	}
	if l.count != count || l.keys != keys || used != count+keys {
		t.Fatalf("step %d: %d leases of %d keys in %d entries, want %d of %d", step, l.count, l.keys, used, count, keys)
	}
	if size := len(l.table); size > minLeases && used*8 < size-16 || used*4 > size*3 {
		t.Fatalf("step %d: %d entries for %d", step, size, used)
	}
}

// TestForget: the leases of one key go, wherever they lie, and those of all others stay.
func TestForget(t *testing.T) {
	s, l := New(), &leases{}
	keys := []uint64{1 << 40, 2 << 40, 3 << 40, ^uint64(0)}
	id := func(n int) driver.ID { return driver.ID{1, byte(n), byte(n >> 8)} }
	take := func(key uint64, n int) {
		id := id(n)
		l.take(key, s.leaseHash(key, &id), idOf(&id))
	}
	for n := range 300 {
		for i, key := range keys {
			if n%(i+1) == 0 {
				take(key, n)
			}
		}
	}
	s.forget(l, 77) // a key without a lease
	for i, gone := range keys {
		s.forget(l, gone)
		for j, key := range keys {
			want := 0
			if j > i {
				want = (299 + j + 1) / (j + 1)
			}
			found := 0
			for n := range 300 {
				id := id(n)
				if _, ok := l.find(s.leaseHash(key, &id), idOf(&id)); ok {
					found++
				}
			}
			if l.held(key) != want || found != want {
				t.Errorf("%d keys forgotten: key %d counts %d leases and has %d, want %d", i+1, j, l.held(key), found, want)
			}
		}
	}
	if l.used() != 0 || len(l.table) != minLeases {
		t.Errorf("%d entries used of %d when all keys are forgotten", l.used(), len(l.table))
	}
	take(keys[0], 1)
	if l.held(keys[0]) != 1 {
		t.Error("a key that was forgotten takes no lease")
	}
}

// A hash of 0 marks a free entry, so no lease may have it.
func TestLeaseHashIsNeverZero(t *testing.T) {
	s, id := New(), driver.ID{1}
	h := s.leaseHash(0, &id)
	if got := s.leaseHash(h, &id); got == 0 {
		t.Error("a lease with the hash of a free entry")
	}
}
