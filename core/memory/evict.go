package memory

import "math/bits"

// dropFresh drops every key that equals a fresh one at tick now and returns how many; if any could, low is exact after
// it. What is mostly empty then is copied into a smaller table, which gives the memory back.
func (sh *shard) dropFresh(now uint32) int {
	if sh.low > now {
		return 0
	}
	before, stay, low := sh.count, 0, uint32(never)
	for _, tick := range sh.ticks {
		if tick > now {
			stay++
			low = min(low, tick)
		}
	}
	switch {
	case stay == 0:
		sh.clear()
	case stay*4 < len(sh.ticks) || stay*2 < before: // copying the rest is then also the faster way to delete
		sh.rebuild(min(fitting(stay), len(sh.ticks)), now)
	case stay < before:
		sh.removeBelow(now+1, 0)
	}
	sh.low = low
	return before - stay
}

// makeRoom gives up at least one key of a full shard: those that equal a fresh one, which costs nobody anything, or if
// there are none the ones nearest to it. That the emptiest bucket is the last to go is the point: or else a flood of
// invented keys would hand an attacker a full bucket again.
//
// A shard is searched for fresh keys once per tick (low tells), and 1/64 of it is evicted at a time, so an insertion
// costs the same however full the store is.
func (sh *shard) makeRoom(now uint32) {
	if sh.dropFresh(now) > 0 {
		return
	}
	n := max(1, sh.count/64)
	sh.removeBelow(sh.nearest(n))
	sh.evictions += uint64(n)
}

// removeBelow removes the keys whose tick is below limit, and so many of those whose tick is limit.
func (sh *shard) removeBelow(limit uint32, ties int) {
	i, size := 0, len(sh.ticks)
	for sh.ticks[i] != 0 {
		i++ // a table is never full
	}
	// Downwards from a free slot, all the way round: what a removal moves back then comes from where this has been.
	for range size - 1 {
		if i == 0 {
			i = size
		}
		i--
		switch t := sh.ticks[i]; {
		case t == 0 || t > limit:
		case t < limit:
			sh.remove(i)
		case ties > 0:
			ties--
			sh.remove(i)
		}
	}
}

// nearest returns the n-th smallest tick, and how many keys of that tick are among the n smallest. It counts the ticks
// in 1024 bins, then those of the bin in question, and so on: one pass if they span two minutes, at most four, whatever
// somebody makes them span.
func (sh *shard) nearest(n int) (limit uint32, ties int) {
	lo, hi := uint32(never), uint32(0)
	for _, t := range sh.ticks {
		if t != 0 {
			lo, hi = min(lo, t), max(hi, t)
		}
	}
	if n == 1 {
		return lo, 1
	}
	for {
		shift := max(0, bits.Len32(hi-lo)-10)
		var bins [1024]int32
		for _, t := range sh.ticks {
			if t >= lo && t <= hi {
				bins[(t-lo)>>shift]++
			}
		}
		b := 0
		for ; n > int(bins[b]); b++ {
			n -= int(bins[b])
		}
		lo += uint32(b) << shift
		if shift == 0 {
			return lo, n
		}
		hi = lo + min(hi-lo, 1<<shift-1) // the sum may be past 32 bits, the difference is not
	}
}
