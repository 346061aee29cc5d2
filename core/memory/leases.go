package memory

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/headgate-go/headgate/core/driver"
)

// leases is the set of all leases held under the keys of one shard, guarded by the shard's mutex. It is a table of its own,
// because nothing in it is ever evicted and nothing ends by itself: open addressing and linear probing as in the shard's,
// and no pointer for the collector either. The entry without an ID, which every lease has, counts the leases of its key;
// it goes with the last of them. Growing copies all of them, which holds a shard for two milliseconds when a hundred
// thousand requests in flight have a lease in it.
type leases struct {
	table []lease
	count int // of leases
	keys  int // of counts
}

func (l *leases) used() int { return l.count + l.keys }

// lease is one lease, or the count of those of a key.
type lease struct {
	hash uint64 // of key and ID, or of the key; 0: free
	leaseID
	held int // of a count
}

// leaseID is a [driver.ID] in a form that is compared in registers.
type leaseID struct{ a, b uint64 }

func idOf(id *driver.ID) leaseID {
	return leaseID{binary.LittleEndian.Uint64(id[:8]), binary.LittleEndian.Uint64(id[8:])}
}

func (l leaseID) id() (id driver.ID) {
	binary.LittleEndian.PutUint64(id[:8], l.a)
	binary.LittleEndian.PutUint64(id[8:], l.b)
	return id
}

// leaseHash names a lease of the key whose hash is h. Hashes are xored, so that the key can be told from hash and ID.
func (s *Store) leaseHash(h uint64, id *driver.ID) uint64 {
	if l := h ^ maphash.Bytes(s.seed, id[:]); l != 0 {
		return l
	}
	return 1
}

// minLeases is the size of a table that holds nothing. Two entries are kept for a lease of a key that has no other.
const minLeases = 16

// find returns where a lease is, or where it would go: a table is never full.
func (l *leases) find(hash uint64, id leaseID) (i int, ok bool) {
	table := l.table
	if len(table) == 0 {
		return -1, false
	}
	for i = home(hash, len(table)); ; {
		switch e := &table[i]; {
		case e.hash == hash && e.leaseID == id:
			return i, true
		case e.hash == 0:
			return i, false
		}
		if i++; i == len(table) {
			i = 0
		}
	}
}

// held returns how many leases a key has.
func (l *leases) held(key uint64) int {
	if i, ok := l.find(key, leaseID{}); ok {
		return l.table[i].held
	}
	return 0
}

// take adds a lease, unless it is there.
func (l *leases) take(key, hash uint64, id leaseID) {
	if (l.used()+2)*4 > len(l.table)*3 {
		l.resize(max(minLeases, 2*len(l.table)))
	}
	i, ok := l.find(hash, id)
	if ok {
		return
	}
	l.table[i].hash, l.table[i].leaseID = hash, id
	l.count++
	if i, ok = l.find(key, leaseID{}); !ok {
		l.table[i].hash = key
		l.keys++
	}
	l.table[i].held++
}

// release removes a lease, if it is there.
func (l *leases) release(key, hash uint64, id leaseID) {
	i, ok := l.find(hash, id)
	if !ok {
		return
	}
	l.remove(i)
	l.count--
	i, _ = l.find(key, leaseID{})
	if l.table[i].held--; l.table[i].held == 0 {
		l.remove(i)
		l.keys--
	}
	// Between growing at three quarters and shrinking at an eighth lies a factor of six, so that no wave of requests makes
	// tables all the time.
	if len(l.table) > minLeases && l.used()*8 < len(l.table) {
		l.resize(len(l.table) / 2)
	}
}

// remove frees an entry and moves back what had to pass it.
func (l *leases) remove(i int) {
	table := l.table
	for j := i; ; {
		if j++; j == len(table) {
			j = 0
		}
		if table[j].hash == 0 {
			break
		}
		if fills(i, j, home(table[j].hash, len(table))) {
			table[i] = table[j]
			i = j
		}
	}
	table[i] = lease{}
}

// resize copies the table into one of another size.
func (l *leases) resize(size int) {
	old := l.table
	l.table = make([]lease, size)
	for i := range old {
		if old[i].hash != 0 {
			j, _ := l.find(old[i].hash, old[i].leaseID)
			l.table[j] = old[i]
		}
	}
}
