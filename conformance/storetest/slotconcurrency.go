package storetest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// slotConcurrencyCases run many goroutines at once, on the store's own clock.
var slotConcurrencyCases = []Case{
	{"BR040_exactly_the_number_of_slots_passes", "check first, take later: of many requests at once more than the limit pass",
		func(p *probe) {
			handles := p.handles(4)
			for range 25 {
				k := p.keyOf("slots", unique())
				ids := make([]driver.ID, 250)
				got := p.atOnce(len(ids), handles, func(i int) []driver.Claim {
					ids[i] = newLease()
					return []driver.Claim{k.slot(25, ids[i])}
				})
				if got != 25 {
					p.errorf("%d of %d admitted at a limit of 25", got, len(ids))
				}
				p.left("afterwards", k, 30, 5, time.Time{})
				var changes []driver.Change
				for _, id := range ids {
					changes = append(changes, k.released(25, id)) // also those that were refused
				}
				p.apply(time.Time{}, changes...)
				p.left("all released", k, 30, 30, time.Time{})
			}
		}},
	{"rate_and_slots_at_once", "two limits of one client, taken in either order: a request that pays half, or two that wait for each other",
		func(p *probe) {
			handles := p.handles(4)
			for round := range 20 {
				a, k := p.keyOf("rate", unique()), p.key("slots")
				k.subject = a.subject
				rate, slots := 25, 40
				if round%2 == 0 {
					rate, slots = slots, rate
				}
				got := p.atOnce(100, handles, func(i int) []driver.Claim {
					claims := []driver.Claim{a.claim(perDay(rate), 1), k.slot(slots, newLease())}
					if i%2 == 0 {
						claims[0], claims[1] = claims[1], claims[0]
					}
					return claims
				})
				if got != 25 {
					p.errorf("%d of 100 admitted at a rate of %d and %d slots", got, rate, slots)
				}
				p.admitted("the rate", p.entry(time.Time{}, a.claim(perDay(rate), 0))[0], rate-25)
				p.left("the slots", k, slots, slots-25, time.Time{})
			}
		}},
	{"acquired_and_released_at_once", "a release that runs into an acquire and is lost, or frees a slot twice",
		func(p *probe) {
			const n = 3
			handles, k := p.handles(4), p.key("slots")
			var inside, most, admitted atomic.Int64
			p.workers(handles, 8, func(store driver.Store, _ int) error {
				for range 60 {
					batch := []driver.Entry{{Claims: []driver.Claim{k.slot(n, newLease())}}}
					if err := store.Decide(context.Background(), time.Time{}, batch); err != nil {
						return err
					}
					c := &batch[0].Claims[0]
					if !c.Result.Allowed {
						continue
					}
					admitted.Add(1)
					now := inside.Add(1)
					for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
						continue
					}
					inside.Add(-1) // before the release: nobody may come in while this is still inside
					for range 2 {
						if err := store.Apply(context.Background(), time.Time{}, []driver.Change{k.released(n, c.Lease)}); err != nil {
							return err
						}
					}
				}
				return nil
			})
			if most.Load() > n || admitted.Load() == 0 {
				p.errorf("%d inside at once at a limit of %d, %d admitted", most.Load(), n, admitted.Load())
			}
			p.left("all released", k, n, n, time.Time{})
		}},
	{"released_at_once", "of releases that run into each other one is lost, and with it a slot for ever",
		func(p *probe) {
			const workers, each = 8, 25
			handles, k := p.handles(4), p.key("slots")
			ids := p.hold(k, workers*each, workers*each, time.Time{})
			p.workers(handles, workers, func(store driver.Store, i int) error {
				for _, id := range ids[i*each : (i+1)*each] {
					if err := store.Apply(context.Background(), time.Time{}, []driver.Change{k.released(workers*each, id)}); err != nil {
						return err
					}
				}
				return nil
			})
			p.left("all released", k, workers*each, workers*each, time.Time{})
		}},
	{"BR127_released_twice_at_once", "two goroutines that release one lease, and free two slots",
		func(p *probe) {
			handles, k := p.handles(2), p.key("slots")
			for range 20 {
				ids := p.hold(k, 4, 4, time.Time{})
				p.workers(handles, 2, func(store driver.Store, _ int) error {
					for range 3 {
						if err := store.Apply(context.Background(), time.Time{}, []driver.Change{k.released(4, ids[0])}); err != nil {
							return err
						}
					}
					return nil
				})
				id, r := p.acquire(k, 4, time.Time{})
				p.admitted("the slot released by two", r, 0)
				p.full("and one more", k, 4, time.Time{})
				p.release(k, 4, time.Time{}, append(ids, id)...)
			}
		}},
}

// workers runs n goroutines that start together, spread over the handles, and fails the case if one of them does.
func (p *probe) workers(handles []driver.Store, n int, work func(store driver.Store, i int) error) {
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	barrier := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-barrier
			if err := work(handles[i%len(handles)], i); err != nil {
				failed.Store(&err)
			}
		})
	}
	close(barrier)
	wg.Wait()
	if err := failed.Load(); err != nil {
		p.fatalf("a call failed: %v", *err)
	}
}
