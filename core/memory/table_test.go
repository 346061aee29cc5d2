package memory

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/headgate-go/headgate/core/driver"
)

func TestSlotKeepsEveryBit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	edges := driver.Bucket{Whole: -1_000_000_000, Part: 1<<44 - 1, Time: driver.MaxMicros}
	for i := range 10_000 {
		b := driver.Bucket{
			Whole: rng.Int64N(2_000_000_001) - 1_000_000_000,
			Part:  rng.Uint64N(1 << 44),
			Time:  1 + rng.Int64N(driver.MaxMicros),
		}
		switch i {
		case 0:
			b = edges
		case 1:
			b = driver.Bucket{Whole: 1_000_000_000, Time: 1}
		case 2:
			b = driver.Bucket{Whole: -1, Part: 1, Time: 1 << 51}
		}
		c := bucketCell(b)
		if got := c.bucket(); got != b {
			t.Fatalf("got %+v, want %+v", got, b)
		}
	}
}

func TestCellKeepsEveryBitOfAWindow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 10_000 {
		// Settling counts up to twice the largest limit.
		w := driver.Window{Prev: rng.Int64N(2*driver.MaxCount + 1), Cur: rng.Int64N(2*driver.MaxCount + 1), Time: 1 + rng.Int64N(driver.MaxMicros)}
		switch i {
		case 0:
			w = driver.Window{Prev: 2 * driver.MaxCount, Cur: 2 * driver.MaxCount, Time: driver.MaxMicros}
		case 1:
			w = driver.Window{Time: 1}
		}
		if got := windowCell(w).window(); got != w {
			t.Fatalf("got %+v, want %+v", got, w)
		}
	}
	if (cell{}).window() != (driver.Window{}) || (cell{}).bucket() != (driver.Bucket{}) {
		t.Error("a cell of zeros is state")
	}
}

// model is what a shard should hold: a tick per hash.
type model map[uint64]uint32

// same fails unless the shard holds exactly what the model does, each key findable and the counters right.
func (m model) same(t *testing.T, sh *shard, step int) {
	t.Helper()
	if sh.count != len(m) {
		t.Fatalf("step %d: %d keys, want %d", step, sh.count, len(m))
	}
	used := 0
	for i, tick := range sh.ticks {
		if (tick == 0) != (sh.slots[i].hash == 0) {
			t.Fatalf("step %d: slot %d: hash %x and tick %d disagree", step, i, sh.slots[i].hash, tick)
		}
		if tick != 0 {
			used++
		}
	}
	if used != len(m) || (len(m) > 0 && used >= len(sh.slots)) {
		t.Fatalf("step %d: %d of %d slots used for %d keys", step, used, len(sh.slots), len(m))
	}
	for h, tick := range m {
		i, ok := sh.find(h)
		if !ok || sh.ticks[i] != tick || sh.slots[i].bucket().Whole != int64(tick) {
			t.Fatalf("step %d: key %x is lost or mixed up", step, h)
		}
		if tick < sh.low {
			t.Fatalf("step %d: low is %d, a key has %d", step, sh.low, tick)
		}
	}
}

// TestTable plays random operations on small tables, where keys crowd together and wrap around the end all the time.
func TestTable(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 7))
		sh := &shard{bound: 1 + rng.IntN(60), low: never}
		m, now := model{}, uint32(0)
		for step := range 2000 {
			// Hashes crowd at the end of the table or anywhere.
			h := rng.Uint64N(200)*0x0101010101010101 | 1
			if rng.IntN(2) == 0 {
				h = ^h | 1
			}
			switch i, ok := sh.find(h); {
			case rng.IntN(20) == 0:
				now += rng.Uint32N(8)
				before := len(m)
				for h, tick := range m {
					if tick <= now {
						delete(m, h)
					}
				}
				if got := sh.dropFresh(now); got != before-len(m) {
					t.Fatalf("seed %d, step %d: %d dropped, want %d", seed, step, got, before-len(m))
				}
			case ok && rng.IntN(3) == 0:
				sh.remove(i)
				delete(m, h)
			case ok:
				tick := now + 1 + rng.Uint32N(40)
				sh.update(i, state(tick), tick)
				m[h] = tick
			default:
				tick := now + 1 + rng.Uint32N(40)
				if len(m) == sh.bound {
					m.makeRoom(t, sh, now)
				}
				i, _ = sh.find(h)
				sh.insert(i, h, state(tick), tick, now)
				m[h] = tick
			}
			if len(m) > sh.bound {
				t.Fatalf("seed %d, step %d: %d keys, bound %d", seed, step, len(m), sh.bound)
			}
			m.same(t, sh, step)
		}
	}
}

func state(tick uint32) cell { return bucketCell(driver.Bucket{Whole: int64(tick), Time: 1}) }

// makeRoom lets the shard make room and repeats it: of the fresh keys all go, or else of those nearest to it.
func (m model) makeRoom(t *testing.T, sh *shard, now uint32) {
	t.Helper()
	evictions := sh.evictions
	sh.makeRoom(now)
	if len(m) == sh.count {
		t.Fatal("no room was made")
	}
	var gone, stay []uint32
	for h, tick := range m {
		if _, ok := sh.find(h); ok {
			stay = append(stay, tick)
		} else {
			gone = append(gone, tick)
			delete(m, h)
		}
	}
	if len(stay) > 0 && slices.Max(gone) > slices.Min(stay) {
		t.Fatalf("evicted a key of tick %d and kept one of %d", slices.Max(gone), slices.Min(stay))
	}
	if fresh := slices.Max(gone) <= now; fresh != (sh.evictions == evictions) {
		t.Fatalf("%d evictions counted for %d keys, the latest of tick %d at %d", sh.evictions-evictions, len(gone), slices.Max(gone), now)
	}
}

// TestNearest compares the selection with sorting, also where one key lives for ever and the rest for a moment.
func TestNearest(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 300 {
		n, span := 1+rng.IntN(3000), uint64(1)<<(1+rng.IntN(31))
		var ticks, sorted []uint32
		for range n {
			tick := uint32(1 + rng.Uint64N(span))
			if rng.IntN(50) == 0 {
				tick = never - 1 - rng.Uint32N(2)
			}
			ticks = append(ticks, tick, 0)
			sorted = append(sorted, tick)
		}
		slices.Sort(sorted)
		k := 1 + rng.IntN(n)
		limit, ties, equal := (&shard{ticks: ticks, low: 1 + rng.Uint32N(sorted[0])}).nearest(k)
		below, _ := slices.BinarySearch(sorted, limit)
		above, _ := slices.BinarySearch(sorted, limit+1)
		if limit != sorted[k-1] || ties != k-below || equal != above-below {
			t.Fatalf("the %d nearest of %d: limit %d with %d of %d ties, want %d with %d of %d",
				k, n, limit, ties, equal, sorted[k-1], k-below, above-below)
		}
	}
}

// TestHomeKeepsTheOrder: a larger table is filled front to back because the order of homes is that of hashes.
func TestHomeKeepsTheOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 10_000 {
		a, b, size := rng.Uint64(), rng.Uint64(), 1+rng.IntN(1000)
		if a > b {
			a, b = b, a
		}
		if x, y := home(a, size), home(b, size); x > y || x < 0 || y >= size {
			t.Fatalf("homes %d and %d of %x and %x among %d", x, y, a, b, size)
		}
	}
}

func TestShardCount(t *testing.T) {
	for maxKeys, want := range map[int]int{1: 1, 8191: 1, 8192: 2, 100_000: 16, 1_000_000: 128, math.MaxInt: maxShards} {
		if got := shardCount(maxKeys); got != want {
			t.Errorf("%d keys: %d shards, want %d", maxKeys, got, want)
		}
	}
	for _, maxKeys := range []int{1, 7, 100, 8191, 8192, 99_999, 1_000_001} {
		sum := 0
		for i, s := 0, New(WithMaxKeys(maxKeys)); i < len(s.shards); i++ {
			sum += s.shards[i].bound
		}
		if sum != maxKeys {
			t.Errorf("the shards of a store for %d keys hold %d", maxKeys, sum)
		}
	}
	for _, n := range []int{0, -1, math.MinInt} {
		sum := 0
		for i, s := 0, New(WithMaxKeys(n)); i < len(s.shards); i++ {
			sum += s.shards[i].bound
		}
		if sum != DefaultMaxKeys {
			t.Errorf("WithMaxKeys(%d) holds %d", n, sum)
		}
	}
}

// TestFloodKeepsTheTableEven: a flood of equals must not be evicted from one end, which would leave the other one full:
// the length of a search for an absent key tells, 5 slots on average at two thirds full.
func TestFloodKeepsTheTableEven(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	sh := &shard{bound: 5000, low: never}
	for step := range 60_000 {
		h := rng.Uint64() | 1
		i, _ := sh.find(h)
		sh.insert(i, h, bucketCell(driver.Bucket{Time: 1}), 10+uint32(step/20_000), 1)
		if step%10_000 != 9999 {
			continue
		}
		length, size := 0, len(sh.slots)
		for i := range size {
			for j := i; sh.slots[j].hash != 0; j = (j + 1) % size {
				length++
			}
		}
		if average := float64(length) / float64(size); average > 8 {
			t.Errorf("step %d: a search for an absent key passes %.1f slots on average", step, average)
		}
	}
}
