package redisbench

import (
	"fmt"
	"sync"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/internal/bench/rounds"
)

// flood sends one kind of command without a client in between, to learn what the server alone spends.
type flood struct {
	name    string
	scripts []string
	depth   int // commands sent at once, on each of two connections
	worth   int // decisions of a command
	count   int // of different commands, which together touch every key
	command func(i int) []string
	before  func(i int) []string // if not nil, what is sent for each command once, at first; it is not measured
	undo    func(i int) []string // if not nil, what is sent for each command after a pass over all keys; it is not measured
	part    int                  // makes one decision of so many that a suite asks for, where commands take their time; 0 for all
}

// floodConnections keep the server busy while a client makes the next commands, as two senders of a store do.
const floodConnections = 2

// run measures a number of decisions, after a pass over all keys.
func (f flood) run(m meter, decisions int) (rounds.Sample, error) {
	if err := m.reset(f.scripts...); err != nil {
		return nil, err
	}
	if f.before != nil {
		if err := (flood{name: f.name, command: f.before, count: f.count, depth: 16}).send(m.server.Addr(), f.count); err != nil {
			return nil, err
		}
	}
	if _, err := f.pass(m, f.count); err != nil {
		return nil, err
	}
	commands := decisions / f.worth / max(f.part, 1)
	each := commands
	if f.undo != nil {
		each = f.count
	}
	var used spent
	for sent := 0; sent < commands; sent += each {
		more, err := f.pass(m, each)
		if err != nil {
			return nil, err
		}
		used = used.plus(more)
	}
	made := used.calls * float64(f.worth)
	return rounds.Sample{
		"execution": used.execution / made,
		"cpu":       used.cpu / made,
		"ceiling":   1e6 * made / used.cpu,
		"share":     float64(f.worth),
	}, nil
}

// pass sends so many commands and returns what they took, then undoes them.
func (f flood) pass(m meter, commands int) (used spent, err error) {
	before, err := m.read()
	if err != nil {
		return used, err
	}
	if err := f.send(m.server.Addr(), commands); err != nil {
		return used, err
	}
	after, err := m.read()
	if err != nil || f.undo == nil {
		return after.minus(before), err
	}
	f.command, f.depth = f.undo, 16
	return after.minus(before), f.send(m.server.Addr(), commands)
}

// send sends at least so many commands over all connections, whole pipelines only.
func (f flood) send(addr string, commands int) error {
	var all sync.WaitGroup
	errs := make([]error, floodConnections)
	for n := range errs {
		all.Go(func() { errs[n] = f.sendOver(addr, n, commands) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("redisbench: %s: %w", f.name, err)
		}
	}
	return nil
}

// sendOver sends the share of connection n: every pipeline whose number is n modulo the number of connections.
func (f flood) sendOver(addr string, n, commands int) error {
	conn, err := redistest.Dial(addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	pipeline := make([][]string, f.depth)
	for from := n * f.depth; from < commands; from += floodConnections * f.depth {
		for i := range pipeline {
			pipeline[i] = f.command((from + i) % f.count)
		}
		replies, err := conn.Pipe(pipeline...)
		if err != nil {
			return err
		}
		for _, r := range replies {
			if e, ok := r.(redistest.Error); ok {
				return e
			}
		}
	}
	return nil
}
