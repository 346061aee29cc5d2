package memory

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
		sh.removeBelow(now+1, 0, 1)
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
	limit, ties, equal := sh.nearest(n)
	sh.removeBelow(limit, ties, equal)
	sh.low = limit
	sh.evictions += uint64(n)
}

// removeBelow removes the keys whose tick is below limit, and so many of those whose tick is limit, of which there are
// equal. These are taken at even distances, from another start each time: in a flood of keys that live equally long,
// taking the first ones would empty one part of the table and fill the rest to the brim, where every search is long.
func (sh *shard) removeBelow(limit uint32, ties, equal int) {
	ticks, size := sh.ticks, len(sh.ticks)
	i, share := 0, int(uint32(sh.evictions*0x9e3779b97f4a7c15>>40))%equal
	for ticks[i] != 0 {
		i++ // a table is never full
	}
	// Downwards from a free slot, all the way round: what a removal moves back then comes from where this has been.
	for range size - 1 {
		if i == 0 {
			i = size
		}
		i--
		t := ticks[i]
		if t-1 >= limit { // above it, or a free slot: 0-1 is above everything. One branch, nearly always the same way
			continue
		}
		if t == limit {
			if share += ties; share < equal {
				continue
			}
			share -= equal
		}
		sh.remove(i)
	}
}

// nearest returns the n-th smallest tick, how many keys of that tick are among the n smallest, and how many there are.
// It counts ticks in bins: one pass and no branch if the answer is within two minutes of low, which it is unless only
// long lives are left.
func (sh *shard) nearest(n int) (limit uint32, ties, equal int) {
	var bins [1024]int32
	lo := sh.low
	for _, t := range sh.ticks {
		bins[min(t-lo, 1023)]++ // a free slot is in the last bin, which is not looked at
	}
	for b, keys := range bins[:1023] {
		if n <= int(keys) {
			return lo + uint32(b), n, int(keys)
		}
		n -= int(keys)
	}
	return sh.nearestAbove(lo+1023, n)
}

// nearestAbove is nearest among the ticks from lo on: four passes, whatever somebody makes the ticks span.
func (sh *shard) nearestAbove(lo uint32, n int) (limit uint32, ties, equal int) {
	hi := uint32(never)
	for shift := 22; ; shift = max(0, shift-10) {
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
			return lo, n, int(bins[b])
		}
		hi = lo + min(hi-lo, 1<<shift-1) // the sum may be past 32 bits, the difference is not
	}
}
