package redisscript

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/headgate-go/headgate/core/driver"
)

// pack turns requests that were waiting at the same moment into the arguments of one call, and the reply into what each
// claim saw. It is scratch memory, used again for the next call by the same sender.
//
// Requests may be decided in another order than they came in only where nobody can tell: on keys that no request shares
// with another key. There, equal requests on different keys become one record (opEach), equal ones in a row on one key
// another (opRepeat). Everything else stays in its order, a record for each claim.
type pack struct {
	claims []*claim
	single []bool // the claim is a whole request and a plain one: a bucket, not settling
	keys   []string
	arg    []byte
	args   map[[4]uint64]string // arguments of the fast path seen before, by any pack of the sender

	groups  []group // by key, in order of their first claim
	next    []int16 // the next claim on the same key, -1 for none
	order   []int16 // claims in the order of the reply
	records []record
	table   [4 * packClaims]uint8 // hash table of groups, holding their number plus one
}

// group is a key and the claims on it.
type group struct {
	first, last int16
	count       int16
	plain       bool // all its claims are whole plain requests
	done        bool
}

// record is a record of the argument: its op and how many claims it answers.
type record struct {
	op    uint8
	count int
}

// headSize and recordSize are the sizes of the parts of ARGV[1], fastSize and pairSize those of the whole on the fast paths.
const (
	headSize   = 2
	recordSize = 38
	fastSize   = 32
	pairSize   = 60
)

// encode fills p.keys and returns ARGV[1]. There is at least one claim, and at most packClaims.
func (p *pack) encode(requests []*request) string {
	p.reset()
	for _, r := range requests {
		alone := true // the claim before was the last of its request
		for i := range r.claims {
			c := &r.claims[i]
			last := c.flags&flagLast != 0
			p.claims = append(p.claims, c)
			p.single = append(p.single, alone && last && c.op == opBucket && c.flags&flagSettle == 0)
			alone = last
		}
	}
	if len(p.claims) == 1 && p.single[0] {
		c := p.claims[0]
		p.keys, p.order = append(p.keys, c.key), append(p.order, 0)
		p.records = append(p.records, record{op: opBucket, count: 1})
		return p.fast(c.v)
	}
	if len(p.claims) == 2 && p.isPair() {
		return p.encodePair()
	}
	p.group()
	p.arg = append(p.arg, 0, 0) // the number of string keys comes later
	p.encodeEach()
	p.encodeRepeats()
	p.encodeRest()
	return string(p.arg)
}

func (p *pack) reset() {
	clear(p.claims)
	clear(p.keys)
	p.claims, p.single, p.keys, p.arg = p.claims[:0], p.single[:0], p.keys[:0], p.arg[:0]
	p.groups, p.next, p.order, p.records = p.groups[:0], p.next[:0], p.order[:0], p.records[:0]
}

// fast returns the argument of the fast path. Few rules and costs are in use at a time, so it is rarely made.
func (p *pack) fast(v [4]uint64) string {
	arg, ok := p.args[v]
	if !ok {
		var b [fastSize]byte
		for i, bits := range v {
			binary.LittleEndian.PutUint64(b[8*i:], bits)
		}
		arg = string(b[:])
		if p.args == nil {
			p.args = map[[4]uint64]string{}
		}
		if len(p.args) >= 256 {
			clear(p.args)
		}
		p.args[v] = arg
	}
	return arg
}

// isPair says whether two claims are a request about a bucket and a slot, as most are of whoever limits both.
func (p *pack) isPair() bool {
	a, b := p.claims[0], p.claims[1]
	if a.flags != 0 || b.flags != flagLast {
		return false
	}
	if a.op == opSlots {
		a, b = b, a
	}
	// A cost, and a limit, of 0 is a look.
	return a.op == opBucket && b.op == opSlots && a.v[3] != 0 && b.v[0] != 0
}

func (p *pack) encodePair() string {
	rate, slots := int16(0), int16(1)
	if p.claims[0].op == opSlots {
		rate, slots = 1, 0
	}
	a, b := p.claims[rate], p.claims[slots]
	p.keys, p.order = append(p.keys, a.key, b.key), append(p.order, rate, slots)
	p.records = append(p.records, record{op: opBucket, count: 1}, record{op: opSlots, count: 1})
	for _, bits := range a.v {
		p.arg = binary.LittleEndian.AppendUint64(p.arg, bits)
	}
	p.arg = binary.LittleEndian.AppendUint32(p.arg, uint32(math.Float64frombits(b.v[0])))
	for _, bits := range b.v[1:] {
		p.arg = binary.LittleEndian.AppendUint64(p.arg, bits)
	}
	return string(p.arg)
}

// group finds the claims of each key.
func (p *pack) group() {
	clear(p.table[:])
	for i, c := range p.claims {
		p.next = append(p.next, -1)
		slot := c.hash % uint64(len(p.table))
		for p.table[slot] != 0 && !p.same(c, p.table[slot]-1) {
			slot = (slot + 1) % uint64(len(p.table))
		}
		if p.table[slot] == 0 {
			p.groups = append(p.groups, group{first: int16(i), last: int16(i), count: 1, plain: p.single[i]})
			p.table[slot] = uint8(len(p.groups))
			continue
		}
		g := &p.groups[p.table[slot]-1]
		p.next[g.last] = int16(i)
		g.last, g.count, g.plain = int16(i), g.count+1, g.plain && p.single[i]
	}
}

func (p *pack) same(c *claim, group uint8) bool {
	other := p.claims[p.groups[group].first]
	return c.hash == other.hash && c.key == other.key
}

// encodeEach makes one record for the keys that are claimed once, by a plain request, under one rule and at one cost.
func (p *pack) encodeEach() {
	for i := range p.groups {
		g := &p.groups[i]
		if g.done || !g.plain || g.count > 1 {
			continue
		}
		first, start := p.claims[g.first], len(p.order)
		key := len(p.keys) + 1
		for j := i; j < len(p.groups); j++ {
			other := &p.groups[j]
			if c := p.claims[other.first]; !other.done && other.plain && other.count == 1 && c.v == first.v {
				other.done = true
				p.keys, p.order = append(p.keys, c.key), append(p.order, other.first)
			}
		}
		p.record(opEach, opEach, key, len(p.order)-start, first.v)
	}
}

// encodeRepeats makes a record for each run of equal plain requests on one key.
func (p *pack) encodeRepeats() {
	for i := range p.groups {
		g := &p.groups[i]
		if g.done || !g.plain {
			continue
		}
		g.done = true
		p.keys = append(p.keys, p.claims[g.first].key)
		for at := g.first; at >= 0; {
			v, count := p.claims[at].v, 0
			for ; at >= 0 && p.claims[at].v == v; at = p.next[at] {
				p.order = append(p.order, at)
				count++
			}
			p.record(opRepeat, opRepeat, len(p.keys), count, v)
		}
	}
}

// encodeRest makes a record for each claim that is left: string keys first, then sorted sets.
func (p *pack) encodeRest() {
	strings := 0
	for _, sets := range [2]bool{false, true} {
		for i := range p.groups {
			g := &p.groups[i]
			c := p.claims[g.first]
			if set := c.op == opSlots || c.op == opRenew; g.done || set != sets {
				continue
			}
			p.keys = append(p.keys, c.key)
			for at := g.first; at >= 0; at = p.next[at] {
				p.claims[at].place = uint16(len(p.keys))
			}
		}
		if !sets {
			strings = len(p.keys)
		}
	}
	binary.LittleEndian.PutUint16(p.arg, uint16(strings))
	// Renewals last: an acquire sweeps at once and everything else is written at the end, so that one after a renewal could
	// sweep what the renewal found.
	for _, renewals := range [2]bool{false, true} {
		for i, c := range p.claims {
			if c.place != 0 && (c.op == opRenew) == renewals {
				p.encodeClaim(int16(i), c)
			}
		}
	}
}

// encodeClaim makes the record of one claim.
func (p *pack) encodeClaim(i int16, c *claim) {
	p.order = append(p.order, i)
	p.record(c.op, uint16(c.op)|uint16(c.flags)<<flagShift, int(c.place), 1, c.v)
	if c.op == opCalendar {
		p.arg = binary.LittleEndian.AppendUint64(p.arg, c.outer[0])
		p.arg = binary.LittleEndian.AppendUint64(p.arg, c.outer[1])
	}
	if c.flags&flagReceipt != 0 {
		p.arg = binary.LittleEndian.AppendUint64(p.arg, c.start)
	}
	c.place = 0
}

// record appends a record of the argument; word is the op with its flags.
func (p *pack) record(op uint8, word uint16, key, count int, v [4]uint64) {
	p.records = append(p.records, record{op: op, count: count})
	p.arg = binary.LittleEndian.AppendUint16(p.arg, word)
	p.arg = binary.LittleEndian.AppendUint16(p.arg, uint16(key))
	p.arg = binary.LittleEndian.AppendUint16(p.arg, uint16(count))
	for _, bits := range v {
		p.arg = binary.LittleEndian.AppendUint64(p.arg, bits)
	}
}

// decode reads the reply into the claims. What makes no sense is an error of class protocol, and then no claim may be
// looked at.
func (p *pack) decode(reply string) error {
	want, at := 0, 0
	for _, r := range p.records {
		if r.op == opEach {
			want += r.count * width(opBucket)
		} else {
			want += width(r.op)
		}
	}
	if len(reply) != 8*want {
		return protocolError(fmt.Errorf("a reply of %d bytes where %d were expected", len(reply), 8*want))
	}
	for _, r := range p.records {
		claims := p.order[at : at+r.count]
		at += r.count
		for i, index := range claims {
			c := p.claims[index]
			if i > 0 && r.op == opRepeat {
				c.saw = p.claims[claims[i-1]].after()
				continue
			}
			for j := range width(c.op) {
				n, ok := integer(reply[:8])
				if !ok {
					return protocolError(errors.New("a reply that is not made of whole numbers"))
				}
				c.saw[j], reply = n, reply[8:]
			}
			if !c.sane() {
				return protocolError(errors.New("a reply outside the range of the rule"))
			}
		}
	}
	return nil
}

// after returns what the next equal request on the bucket sees.
func (c *claim) after() [3]int64 {
	saw, cost := c.saw, int64(math.Float64frombits(c.v[3]))
	if saw[0] >= cost {
		saw[0] -= cost
	}
	return saw
}

// sane says whether the script could have seen this.
func (c *claim) sane() bool {
	if c.op == opBucket {
		burst, p := int64(math.Float64frombits(c.v[0])), int64(math.Float64frombits(c.v[2]))
		return c.saw[0] >= -burst && c.saw[0] <= burst && c.saw[1] >= 0 && c.saw[1] < p
	}
	if c.op == opSlots || c.op == opRenew {
		return c.saneSlots()
	}
	return c.saneWindow()
}

// integer reads a double that must be a whole number below 2^53.
func integer(b string) (int64, bool) {
	var bits uint64
	for i := range 8 {
		bits |= uint64(b[i]) << (8 * i)
	}
	x := math.Float64frombits(bits)
	if !(x > -1<<53 && x < 1<<53) || x != math.Trunc(x) {
		return 0, false
	}
	return int64(x), true
}

func protocolError(err error) error { return &driver.Error{Class: driver.ClassProtocol, Err: err} }
