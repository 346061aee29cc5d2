package storetest

import (
	"context"
	"strings"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// slotKeyCases are about what leases are kept under, and about clearing it.
var slotKeyCases = []Case{
	{"hostile_subjects_of_slots", "two clients that share their slots, or one client that gets new ones by changing a byte that is not looked at",
		func(p *probe) {
			for _, policy := range []string{"p" + p.id, "p" + p.id + ":c1", "p" + p.id + ":b1"} {
				for _, s := range append(hostileSubjects(), "c1", "c1:", "c1:a", "b1:a", "a:c1") {
					k, again := key{policy, s}, key{policy, strings.Clone(s)}
					id, r := p.acquire(k, 1, at(0))
					p.admitted("subject "+quote(s)+" under a policy of its own", r, 0)
					_, r = p.acquire(again, 1, at(0))
					p.noSlot("the same again", r)
					if strings.HasSuffix(policy, ":c1") {
						p.release(again, 1, at(0), id)
						p.left("released", k, 1, 1, at(0))
					}
				}
			}
		}},
	{"BR048_slots_of_two_policies_of_one_subject", "two limits of one client feed each other",
		func(p *probe) {
			reads, writes, other := p.keyOf("reads", "alice"), p.keyOf("writes", "alice"), p.keyOf("reads", "bob")
			ids := p.hold(reads, 2, 2, at(0))
			p.left("another policy", writes, 2, 2, at(0))
			p.left("another subject", other, 2, 2, at(0))
			p.hold(writes, 2, 1, at(0))
			p.release(reads, 2, at(0), ids...)
			p.left("another policy", writes, 2, 1, at(0))
			p.left("its own", reads, 2, 2, at(0))
		}},
	{"slots_are_no_bucket_and_no_window", "a limiter that changes its kind reads leases as tokens, or the other way round",
		func(p *probe) {
			k := p.key("limit")
			p.admitted("bucket", p.take(k, perSecond(1, 10), 9, at(0)), 1)
			p.admitted("window", p.take(k, fixed(10, time.Minute), 3, at(0)), 7)
			ids := p.hold(k, 3, 3, at(0))
			p.full("slots", k, 3, at(0))
			r := p.entry(at(0), k.claim(perSecond(1, 10), 1), k.claim(fixed(10, time.Minute), 1), k.slot(4, newLease()))
			p.admitted("bucket again", r[0], 0)
			p.admitted("window again", r[1], 6)
			p.admitted("slots again", r[2], 0)
			p.settle(k, perSecond(1, 10), -1, at(0))
			p.release(k, 3, at(0), ids[0])
			p.admitted("bucket, after a release", p.take(k, perSecond(1, 10), 0, at(0)), 1)
			p.left("slots, after a settlement", k, 4, 1, at(0))
		}},
	{"key_names_of_slots", "an operator who looks a client up must find it, and a log must not show it",
		func(p *probe) {
			namer, ok := p.store().(driver.KeyNamer)
			if !ok {
				return
			}
			name := namer.KeyName("tenant", "alice-secret", driver.NewSlots(5))
			switch {
			case name == "" || strings.Contains(name, "alice"):
				p.errorf("key name %q: empty, or it tells the subject", name)
			case namer.KeyName("tenant", "alice-secret", driver.NewSlots(9)) != name:
				p.errorf("the key changes with the number of slots")
			case namer.KeyName("tenant", "bob", driver.NewSlots(5)) == name, namer.KeyName("user", "alice-secret", driver.NewSlots(5)) == name:
				p.errorf("another subject or policy has the same key")
			case namer.KeyName("tenant", "alice-secret", perSecond(1, 5)) == name, namer.KeyName("tenant", "alice-secret", fixed(5, time.Minute)) == name:
				p.errorf("a bucket or a window has the same key")
			}
		}},
	{"reset_of_slots", "an operator frees a key whose leases hang, and they go on counting; or those who hold them free the slots of the next",
		func(p *probe) {
			p.resetting(func(reset func(key)) {
				k := p.key("slots")
				reset(k) // of a key that does not exist
				ids := p.hold(k, 3, 3, at(0))
				p.full("all held", k, 3, at(0))
				reset(k)
				p.left("after a reset", k, 3, 3, at(0))
				for i, id := range ids {
					if p.renew(k, 3, id, leaseTime, at(0)) {
						p.errorf("lease %d was renewed after the reset", i+1)
					}
				}
				fresh := p.hold(k, 3, 3, at(0))
				p.release(k, 3, at(0), ids...)
				p.full("after releases of leases from before the reset", k, 3, at(0))
				p.release(k, 3, at(0), fresh[0])
				p.left("one of the new ones released", k, 3, 1, at(0))
				reset(k)
				reset(k)
				p.left("after two resets", k, 3, 3, at(0))
			})
		}},
	{"reset_of_rates", "an operator clears a client that is locked out by mistake, and it stays locked out",
		func(p *probe) {
			p.resetting(func(reset func(key)) {
				for _, rule := range []driver.Rule{perDay(5), fixed(5, time.Hour), sliding(5, time.Hour), driver.NewWindow(driver.KindDaily, 5, 0), monthly(5, "Europe/Berlin")} {
					k := p.key(rule.String())
					p.admitted("all", p.take(k, rule, 5, at(0)), 0)
					p.settle(k, rule, 3, at(0))
					reset(k)
					p.admitted("all, after a reset", p.take(k, rule, 5, at(0)), 0)
					if r := p.take(k, rule, 1, at(0)); r.Allowed {
						p.errorf("%v: more than all: %s", rule, show(r))
					}
				}
				// Whatever the rule was: a policy that changed its kind may have state of each.
				k := p.key("all kinds")
				p.entry(at(0), k.claim(perDay(5), 4), k.claim(fixed(5, time.Hour), 4), k.slot(5, newLease()))
				reset(k)
				r := p.entry(at(0), k.claim(perDay(5), 5), k.claim(fixed(5, time.Hour), 5), k.free(5))
				p.admitted("bucket", r[0], 0)
				p.admitted("window", r[1], 0)
				p.admitted("slots", r[2], 5)
			})
		}},
	{"a_reset_touches_its_key_only", "an operator clears one client, and others with it",
		func(p *probe) {
			p.resetting(func(reset func(key)) {
				k, others := p.keyOf("a", "alice"), []key{p.keyOf("b", "alice"), p.keyOf("a", "bob"), p.keyOf("", "alice"), p.keyOf("a", "")}
				held := map[key]driver.ID{}
				for _, o := range append(others, k) {
					held[o] = newLease()
					p.entry(at(0), o.claim(perDay(5), 2), o.claim(fixed(5, time.Hour), 2), o.slot(5, held[o]))
				}
				reset(k)
				for _, o := range others {
					r := p.entry(at(0), o.claim(perDay(5), 0), o.claim(fixed(5, time.Hour), 0), o.free(5))
					p.admitted("bucket", r[0], 3)
					p.admitted("window", r[1], 3)
					p.admitted("slots", r[2], 4)
					if !p.renew(o, 5, held[o], leaseTime, at(0)) {
						p.errorf("the lease of another key is lost")
					}
				}
				p.left("its own", k, 5, 5, at(0))
			})
		}},
}

// resetting runs cases about clearing a key, if the store can.
func (p *probe) resetting(run func(reset func(key))) {
	inspector, ok := p.store().(driver.Inspector)
	if !ok {
		return
	}
	run(func(k key) {
		if err := inspector.Reset(context.Background(), k.policy, k.subject); err != nil {
			p.fatalf("Reset: %v", err)
		}
	})
}
