package memory

import (
	"math/bits"
	"sync"

	"github.com/headgate-go/headgate/core/driver"
)

// slot holds one key: its hash (0: free) and its state.
type slot struct {
	hash uint64
	cell
}

// cell is the state of one key in 128 bits, of which 52 are its time. In a bucket 44 are the fraction, across both words,
// and 32 the whole tokens; in a window the counts have 32 each. Which it is the key's hash knows. The zero value is no
// state of either.
type cell struct{ hi, lo uint64 }

func (c cell) bucket() driver.Bucket {
	return driver.Bucket{
		Whole: int64(int32(uint32(c.lo))),
		Part:  c.hi<<32&(1<<44-1) | c.lo>>32,
		Time:  int64(c.hi >> 12),
	}
}

func bucketCell(b driver.Bucket) cell {
	return cell{hi: uint64(b.Time)<<12 | b.Part>>32, lo: b.Part<<32 | uint64(uint32(int32(b.Whole)))}
}

func (c cell) window() driver.Window {
	return driver.Window{Prev: int64(c.lo >> 32), Cur: int64(uint32(c.lo)), Time: int64(c.hi >> 12)}
}

func windowCell(w driver.Window) cell {
	return cell{hi: uint64(w.Time) << 12, lo: uint64(w.Prev)<<32 | uint64(uint32(w.Cur))}
}

// shard is one table behind one mutex: open addressing, linear probing. A slot is 24 bytes without a pointer, and the
// tick from which its state equals a fresh key lies in a slice of its own (0: free), so that sweeping and evicting read
// 4 bytes a key. Nothing in here is looked at by the collector. Leases lie in a table beside it, under the same mutex.
type shard struct {
	mu        sync.Mutex
	slots     []slot
	ticks     []uint32
	count     int
	bound     int
	evictions uint64
	leases    leases
	low       uint32  // no key's tick is below it; never if there is none
	_         [4]byte // to two cache lines, which processors like to fetch together
}

// home is where a hash would like to be in a table of size slots. It orders keys by their hash whatever the size, so
// a table need not be a power of two and is copied into a larger one front to back.
func home(h uint64, size int) int {
	hi, _ := bits.Mul64(h, uint64(size))
	return int(hi)
}

// find returns the slot of a hash, or the free one where it would go (-1 in an empty table).
func (sh *shard) find(h uint64) (i int, ok bool) {
	slots := sh.slots
	if len(slots) == 0 {
		return -1, false
	}
	i = home(h, len(slots))
	if sh.ticks[i] == 0 { // also brings the tick's cache line in while the slot's is on its way
		return i, false
	}
	for {
		switch slots[i].hash {
		case h:
			return i, true
		case 0:
			return i, false
		}
		if i++; i == len(slots) {
			i = 0
		}
	}
}

// update writes the state of a key that is there.
func (sh *shard) update(i int, c cell, tick uint32) {
	sh.slots[i].cell = c
	sh.ticks[i] = tick
	sh.low = min(sh.low, tick)
}

// insert adds a key that find did not find, at the slot it returned unless the table has to move first.
func (sh *shard) insert(i int, h uint64, c cell, tick, now uint32) {
	if sh.count >= sh.bound {
		sh.makeRoom(now)
		i = -1
	}
	if (sh.count+1)*4 > len(sh.slots)*3 {
		sh.resize(sh.larger())
		i = -1
	}
	if i < 0 {
		i, _ = sh.find(h)
	}
	sh.slots[i].hash = h
	sh.count++
	sh.update(i, c, tick)
}

// remove frees a slot and moves back what had to pass it, so that no marks of the dead are left behind.
func (sh *shard) remove(i int) {
	slots, ticks, size := sh.slots, sh.ticks, len(sh.slots)
	for j := i; ; {
		if j++; j == size {
			j = 0
		}
		h := slots[j].hash
		if h == 0 {
			break
		}
		if fills(i, j, home(h, size)) {
			slots[i] = slots[j]
			ticks[i] = ticks[j]
			i = j
		}
	}
	slots[i] = slot{}
	ticks[i] = 0
	sh.count--
}

// fills says whether what lies at j may fill a hole at i before it: unless its home lies after the hole, cyclically in (i, j].
func fills(i, j, home int) bool {
	return (i < j && (home <= i || home > j)) || (i > j && home <= i && home > j)
}

// larger is the size that a table grows to at load 0.75: by a quarter, so that a key never costs more than 28/0.6 bytes;
// small tables double. The last step leaves a load of two thirds when the shard is full: eviction removes and inserts all
// the time then, and both cost half of what they do at 0.75.
func (sh *shard) larger() int {
	size := len(sh.slots)
	step := size
	if size >= 512 {
		step = size / 4
	}
	return min(max(size+step, 8), sh.bound+sh.bound/2+1)
}

// fitting is the size for count keys at load 0.6.
func fitting(count int) int { return count + count*2/3 + 2 }

// resize copies the table into one of another size.
func (sh *shard) resize(size int) { sh.rebuild(size, 0) }

// rebuild copies the keys whose tick is above now into a table of another size.
func (sh *shard) rebuild(size int, now uint32) {
	old, oldTicks := sh.slots, sh.ticks
	sh.slots, sh.ticks = make([]slot, size), make([]uint32, size)
	sh.count, sh.low = 0, never
	for i, tick := range oldTicks {
		if tick > now {
			j, _ := sh.find(old[i].hash)
			sh.slots[j] = old[i]
			sh.ticks[j] = tick
			sh.count++
			sh.low = min(sh.low, tick)
		}
	}
}

// clear drops every key; leases stay.
func (sh *shard) clear() {
	sh.slots, sh.ticks, sh.count, sh.low = nil, nil, 0, never
}
