package storetest

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// batchCases are about many requests in one call.
var batchCases = []Case{
	{"entries_on_one_key_see_each_other", "requests packed into one call that all read the same state are all admitted",
		func(p *probe) {
			k, rule := p.key("bucket"), perSecond(1, 5)
			batch := make([]driver.Entry, 12)
			for i := range batch {
				batch[i].Claims = []driver.Claim{k.claim(rule, 1)}
			}
			for i, e := range p.decide(at(0), batch...) {
				if i < 5 {
					p.admitted("in order", e.Claims[0].Result, 4-i)
				} else {
					p.refused("in order", e.Claims[0].Result, 0, time.Second)
				}
			}
		}},
	{"entries_with_other_costs_and_rules", "a pack is not a group of equal requests",
		func(p *probe) {
			k := p.key("bucket")
			e := p.decide(at(0),
				driver.Entry{Claims: []driver.Claim{k.claim(perSecond(1, 10), 7)}},
				driver.Entry{Claims: []driver.Claim{k.claim(perSecond(1, 10), 4)}},
				driver.Entry{Claims: []driver.Claim{k.claim(perSecond(1, 10), 3)}},
				driver.Entry{Claims: []driver.Claim{k.claim(perSecond(2, 20), 1)}},
				driver.Entry{Claims: []driver.Claim{k.claim(perSecond(1, 10), 0)}})
			p.admitted("7 of 10", e[0].Claims[0].Result, 3)
			p.refused("4 of 3", e[1].Claims[0].Result, 3, time.Second)
			p.admitted("3 of 3", e[2].Claims[0].Result, 0)
			p.refused("1 of 0", e[3].Claims[0].Result, 0, 500*time.Millisecond)
			p.admitted("read", e[4].Claims[0].Result, 0)
		}},
	{"several_keys_in_one_batch", "answers that reach the wrong request",
		func(p *probe) {
			var batch []driver.Entry
			for i := range 100 {
				k := p.keyOf("bucket", string(rune('a'+i%50)))
				batch = append(batch, driver.Entry{Claims: []driver.Claim{k.claim(perSecond(1, 10+i%50), 3)}})
			}
			for i, e := range p.decide(at(0), batch...) {
				p.admitted("request "+string(rune('a'+i%50)), e.Claims[0].Result, 10+i%50-3*(1+i/50))
			}
		}},
	{"refused_entries_leave_the_next_alone", "a refused request of a pack that keeps what it looked at",
		func(p *probe) {
			a, b, rule := p.key("a"), p.key("b"), perSecond(1, 3)
			p.take(b, rule, 3, at(0))
			e := p.decide(at(0),
				driver.Entry{Claims: []driver.Claim{a.claim(rule, 3), b.claim(rule, 1)}},
				driver.Entry{Claims: []driver.Claim{a.claim(rule, 2)}},
				driver.Entry{Claims: []driver.Claim{b.claim(rule, 1), a.claim(rule, 1)}},
				driver.Entry{Claims: []driver.Claim{a.claim(rule, 1)}})
			p.admitted("fits, not taken", e[0].Claims[0].Result, 3)
			p.admitted("2 of 3", e[1].Claims[0].Result, 1)
			p.admitted("fits, not taken", e[2].Claims[1].Result, 1)
			p.admitted("1 of 1", e[3].Claims[0].Result, 0)
		}},
	{"answers_overwrite_what_was_there", "a batch that is used again shows the answers of the last time",
		func(p *probe) {
			k, rule := p.key("bucket"), perSecond(1, 1)
			junk := driver.Result{Allowed: true, Reason: driver.ReasonMemory, Remaining: 77, RetryAfter: time.Hour,
				ResetAfter: time.Hour, Fraction: driver.Fraction{Num: 5, Den: 6}, Receipt: driver.Receipt{Start: 1, Unit: 2}}
			for i := range 2 {
				c := k.claim(rule, 1)
				c.Result = junk
				e := p.decide(at(0), driver.Entry{Claims: []driver.Claim{c}, Err: errors.New("of the last time")})[0]
				want := driver.Result{Allowed: true, ResetAfter: time.Second, Fraction: driver.Fraction{Den: 1_000_000}}
				if i == 1 {
					want.Allowed, want.Reason, want.RetryAfter = false, driver.ReasonLimit, time.Second
				}
				if e.Err != nil || e.Claims[0].Result != want {
					p.errorf("got %+v, Err %v; want %+v", e.Claims[0].Result, e.Err, want)
				}
			}
		}},
	{"empty_batches", "a call about nothing must not fail",
		func(p *probe) {
			p.decide(at(0))
			if e := p.decide(at(0), driver.Entry{}, driver.Entry{Claims: []driver.Claim{}}); e[0].Err != nil || e[1].Err != nil {
				p.errorf("entries without claims: Err %v, %v", e[0].Err, e[1].Err)
			}
			p.apply(at(0))
			if err := p.store().Decide(context.Background(), time.Time{}, nil); err != nil {
				p.errorf("nil batch: %v", err)
			}
		}},
}

// keyCases are about what state is kept under.
var keyCases = []Case{
	{"hostile_subjects", "two clients that share a counter, or one client that gets a new one by changing a byte that is not looked at",
		func(p *probe) {
			rule := perSecond(1, 1)
			// The policy is this case's own, so the subjects may be as they are: also the empty one.
			for _, policy := range []string{"p" + p.id, "p" + p.id + ":b1", "p" + p.id + ":b"} {
				for _, s := range hostileSubjects() {
					k := key{policy, s}
					p.admitted("subject "+quote(s)+" under a policy of its own", p.take(k, rule, 1, at(0)), 0)
					p.refused("the same again", p.take(key{policy, strings.Clone(s)}, rule, 1, at(0)), 0, time.Second)
				}
			}
		}},
	{"joined_names_do_not_meet", "policy and subject joined with a separator are one key for two limiters",
		func(p *probe) {
			rule := perSecond(1, 1)
			for _, k := range []key{
				{p.id + "a", "b:c"}, {p.id + "a:b", "c"}, {p.id + "a:b:c", ""}, {p.id, "a:b:c"}, {p.id + "ab", "c"}, {p.id + "a", "bc"},
				{p.id + "a\x00b", "c"}, {p.id + "a", "b\x00c"}, {p.id + "c", "a"}, {p.id + "a", "c"},
			} {
				p.admitted(quote(k.policy)+" and "+quote(k.subject), p.take(k, rule, 1, at(0)), 0)
			}
		}},
	{"BR048_two_policies_of_one_subject", "a limit by the second and one by the hour on the same client feed each other",
		func(p *probe) {
			sec, hour := p.key("sec"), p.key("hour")
			for i := range 10 {
				now := at(time.Duration(i) * 300 * time.Millisecond)
				p.admitted("sec", p.take(sec, perSecond(10, 10), 1, now), 9)
				p.admitted("hour", p.take(hour, driver.NewBucket(30, time.Hour), 1, now), 29-i)
			}
			r := p.entry(at(3*time.Second), sec.claim(perSecond(10, 10), 10), hour.claim(driver.NewBucket(30, time.Hour), 1))
			p.admitted("sec, together", r[0], 0)
			p.admitted("hour, together", r[1], 19)
		}},
	{"subjects_have_states_of_their_own", "one client empties the bucket of another",
		func(p *probe) {
			rule := perSecond(1, 2)
			for _, s := range []string{"alice", "bob", "carol"} {
				k := p.keyOf("bucket", s)
				p.admitted(s, p.take(k, rule, 2, at(0)), 0)
				p.refused(s, p.take(k, rule, 1, at(0)), 0, time.Second)
			}
		}},
	{"key_names", "an operator who looks a client up must find it, and a log must not show it",
		func(p *probe) {
			namer, ok := p.store().(driver.KeyNamer)
			if !ok {
				return
			}
			rule := perSecond(1, 2)
			name := namer.KeyName("tenant", "alice-secret", rule)
			switch {
			case name == "" || strings.Contains(name, "alice"):
				p.errorf("key name %q: empty, or it tells the subject", name)
			case namer.KeyName("tenant", "alice-secret", perSecond(9, 99)) != name:
				p.errorf("the key changes with the limit")
			case namer.KeyName("tenant", "bob", rule) == name, namer.KeyName("user", "alice-secret", rule) == name:
				p.errorf("another subject or policy has the same key")
			}
		}},
}

// hostileSubjects differ in what somebody may cut off, fold, or take for syntax.
func hostileSubjects() []string {
	long := strings.Repeat("x", 64<<10)
	return []string{
		"", " ", "\x00", "\x00\x00", "a", "a\x00", "a\x00b", "A", "a ", " a", "a\n", "a\r\n", "a:b", "a:b:c", "a:", ":a", "{a}", "{}", "}{",
		"{", "}", "{a}{b}", "\xff", "\xfe", "\xff\xfe", "\ufffd", "a\xc3", "\u00e4", "a\u0308", "%", "%d", "%s", "*", "?", "[a]", "a]",
		"'", "\"", "\\", "$1", "user:1", "user:10", "user:1 0", long + "a", long + "b", long, long[1:] + "a",
		string(bytes.Repeat([]byte{0}, 4096)), string(bytes.Repeat([]byte{0}, 4097)),
	}
}

func quote(s string) string {
	if len(s) > 40 {
		return strconv.Itoa(len(s)) + " bytes"
	}
	return strconv.Quote(s)
}
