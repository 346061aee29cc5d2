package redistest

import (
	"fmt"
	"strings"
	"time"
)

// poll asks until ok is true, and says whether it was before patience ran out.
func poll(ok func() bool) bool { return pollFor(patience, 3*time.Millisecond, ok) }

func pollFor(within, every time.Duration, ok func() bool) bool {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for end := time.Now().Add(within); ; <-ticker.C {
		if ok() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// await asks several servers until nothing is missing. Its error tells what still was, and the ends of their logs.
func await(within time.Duration, servers []*Server, missing func() error) error {
	var err error
	// Each question is a few commands to each server, and what is waited for takes them a second: no need to ask often.
	if pollFor(within, 20*time.Millisecond, func() bool { err = missing(); return err == nil }) {
		return nil
	}
	return fmt.Errorf("after %v: %w\n%s", within, err, tails(servers))
}

// tails returns the ends of the servers' logs.
func tails(servers []*Server) string {
	const lines = 12
	var b strings.Builder
	for _, s := range servers {
		s.life.Lock()
		proc, state := s.proc, "runs"
		switch {
		case proc.ended():
			state = "has ended"
		case s.paused:
			state = "is paused"
		}
		s.life.Unlock()
		log := strings.Split(proc.log.String(), "\n")
		fmt.Fprintf(&b, "the server on port %d, process %d, %s; the end of its log:\n\t%s\n", s.port, proc.pid(), state,
			strings.Join(log[max(0, len(log)-lines):], "\n\t"))
	}
	return b.String()
}

// running returns those servers that can be asked.
func running(servers []*Server) []*Server {
	var list []*Server
	for _, s := range servers {
		s.life.Lock()
		if !s.proc.ended() && !s.paused {
			list = append(list, s)
		}
		s.life.Unlock()
	}
	return list
}
