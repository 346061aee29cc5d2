package faulttest

import (
	"sync"
	"time"

	"github.com/headgate-go/headgate/conformance/redistest"
)

// bystander is a server that nothing is done to, asked all the time. What keeps it from answering is the machine, which may
// be shared with others: a case that counts requests that nobody decided leaves out those of such moments.
type bystander struct {
	mu     sync.Mutex
	stalls []stall
}

type stall struct{ from, to time.Time }

const (
	// stalled is how long the bystander takes to answer where the machine stands still. It is a fraction of the deadline of the
	// decisions that are counted, which take several turns where the bystander takes one.
	stalled = roomy / 5
	// aftermath is how long what piled up meanwhile may be felt: breakers that a stall opened stay open for two seconds.
	aftermath = 3 * time.Second
)

// bystander starts one, which watches the machine until the end of the case.
func (s *scene) bystander() *bystander {
	b := &bystander{}
	server := redistest.Start(s.tb, redistest.Single)
	end, ended := make(chan struct{}), make(chan struct{})
	s.tb.Cleanup(func() { close(end); <-ended })
	go func() {
		defer close(ended)
		ticker := time.NewTicker(beat)
		defer ticker.Stop()
		for last := time.Now(); ; {
			select {
			case <-end:
				return
			case <-ticker.C:
			}
			if _, err := server.Do("PING"); err != nil {
				s.failf("the bystander: %v", err)
				return
			}
			now := time.Now()
			b.note(last, now)
			last = now
		}
	}()
	return b
}

func (b *bystander) note(from, to time.Time) {
	if to.Sub(from) < stalled {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stalls = append(b.stalls, stall{from, to})
}

// since returns for how long the machine stood still from then on.
func (b *bystander) since(from time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	sum := time.Duration(0)
	for _, s := range b.stalls {
		if s.to.After(from) {
			sum += s.to.Sub(s.from)
		}
	}
	return sum
}

// undisturbed sums up the requests during which, and before which, the machine did not stand still, if there is anything to
// excuse. If they are few, the run proves nothing, and the case is run again.
func (sv *service) undisturbed(b *bystander, shots []shot) sum {
	if all, _ := byTenant(shots); all.open == 0 {
		return all
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var clear []shot
	for _, x := range shots {
		if !b.disturbed(x) {
			clear = append(clear, x)
		}
	}
	if len(clear) < len(shots) {
		sv.notef("%d of %d requests do not count: the machine stood still %d times", len(shots)-len(clear), len(shots), len(b.stalls))
	}
	if len(clear)*5 < len(shots) {
		sv.vain.Store(true)
		sv.failf("the machine stood still %d times, most of the time, so the case proves nothing", len(b.stalls))
	}
	counted, _ := byTenant(clear)
	return counted
}

func (b *bystander) disturbed(x shot) bool {
	for _, s := range b.stalls {
		if x.back.After(s.from) && x.sent.Before(s.to.Add(aftermath)) {
			return true
		}
	}
	return false
}
