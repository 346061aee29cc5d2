package storetest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// lifecycleCases are about the store as a thing that is made and closed.
var lifecycleCases = []Case{
	{"close", "a second Close that fails, or a closed store that goes on deciding as if nothing had happened",
		func(p *probe) {
			s, k := p.another(), p.key("bucket")
			p.take(k, perSecond(1, 5), 1, time.Time{})
			for i := range 3 {
				if err := s.Close(); err != nil {
					p.errorf("Close number %d: %v", i+1, err)
				}
			}
			err := s.Decide(context.Background(), time.Time{}, []driver.Entry{{Claims: []driver.Claim{k.claim(perSecond(1, 5), 1)}}})
			if driver.ClassOf(err) != driver.ClassClosed {
				p.errorf("Decide after Close: error %v of class %q, want class %q", err, driver.ClassOf(err), driver.ClassClosed)
			}
			err = s.Apply(context.Background(), time.Time{}, []driver.Change{{Kind: driver.Settle, Policy: k.policy, Subject: k.subject,
				Rule: perSecond(1, 5), Amount: 1}})
			if driver.ClassOf(err) != driver.ClassClosed {
				p.errorf("Apply after Close: error %v of class %q, want class %q", err, driver.ClassOf(err), driver.ClassClosed)
			}
		}},
	{"close_an_unused_store", "a store that was made and never asked must close as well",
		func(p *probe) {
			if err := p.another().Close(); err != nil {
				p.errorf("Close: %v", err)
			}
		}},
	{"close_while_in_use", "a store closed under its callers must answer or fail, not hang and not panic",
		func(p *probe) {
			s, k := p.another(), p.key("bucket")
			var closed atomic.Bool
			done := make(chan bool, 8)
			for range cap(done) {
				go func() {
					for {
						late := closed.Load()
						batch := []driver.Entry{{Claims: []driver.Claim{k.claim(perDay(5), 1)}}}
						err := s.Decide(context.Background(), time.Time{}, batch)
						if err != nil || late {
							done <- err != nil
							return
						}
					}
				}()
			}
			p.entry(time.Time{}, k.claim(perDay(5), 0))
			s.Close()
			closed.Store(true)
			for range cap(done) {
				select {
				case failed := <-done:
					if !failed {
						p.errorf("a decision that began after Close was made")
					}
				case <-time.After(20 * time.Second):
					p.fatalf("Decide hangs when the store is closed")
				}
			}
		}},
	{"canceled_context_is_not_a_refusal", "a client that left early must not look like one over its limit",
		func(p *probe) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			k := p.key("bucket")
			batch := []driver.Entry{{Claims: []driver.Claim{k.claim(perSecond(1, 5), 1)}}}
			if err := p.store().Decide(ctx, at(0), batch); err == nil && (batch[0].Err != nil || !batch[0].Claims[0].Result.Allowed) {
				p.errorf("no error, and Err %v, %s", batch[0].Err, show(batch[0].Claims[0].Result))
			}
			// Whether it was taken is the store's affair; that the bucket still works is not.
			if r := p.take(k, perSecond(1, 5), 4, at(0)); !r.Allowed {
				p.errorf("afterwards: %s", show(r))
			}
		}},
	{"batch_belongs_to_the_caller", "a store that keeps a reference to a batch answers from, or writes to, somebody else's memory",
		func(p *probe) {
			rule := perSecond(1, 1)
			claims := []driver.Claim{p.keyOf("bucket", "a").claim(rule, 1)}
			batch := []driver.Entry{{Claims: claims}}
			for i, s := range []string{"a", "b", "c", "a", "b"} {
				claims[0] = p.keyOf("bucket", s).claim(rule, 1)
				if r := p.decide(at(0), batch...)[0].Claims[0].Result; r.Allowed != (i < 3) {
					p.errorf("%s, request %d: %s", s, i+1, show(r))
				}
				claims[0].Subject, claims[0].Policy, claims[0].Result = "junk", "junk", driver.Result{Remaining: -1}
			}
		}},
}
