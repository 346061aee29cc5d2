package redistest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Node is what one node of a cluster thinks of another, or of itself.
type Node struct {
	Server  *Server     // never nil in [Nodes.List]
	ID      string      // as in MYID; Restart does not change it
	Primary bool        // otherwise it is a replica
	Of      *Server     // the primary that it is a replica of; nil of a primary
	Slots   []SlotRange // in order; none of a replica
	Failing bool        // it is held for dead, or suspected to be

	bus int
}

// SlotRange is the slots from First to Last, both included: 0 to 16383 are all.
type SlotRange struct{ First, Last int }

func (v Node) owns(slot int) bool {
	return slices.ContainsFunc(v.Slots, func(r SlotRange) bool { return r.First <= slot && slot <= r.Last })
}

// String returns what nodes have to agree on.
func (v Node) String() string {
	if v.Primary {
		return fmt.Sprintf("%s is a primary with slots %v", v.ID[:8], v.Slots)
	}
	return fmt.Sprintf("%s is a replica of port %d", v.ID[:8], v.Of.port)
}

// view returns what a node says about the nodes that it knows (CLUSTER NODES). Some may have no Server: those that it only
// met have made-up IDs.
func (s *Server) view() ([]Node, error) {
	text, err := s.text("CLUSTER", "NODES")
	if err != nil {
		return nil, err
	}
	byID := map[string]*Server{}
	for _, other := range s.nodes.servers {
		byID[other.id] = other
	}
	var view []Node
	for line := range strings.Lines(text) {
		node, err := parseNode(line, byID)
		if err != nil {
			return nil, fmt.Errorf("CLUSTER NODES on port %d: %q: %w", s.port, line, err)
		}
		view = append(view, node)
	}
	return view, nil
}

// parseNode reads a line of CLUSTER NODES:
//
//	<id> <ip:port@bus> <flags> <id of the primary, or -> <ping> <pong> <epoch> <link> <slot> <slot-slot> ...
func parseNode(line string, byID map[string]*Server) (Node, error) {
	fields := strings.Fields(line)
	if len(fields) < 8 {
		return Node{}, errors.New("fewer than 8 fields")
	}
	flags := strings.Split(fields[2], ",")
	v := Node{
		Server: byID[fields[0]], ID: fields[0], Of: byID[fields[3]],
		Primary: slices.Contains(flags, "master"),
		Failing: slices.Contains(flags, "fail") || slices.Contains(flags, "fail?"),
	}
	_, bus, _ := strings.Cut(fields[1], "@")
	bus, _, _ = strings.Cut(bus, ",") // a host name may follow
	var err error
	if v.bus, err = strconv.Atoi(bus); err != nil {
		return Node{}, err
	}
	for _, field := range fields[8:] {
		if field[0] == '[' { // a slot on its way
			continue
		}
		first, last, isRange := strings.Cut(field, "-")
		if !isRange {
			last = first
		}
		a, err1 := strconv.Atoi(first)
		b, err2 := strconv.Atoi(last)
		if err := errors.Join(err1, err2); err != nil {
			return Node{}, err
		}
		v.Slots = append(v.Slots, SlotRange{a, b})
	}
	return v, nil
}

// trouble says what is not in order, as [Nodes.Await] has it.
func (n *Nodes) trouble() error {
	list := running(n.servers)
	if len(list) == 0 {
		return errors.New("no node is running")
	}
	var agreed []string
	for _, s := range list {
		info, err := s.text("CLUSTER", "INFO")
		if err != nil {
			return err
		}
		if state := infoField(info, "cluster_state"); state != "ok" {
			return fmt.Errorf("the node on port %d says cluster_state:%s", s.port, state)
		}
		view, err := s.view()
		if err != nil {
			return err
		}
		opinion, err := s.opinion(view, list)
		if err != nil {
			return err
		}
		if agreed == nil {
			agreed = opinion
		}
		if !slices.Equal(agreed, opinion) {
			return fmt.Errorf("the node on port %d says:\n\t%s\nand that on port %d:\n\t%s", list[0].port,
				strings.Join(agreed, "\n\t"), s.port, strings.Join(opinion, "\n\t"))
		}
	}
	return nil
}

// opinion returns what a node thinks of those in the list, which it must hold for alive, and says what is wrong with it
// or with the node itself.
func (s *Server) opinion(view []Node, list []*Server) ([]string, error) {
	// Clients ask for this; replicas of whose progress the node has not heard yet are not in it.
	slots, err := s.Do("CLUSTER", "SLOTS")
	if err != nil {
		return nil, err
	}
	told := fmt.Sprint(slots)
	bare := func(primary *Server) bool { // it has no slots, so that nobody is told of it
		return slices.ContainsFunc(view, func(v Node) bool { return v.Server == primary && len(v.Slots) == 0 })
	}
	for _, v := range view {
		if v.Primary && len(v.Slots) > 0 && !slices.Contains(list, v.Server) {
			return nil, fmt.Errorf("the node on port %d says that slots %v belong to %.8s, which does not run", s.port, v.Slots, v.ID)
		}
	}
	var texts []string
	for _, other := range list {
		at := slices.IndexFunc(view, func(v Node) bool { return v.Server == other })
		if at < 0 {
			return nil, fmt.Errorf("the node on port %d does not know that on port %d", s.port, other.port)
		}
		v := view[at]
		switch {
		case v.Failing:
			return nil, fmt.Errorf("the node on port %d holds that on port %d for dead", s.port, other.port)
		case !v.Primary && v.Of == nil:
			return nil, fmt.Errorf("the node on port %d does not know what that on port %d is", s.port, other.port)
		case !v.Primary && !bare(v.Of) && !strings.Contains(told, v.ID):
			return nil, fmt.Errorf("the node on port %d does not tell clients of the replica on port %d", s.port, other.port)
		case !v.Primary && other == s && slices.Contains(list, v.Of):
			if err := s.inSync(); err != nil {
				return nil, err
			}
		}
		texts = append(texts, v.String())
	}
	return texts, nil
}
