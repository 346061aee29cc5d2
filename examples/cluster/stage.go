package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// stage is where the demo is played.
type stage struct {
	cluster  *cluster
	services []*service
	tenants  []*tenant
	book     *ledger
	acts     acts
	events   chan string // lines between those of the table

	shown  map[string]account // what the table has told
	second int
}

func (s *stage) say(format string, args ...any) { s.events <- fmt.Sprintf(format, args...) }

// play lets the load run while slots move and a primary dies, and shows it second by second.
func (s *stage) play(ctx context.Context) (*result, error) {
	r := &result{tenants: s.tenants, dead: map[string]bool{}}
	// The first calls of a process find out about the cluster and connect, which takes them longer than a decision may.
	for _, service := range s.services {
		for _, t := range s.tenants {
			if err := await(ctx, 10*time.Second, func() error { _, err := service.free(ctx, t.name); return err }); err != nil {
				return nil, err
			}
		}
	}
	loaded, endLoad := context.WithCancel(ctx)
	defer endLoad()
	sent, played := make(chan struct{}), make(chan error, 1)
	began := time.Now()
	go func() {
		defer close(sent)
		newLoad(s.services, s.book).run(loaded, s.tenants)
	}()
	go func() { played <- s.script(ctx, r) }()

	s.head()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.slowest = max(r.slowest, s.row())
		case line := <-s.events:
			fmt.Println("          --- " + line)
		case err := <-played:
			endLoad()
			<-sent
			if err != nil {
				return nil, err
			}
			r.took = s.book.until().Sub(began)
			r.final, r.slowest = s.book.snapshot(), max(r.slowest, s.book.longest())
			r.held = s.held(ctx)
			return r, ctx.Err()
		}
	}
}

// script is what happens to the cluster, and notes what will have to be known.
func (s *stage) script(ctx context.Context, r *result) error {
	wait(ctx, s.acts.healthy)
	for _, t := range s.tenants {
		if t.kind != hot {
			continue
		}
		from, err := s.cluster.owner(ctx, t.slot)
		if err != nil {
			return err
		}
		to := (from + 1) % primaries
		s.say("slot %d, %s's, moves from primary %d to primary %d", t.slot, t.name, from+1, to+1)
		if err := s.cluster.move(ctx, t.slot, from, to, s.acts.half); err != nil {
			return err
		}
	}
	s.say("moved; all limits hold")
	wait(ctx, s.acts.moved)

	const victim = 0
	var hit []string
	for _, t := range s.tenants {
		owner, err := s.cluster.owner(ctx, t.slot)
		if err != nil {
			return err
		}
		if owner == victim {
			r.dead[t.name] = true
			hit = append(hit, t.name)
		}
	}
	r.before = s.book.snapshot()
	s.cluster.nodes[victim].kill()
	killed := time.Now()
	s.say("primary %d is killed, and with it the state of %s", victim+1, strings.Join(hit, ", "))
	heir, err := s.cluster.promoted(ctx, victim)
	if err != nil {
		return err
	}
	r.promoted = time.Now()
	s.say("%v later its replica on port %d has taken over", r.promoted.Sub(killed).Round(10*time.Millisecond), heir.port)
	wait(ctx, s.acts.back-s.acts.back/4)
	late := s.book.snapshot()
	wait(ctx, s.acts.back/4)
	r.late = map[string]count{}
	for name, a := range s.book.snapshot() {
		r.late[name] = a.less(late[name].count)
	}
	return nil
}

// held returns the tenants whose slots are not all free soon after the load has ended.
func (s *stage) held(ctx context.Context) (list []string) {
	for _, t := range s.tenants {
		if err := await(ctx, 12*time.Second, func() error {
			free, err := s.services[0].free(ctx, t.name)
			if err == nil && free < slots {
				err = fmt.Errorf("%s: %d of %d slots are free", t.name, free, slots)
			}
			return err
		}); err != nil {
			list = append(list, err.Error())
		}
	}
	return list
}

// head writes the head of the table.
func (s *stage) head() {
	line := " second"
	for _, t := range s.tenants {
		if t.kind != modest {
			line += fmt.Sprintf(" %10s", t.name)
		}
	}
	fmt.Printf("%*s\n", len(line), "let in by their limits, a second")
	fmt.Println(line + "   modest   refused   failed open   errors   slowest")
}

// row writes what became of the requests of a second, and returns the slowest answer.
func (s *stage) row() time.Duration {
	now, slowest := s.book.snapshot(), s.book.longest()
	s.second++
	line := fmt.Sprintf("%7d", s.second)
	var rest, all count
	for _, t := range s.tenants {
		c := now[t.name].count.less(s.shown[t.name].count)
		all.add(c)
		if t.kind == modest {
			rest.add(c)
		} else {
			line += fmt.Sprintf(" %10d", c.allowed)
		}
	}
	fmt.Printf("%s %8d %9d %13d %8d %9s\n", line, rest.allowed, all.refused, all.open, all.errors, slowest.Round(time.Millisecond))
	s.shown = now
	return slowest
}
