package faulttest

import (
	"net/http"
	"sync"
	"time"
)

// shot is a request and what became of it.
type shot struct {
	tenant     string
	sent, back time.Time
	decided    bool // by the store; otherwise it passed because the store failed
	passed     bool
}

// traffic is requests at a rate, whether or not the ones before are answered.
type traffic struct {
	sv      *service
	every   time.Duration
	next    func() string // the tenant
	end     func()
	ended   chan struct{}
	stopped chan struct{}

	mu    sync.Mutex
	shots []shot
}

// behind is for how long ticks that were missed are made up for. What a machine that stood still for seconds misses would be
// another load than the case's.
const behind = 100 * time.Millisecond

// traffic starts to send requests, until stop is called.
func (sv *service) traffic(perSecond int, next func() string) *traffic {
	t := &traffic{sv: sv, every: time.Second / time.Duration(perSecond), next: next, ended: make(chan struct{}), stopped: make(chan struct{})}
	t.end = sync.OnceFunc(func() {
		close(t.ended)
		<-t.stopped
	})
	sv.tb.Cleanup(t.end) // where a case ends early
	go t.run()
	return t
}

func (t *traffic) run() {
	defer close(t.stopped)
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	var running sync.WaitGroup
	defer running.Wait()
	for due := time.Now(); ; {
		select {
		case <-t.ended:
			return
		case <-ticker.C:
		}
		now := time.Now()
		if first := now.Add(-behind); due.Before(first) {
			due = first
		}
		for ; due.Before(now); due = due.Add(t.every) {
			tenant := t.next()
			running.Go(func() { t.shoot(tenant) })
		}
	}
}

func (t *traffic) shoot(tenant string) {
	s := shot{tenant: tenant, sent: time.Now()}
	r := t.sv.get(tenant)
	s.back, s.decided, s.passed = time.Now(), r.decided(), r.status == http.StatusOK
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shots = append(t.shots, s)
}

// stop ends the traffic, and returns all of it.
func (t *traffic) stop() []shot {
	t.end()
	return t.shots
}

// sum is what happened to some requests.
type sum struct{ asked, admitted, refused, open int }

func (s *sum) add(x shot) {
	s.asked++
	switch {
	case !x.decided:
		s.open++
	case x.passed:
		s.admitted++
	default:
		s.refused++
	}
}

// byTenant adds requests up.
func byTenant(shots []shot) (all sum, each map[string]*sum) {
	each = map[string]*sum{}
	for _, x := range shots {
		one := each[x.tenant]
		if one == nil {
			one = &sum{}
			each[x.tenant] = one
		}
		one.add(x)
		all.add(x)
	}
	return all, each
}

// wait lets the load go on for a while.
func wait(d time.Duration) { _, _ = until(d, func() bool { return false }) }
