package faulttest

import (
	"net/http"
	"time"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
)

// fault is a row of the table: how the store gets into trouble and out of it.
type fault struct {
	name, why string
	classes   []driver.Class // of the failures; the first must be seen
	place     func(*scene) string
	hurt      func(*scene)
	heal      func(*scene)
	linger    time.Duration // how long after heal the store is not back yet
	wipes     bool          // the store loses its data
	leaks     bool          // also check that what the fault made pile up goes away
}

var faults = []fault{
	{name: "BR064_refused", why: "whoever fails open must say so, and must not wait for what refuses at once",
		classes: []driver.Class{driver.ClassOther, driver.ClassTimeout}, // clients dial more than once
		place:   (*scene).proxied, leaks: true,
		hurt: func(s *scene) { s.proxy.Refuse() },
		heal: func(s *scene) { s.proxy.Pass() }},
	{name: "BR064_accepted_and_silent", why: "failing open on refused connections does not help against a peer that accepts and says nothing: every request waits",
		classes: []driver.Class{driver.ClassTimeout}, place: (*scene).proxied, leaks: true,
		hurt: func(s *scene) { s.proxy.Silence() },
		heal: func(s *scene) { s.proxy.Drop(); s.proxy.Pass() }}, // what hung is gone, as when a process is replaced
	{name: "BR064_black_hole", why: "packets that are dropped give no error, neither to a read nor to a dial",
		classes: []driver.Class{driver.ClassTimeout}, place: (*scene).blackHole, leaks: true,
		hurt: func(s *scene) { s.must(s.line.die()) },
		heal: func(s *scene) { s.must(s.line.live()) }},
	{name: "BR064_late", why: "answers that come after the deadline were executed, and must be neither waited for nor repeated",
		classes: []driver.Class{driver.ClassTimeout}, place: (*scene).proxied, leaks: true,
		hurt: func(s *scene) { s.proxy.Delay(late) },
		heal: func(s *scene) { s.proxy.Pass() }, linger: late}, // answers under way still come in order
	{name: "dropped", why: "connections that break while a command is under way leave its fate unknown",
		classes: []driver.Class{driver.ClassOther, driver.ClassTimeout}, place: (*scene).proxied,
		hurt: func(s *scene) { s.proxy.Drop() },
		heal: func(s *scene) { s.proxy.Pass() }},
	{name: "cut_in_the_middle_of_a_reply", why: "half a reply is no reply",
		classes: []driver.Class{driver.ClassOther, driver.ClassTimeout}, place: (*scene).proxied,
		hurt: func(s *scene) { s.proxy.Cut(7) },
		heal: func(s *scene) { s.proxy.Pass() }},
	{name: "killed_and_restarted", why: "a server that crashed and comes back empty must be used again without a restart of ours",
		classes: []driver.Class{driver.ClassOther, driver.ClassTimeout}, place: (*scene).direct, wipes: true,
		hurt: func(s *scene) { s.server.Stop() },
		heal: func(s *scene) { s.server.Restart() }},
	{name: "client_pause", why: "a server that postpones commands, as during a failover, is as silent as a dead one",
		classes: []driver.Class{driver.ClassTimeout}, place: (*scene).direct,
		hurt: func(s *scene) { s.do("CLIENT", "PAUSE", "3000", "ALL") },
		heal: func(*scene) {}, linger: 3 * time.Second}, // UNPAUSE would be postponed, too
	{name: "out_of_memory", why: "a full server without eviction refuses writes, and must not be taken for one that refuses the client",
		classes: []driver.Class{driver.ClassOOM}, place: (*scene).direct,
		hurt: func(s *scene) {
			s.do("CONFIG", "SET", "maxmemory-policy", "noeviction")
			s.do("CONFIG", "SET", "maxmemory", "1")
		},
		heal: func(s *scene) { s.do("CONFIG", "SET", "maxmemory", "0") }},
	{name: "no_permission", why: "a user without EVAL is an operator's mistake, which must be told and must not stop the service",
		classes: []driver.Class{driver.ClassAuth}, place: (*scene).direct,
		hurt: func(s *scene) { s.do("ACL", "SETUSER", "default", "-eval", "-evalsha") },
		heal: func(s *scene) { s.do("ACL", "SETUSER", "default", "+eval", "+evalsha") }},
	{name: "no_password", why: "credentials that were changed on the server end every connection; the service must live on",
		classes: []driver.Class{driver.ClassAuth, driver.ClassOther, driver.ClassTimeout}, place: (*scene).direct,
		hurt: func(s *scene) {
			s.do("CONFIG", "SET", "requirepass", "changed")
			s.do("CLIENT", "KILL", "TYPE", "normal")
		},
		heal: func(s *scene) { s.do("CONFIG", "SET", "requirepass", "") }},
	{name: "BR057_read_only", why: "after a failover connections still lead to the old primary, which refuses writes until somebody restarts the service",
		classes: []driver.Class{driver.ClassReadOnly, driver.ClassLoading, driver.ClassOther, driver.ClassTimeout},
		place:   (*scene).direct, wipes: true,
		hurt: func(s *scene) {
			primary := redistest.Start(s.tb, redistest.Single)
			host, port := splitAddr(primary.Addr())
			s.do("REPLICAOF", host, port)
		},
		heal: func(s *scene) { s.do("REPLICAOF", "NO", "ONE") }},
}

// late is how long the late replies take.
const late = 3 * time.Second

func (s *scene) must(err error) {
	if err != nil {
		s.fatalf("the kit: %v", err)
	}
}

func (f fault) asCase() Case {
	return Case{Name: f.name, Why: f.why, Waits: f.leaks, run: f.run}
}

// Of the requests during a fault, as many and as fast as in BR-064.
const (
	faultRequests = 200
	faultRate     = 50
)

func (f fault) run(s *scene) {
	c := gate.Config{Limiters: []gate.Limiter{tenants(plenty)}}
	if f.classes[0] != driver.ClassTimeout {
		c.StoreTimeout = answered / 2 // the failure comes at once; a stalled machine is not to look like one
	}
	sv := s.serve(f.place(s), c)
	sv.settled("before the fault", "a", patience)
	sv.load(20, 100, "a")
	var start rest
	if f.leaks {
		sv.warmUp()
		start = sv.atRest()
		sv.settled("before the fault", "a", patience)
	}
	n, requests := sv.watch.count(), faultRequests
	if !f.leaks {
		requests = faultRequests / 4
	}
	f.hurt(s)
	replies := sv.load(requests, faultRate, "a")
	for _, r := range replies {
		if r.err == nil && (r.decided() || r.status != http.StatusOK) {
			sv.failf("during the fault: status %d, %v", r.status, r.header)
		}
	}
	sv.during(n, f.classes)
	if c.StoreTimeout == 0 {
		sv.fastAfterOpening(n)
	}
	longest, most := slowest(replies, 0.99)
	f.heal(s)
	took := sv.settled("after the fault", "a", backWithin+f.linger)
	s.notef("%d requests: 99 of 100 answered within %v, all within %v; enforced again after %v", len(replies),
		most.Round(time.Millisecond), longest.Round(time.Millisecond), took.Round(time.Millisecond))
	if f.leaks {
		now, took := sv.backAt(start, backWithin)
		s.notef("at the start %+v, %v after %+v", start, took.Round(time.Millisecond), now)
	}
	sv.auditCharge("a", f.wipes)
	sv.audit(1)
	if len(sv.logs.byKind()[back]) == 0 {
		sv.failf("the log does not tell the recovery:\n%s", sv.tail())
	}
}

// fastAfterOpening checks of the events after the first n that most did not wait for the store: its breaker was open.
func (sv *service) fastAfterOpening(n int) {
	events, slow := sv.watch.since(n), 0
	for _, e := range events {
		if e.store > 40*time.Millisecond {
			slow++
		}
	}
	if slow > len(events)/2 {
		sv.failf("%d of %d requests waited for the store; the breaker: %q", slow, len(events), sv.watch.changes())
	}
}
