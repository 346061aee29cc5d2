package redistest

import (
	"fmt"
	"strconv"
)

// Move is the way of one slot, with its keys, from its primary to another. Between [Nodes.BeginMove] and [Move.Finish] the
// slot is half here and half there. The old primary answers for the keys that it still has; for the others it says ASK, and
// the new one answers those who say ASKING first. A command on keys of both is answered with TRYAGAIN.
type Move struct {
	nodes    *Nodes
	slot     int
	from, to *Server
}

// BeginMove opens a slot for its way to another primary. No key is moved yet.
func (n *Nodes) BeginMove(slot int, to *Server) *Move {
	n.t.Helper()
	m := &Move{nodes: n, slot: slot, to: to, from: n.Owner(slot)}
	switch m.from {
	case nil:
		n.t.Fatalf("redistest: move slot %d: it belongs to no node", slot)
	case to:
		n.t.Fatalf("redistest: move slot %d: it is on port %d already", slot, to.port)
	}
	m.set(to, "IMPORTING", m.from.id)
	m.set(m.from, "MIGRATING", to.id)
	return m
}

// MoveSlot moves a slot with its keys to another primary, and returns when all nodes know it.
func (n *Nodes) MoveSlot(slot int, to *Server) {
	n.t.Helper()
	n.BeginMove(slot, to).Finish()
}

// Keys moves at most limit keys, which the server chooses, and returns how many it moved.
func (m *Move) Keys(limit int) int {
	m.nodes.t.Helper()
	reply, err := m.from.Do("CLUSTER", "GETKEYSINSLOT", strconv.Itoa(m.slot), strconv.Itoa(limit))
	if err != nil {
		m.nodes.t.Fatalf("redistest: keys of slot %d: %v", m.slot, err)
	}
	var keys []string
	for _, key := range reply.([]any) {
		keys = append(keys, key.(string))
	}
	m.Key(keys...)
	return len(keys)
}

// Key moves these keys. Those that do not exist are left out.
func (m *Move) Key(keys ...string) {
	m.nodes.t.Helper()
	if len(keys) == 0 {
		return
	}
	args := []string{"MIGRATE", "127.0.0.1", strconv.Itoa(m.to.port), "", "0", strconv.FormatInt(patience.Milliseconds(), 10), "KEYS"}
	if _, err := m.from.Do(append(args, keys...)...); err != nil {
		m.nodes.t.Fatalf("redistest: migrate %q from port %d to %d: %v", keys, m.from.port, m.to.port, err)
	}
}

// Finish moves the keys that are left, gives the slot to the new primary, and returns when all nodes know it.
func (m *Move) Finish() {
	n := m.nodes
	n.t.Helper()
	for m.Keys(100) > 0 {
	}
	// The new owner first: as long as the old one does not know it, it sends clients on with ASK.
	m.set(m.to, "NODE", m.to.id)
	m.set(m.from, "NODE", m.to.id)
	for _, node := range n.List() {
		if node.Primary && !node.Failing && node.Server != m.to && node.Server != m.from {
			m.set(node.Server, "NODE", m.to.id)
		}
	}
	if err := await(n.within, n.servers, func() error {
		if n.Owner(m.slot) != m.to {
			return fmt.Errorf("it is still its old owner's")
		}
		return n.trouble()
	}); err != nil {
		n.t.Fatalf("redistest: move slot %d to port %d: %v", m.slot, m.to.port, err)
	}
}

func (m *Move) set(on *Server, what, id string) {
	m.nodes.t.Helper()
	if _, err := on.text("CLUSTER", "SETSLOT", strconv.Itoa(m.slot), what, id); err != nil {
		m.nodes.t.Fatalf("redistest: move slot %d: %v", m.slot, err)
	}
}
