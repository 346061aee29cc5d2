package storetest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// concurrencyCases run many goroutines at once, on the store's own clock.
var concurrencyCases = []Case{
	{"BR040_exactly_the_limit_passes", "check first, take later: of many requests at once more than the limit pass",
		func(p *probe) {
			handles := p.handles(4)
			rule := perDay(25)
			for range 50 {
				k := p.keyOf("bucket", unique())
				got := p.atOnce(500, handles, func(int) []driver.Claim { return []driver.Claim{k.claim(rule, 1)} })
				if got != 25 {
					p.errorf("%d of 500 admitted at a limit of 25", got)
				}
				p.refused("afterwards", p.entry(time.Time{}, k.claim(rule, 26))[0], 0, 0)
			}
		}},
	{"two_limits_at_once", "two limits of one client, taken in either order: a request that pays half, or two that wait for each other",
		func(p *probe) { p.oppositeOrders(p.key("a"), p.key("b")) }},
	{"new_keys_at_once", "a key that is seen before it is complete",
		func(p *probe) {
			handles := p.handles(4)
			rule := perDay(3)
			var keys [40]key
			for i := range keys {
				keys[i] = p.keyOf("bucket", string(rune('a'+i)))
			}
			got := p.atOnce(len(keys)*10, handles, func(i int) []driver.Claim {
				return []driver.Claim{keys[i%len(keys)].claim(rule, 1)}
			})
			if got != 3*len(keys) {
				p.errorf("%d admitted for %d keys of 3", got, len(keys))
			}
		}},
	{"settled_at_once", "corrections that run into each other, or into decisions, and are lost",
		func(p *probe) {
			store, k, rule := p.store(), p.key("bucket"), perDay(1000)
			p.entry(time.Time{}, k.claim(rule, 500))
			var failed atomic.Pointer[error]
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for range 50 {
						changes := []driver.Change{{Kind: driver.Settle, Policy: k.policy, Subject: k.subject, Rule: rule, Amount: 2}}
						err := store.Apply(context.Background(), time.Time{}, changes)
						changes[0].Amount = -1
						if err == nil {
							err = store.Apply(context.Background(), time.Time{}, changes)
						}
						if err != nil {
							failed.Store(&err)
						}
					}
				})
			}
			wg.Wait()
			if err := failed.Load(); err != nil {
				p.fatalf("Apply: %v", *err)
			}
			p.admitted("500 - 8 x 50 x (2 - 1)", p.entry(time.Time{}, k.claim(rule, 0))[0], 100)
		}},
}

// oppositeOrders lets many requests take from a and b at once, half of them in the other order.
func (p *probe) oppositeOrders(a, b key) {
	handles := p.handles(4)
	for round := range 20 {
		x := key{a.policy, a.subject + string(rune('a'+round))}
		y := key{b.policy, b.subject + string(rune('a'+round))}
		got := p.atOnce(100, handles, func(i int) []driver.Claim {
			if i%2 == 0 {
				return []driver.Claim{x.claim(perDay(25), 1), y.claim(perDay(40), 1)}
			}
			return []driver.Claim{y.claim(perDay(40), 1), x.claim(perDay(25), 1)}
		})
		if got != 25 {
			p.errorf("%d of 100 admitted at limits of 25 and 40", got)
		}
		p.admitted("the wider limit", p.entry(time.Time{}, y.claim(perDay(40), 0))[0], 15)
	}
}

// atOnce decides n entries from as many goroutines that start together, spread over the handles, and counts the admitted.
func (p *probe) atOnce(n int, handles []driver.Store, claims func(i int) []driver.Claim) int {
	var admitted atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	barrier := make(chan struct{})
	for i := range n {
		store, batch := handles[i%len(handles)], []driver.Entry{{Claims: claims(i)}}
		wg.Go(func() {
			<-barrier
			if err := store.Decide(context.Background(), time.Time{}, batch); err != nil {
				failed.Store(&err)
				return
			}
			if batch[0].Err != nil {
				failed.Store(&batch[0].Err)
				return
			}
			for j := range batch[0].Claims {
				if !batch[0].Claims[j].Result.Allowed {
					return
				}
			}
			admitted.Add(1)
		})
	}
	close(barrier)
	wg.Wait()
	if err := failed.Load(); err != nil {
		p.fatalf("Decide: %v", *err)
	}
	return int(admitted.Load())
}
