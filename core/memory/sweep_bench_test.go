package memory

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/headgate-go/headgate/core/driver"
)

// BenchmarkSweepShard is how long a sweep keeps callers of one shard waiting: the largest one below 64 million keys, of
// which nothing, a tenth, half or all equals a fresh key.
func BenchmarkSweepShard(b *testing.B) {
	for _, percent := range []uint32{0, 10, 50, 100} {
		b.Run(strconv.Itoa(int(percent))+"%", func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			full := shard{bound: 2*minPerShard - 1, low: never}
			for full.count < full.bound {
				tick := uint32(200)
				if rng.Uint32N(100) < percent {
					tick = 100
				}
				h := rng.Uint64() | 1
				i, _ := full.find(h)
				full.insert(i, h, bucketCell(driver.Bucket{Time: 1}), tick, 1)
			}
			full.low = 1 // so that it is read in any case
			slots, ticks := make([]slot, len(full.slots)), make([]uint32, len(full.ticks))
			for b.Loop() {
				b.StopTimer()
				copy(slots, full.slots)
				copy(ticks, full.ticks)
				sh := shard{bound: full.bound, count: full.count, low: full.low, slots: slots, ticks: ticks}
				b.StartTimer()
				sh.sweep(150)
			}
		})
	}
}

// BenchmarkNearest is the search for what to evict, in the usual case and in the worst.
func BenchmarkNearest(b *testing.B) {
	for name, span := range map[string]uint32{"minutes": 1000, "years": never - 2} {
		b.Run(name, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			sh := shard{ticks: make([]uint32, 12_000)}
			for i := range 8000 {
				sh.ticks[i*3/2] = 1 + rng.Uint32N(span)
			}
			sh.low = slices.Min(slices.DeleteFunc(slices.Clone(sh.ticks), func(t uint32) bool { return t == 0 }))
			for b.Loop() {
				sh.nearest(125)
			}
		})
	}
}
