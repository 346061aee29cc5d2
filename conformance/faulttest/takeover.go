package faulttest

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/gate"
)

// takeover is a row of the table of failovers, which are the same under sentinels and in a cluster: why a replica becomes the
// primary, and how the old one comes back.
type takeover struct {
	name, why string
	hurt      func(s *scene, primary *redistest.Server, replicas []*redistest.Server)
	heal      func(primary *redistest.Server)
	gentle    bool // nobody need be cut off
	split     bool // for a while both are primaries: what the old one confirms then is lost with its state
}

var killed = takeover{name: "primary_killed",
	why:  "a client that goes on asking the server that is gone leaves tenants without limits until somebody restarts the service",
	hurt: func(_ *scene, primary *redistest.Server, _ []*redistest.Server) { primary.Stop() },
	heal: (*redistest.Server).Restart}

var takeovers = []takeover{killed,
	{name: "primary_stopped", why: "a primary that hangs is replaced, too, and its connections stay open: whoever waits on them does so for ever",
		hurt: func(_ *scene, primary *redistest.Server, _ []*redistest.Server) { primary.Pause() },
		heal: (*redistest.Server).Resume, split: true},
	{name: "BR057_replica_promoted", why: "connections lead to the old primary, now a replica, which is well and refuses writes until somebody restarts the service",
		hurt: (*scene).promote, heal: func(*redistest.Server) {}, gentle: true, split: true},
}

// promote makes a replica the primary of one that is well.
func (s *scene) promote(_ *redistest.Server, replicas []*redistest.Server) {
	if s.nodes != nil {
		s.nodes.Promote(replicas[0])
		return
	}
	s.ask(s.server.Sentinels().Servers()[0], "SENTINEL", "FAILOVER", redistest.PrimaryName)
}

// takeoverCases returns a case for each row, on the servers that start starts.
func takeoverCases(rows []takeover, start func(*scene) (addrs []string)) []Case {
	var all []Case
	for _, row := range rows {
		all = append(all, Case{Name: row.name, Why: row.why, run: func(s *scene) {
			sv := s.serveOn(start(s), gate.Config{Limiters: both(killBurst), StoreTimeout: roomy})
			sv.settled("at first", "warm", patience)
			sv.replaced(1, takeoverRate, row)
		}})
	}
	return all
}

const takeoverRate = 150

// SentinelCases returns the cases of [RunSentinel] in their order.
func SentinelCases() []Case {
	return append(takeoverCases(takeovers, func(s *scene) []string {
		s.server = redistest.Start(s.tb, redistest.Sentinel)
		return s.server.Sentinels().Addrs()
	}), Case{Name: "sentinels_gone", Why: "sentinels are asked who the primary is; that they are gone is no reason not to ask it", run: func(s *scene) {
		s.server = redistest.Start(s.tb, redistest.Sentinel)
		sv := s.serveOn(s.server.Sentinels().Addrs(), gate.Config{Limiters: both(plenty), StoreTimeout: roomy})
		sv.settled("at first", "a", patience)
		for _, sentinel := range s.server.Sentinels().Servers() {
			sentinel.Stop()
		}
		beside := s.bystander()
		load := sv.traffic(100, func() string { return "a" })
		wait(2 * time.Second)
		// A client that wants another connection asks a sentinel for the address first.
		if counted := sv.undisturbed(beside, load.stop()); counted.open*40 > counted.asked {
			sv.failf("%d of %d requests were undecided without sentinels, %v; the breaker: %q", counted.open, counted.asked, sv.classesOf(0, ""),
				sv.watch.changes())
		}
		sv.auditCharge("a", false)
	}})
}

// RunSentinel runs every case of a primary under sentinels as a subtest.
func RunSentinel(t *testing.T, newStore NewStoreOn) {
	runAll(t, SentinelCases(), newStore, clusters)
}

// failover is one of them.
type failover struct {
	at   time.Time
	heir time.Time       // when there was a new primary
	one  time.Time       // when there was no other any more
	end  time.Time       // of the time that is given to come back
	hit  map[string]bool // the tenants of the server
}

// replaced lets primaries be replaced under load, one after another, each when the one before is back as a replica, and checks
// what it cost, and that nothing is left of it.
func (sv *service) replaced(n, perSecond int, how takeover) {
	sv.warmUp()
	start := sv.atRest()
	sv.settled("after the warm-up", "warm", patience)
	beside := sv.bystander()
	all, shots := sv.takeOvers(n, perSecond, how, beside)
	sv.costs(all, shots, how, beside)
	if sv.nodes != nil {
		// A client keeps connections to every node that was a primary, and what serves them.
		more := len(sv.nodes.Servers()) / len(sv.primaries())
		start.connections, start.goroutines = more*start.connections, more*start.goroutines
	}
	now, took := sv.backAt(start, backWithin)
	sv.notef("at the start at most %+v, %v after %+v", start, took.Round(time.Millisecond), now)
	sv.noLeases()
	sv.auditLog()
}

// takeOvers lets primaries be replaced, and returns what became of the requests in the order in which they were sent.
func (sv *service) takeOvers(n, perSecond int, how takeover, beside *bystander) ([]failover, []shot) {
	var round atomic.Int64
	random := rand.New(rand.NewPCG(57, 0))
	load := sv.traffic(perSecond, func() string {
		x := random.Float64()
		return killTenant(int(round.Load()), int(x*x*killTenants)) // some more than others
	})
	var all []failover
	for i := range n {
		round.Store(int64(i))
		all = append(all, sv.takeOver(i, how, beside))
	}
	shots := load.stop()
	sort.Slice(shots, func(i, j int) bool { return shots[i].sent.Before(shots[j].sent) })
	return all, shots
}

func killTenant(round, i int) string { return fmt.Sprintf("round%d-%d", round, i) }

// takeOver has a primary replaced, waits for the heir and for enforcement, and gets the old one back as a replica.
func (sv *service) takeOver(round int, how takeover, beside *bystander) failover {
	wait(time.Second) // of health: some tenants reach their limits
	f := failover{hit: map[string]bool{}}
	primary, replicas := sv.shard(round)
	where := owners{}
	if sv.nodes != nil {
		where = sv.owners()
	}
	for i := range killTenants {
		tenant := killTenant(round, i)
		f.hit[tenant] = sv.nodes == nil || where.of(tenant) == primary
	}
	f.at = time.Now()
	how.hurt(sv.scene, primary, replicas)
	if _, ok := until(patience, func() bool {
		for _, replica := range replicas {
			reply, _ := replica.Do("ROLE") // who is promoted closes its connections
			if role, _ := reply.([]any); len(role) > 0 && role[0] == "master" {
				return true
			}
		}
		return false
	}); !ok {
		sv.fatalf("no replica becomes primary")
	}
	f.heir = time.Now()
	// Only then, or else it would be the old one that tells clients of the new one.
	_, _ = until(patience, func() bool {
		f.end = f.heir.Add(enforcedWithin + beside.since(f.heir))
		return !time.Now().Before(f.end)
	})
	if sv.nodes != nil {
		sv.nodes.AwaitFailover(primary)
		how.heal(primary)
		sv.nodes.Await()
	} else {
		sentinels := sv.server.Sentinels()
		sentinels.AwaitFailover(primary)
		how.heal(primary)
		sentinels.Await()
	}
	f.one = f.at
	if how.split {
		f.one = time.Now()
	}
	return f
}

// shard returns a primary and its replicas: in a cluster another one each time.
func (sv *service) shard(round int) (primary *redistest.Server, replicas []*redistest.Server) {
	if sv.nodes == nil {
		primary = sv.server.Sentinels().Primary()
		for _, server := range append(sv.server.Peers(), sv.server) {
			if server != primary {
				replicas = append(replicas, server)
			}
		}
		return primary, replicas
	}
	all := sv.primaries()
	primary = all[round%len(all)]
	for _, node := range sv.nodes.List() {
		if node.Of == primary {
			replicas = append(replicas, node.Server)
		}
	}
	return primary, replicas
}
