package faulttest

import (
	"sync"
	"time"
)

// pulse measures how late goroutines run that have something to do: what a machine that is shared adds to every time that
// is measured on it.
type pulse struct {
	began time.Time
	mu    sync.Mutex
	late  []time.Duration // the worst of each second
}

const (
	beat = 10 * time.Millisecond
	// turns is about how often the goroutines of a request wait for their turn, from its client to the store and back.
	turns = 10
)

// start begins to measure, until the function it returns is called.
func (p *pulse) start() (stop func()) {
	p.began = time.Now()
	ended := make(chan struct{})
	go func() {
		ticker := time.NewTicker(beat)
		defer ticker.Stop()
		for last := time.Now(); ; {
			select {
			case <-ended:
				return
			case <-ticker.C:
				now := time.Now()
				p.note(now.Sub(last) - beat)
				last = now
			}
		}
	}()
	return func() { close(ended) }
}

func (p *pulse) second() int { return int(time.Since(p.began) / time.Second) }

func (p *pulse) note(late time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.second()
	for len(p.late) <= at {
		p.late = append(p.late, 0)
	}
	p.late[at] = max(p.late[at], late)
}

// allowance returns a function that tells by how much a time measured from now on may be longer than promised.
func (p *pulse) allowance() func() time.Duration {
	from := p.second()
	return func() time.Duration {
		p.mu.Lock()
		defer p.mu.Unlock()
		worst := time.Duration(0)
		for _, late := range p.late[min(from, len(p.late)):] {
			worst = max(worst, late)
		}
		return turns * worst
	}
}
