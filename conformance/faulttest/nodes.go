package faulttest

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
)

// nodeFault is a row of the table of a cluster: how one of its nodes gets into trouble and out of it. The requests of its
// tenants pass undecided; those of all others are decided as if nothing was.
type nodeFault struct {
	name, why string
	classes   []driver.Class // of the failures; the first must be seen
	hurt      func(*scene, *redistest.Server)
	heal      func(*scene, *redistest.Server)
	linger    time.Duration // how long after heal the node is not back yet
	whole     bool          // the cluster serves nobody without it
	wipes     bool          // the node loses its data
}

// madeUp is the class of failures where a client asks the node something else at the same time: answers that the proxy makes up
// overtake real ones.
const madeUp = driver.ClassProtocol

// answersOf makes a node answer scripts with an error.
func answersOf(raw string) func(*scene, *redistest.Server) {
	return func(_ *scene, node *redistest.Server) { node.Proxy().Garbage(raw, "EVALSHA", "EVAL") }
}

func passes(_ *scene, node *redistest.Server) { node.Proxy().Pass() }

var nodeFaults = []nodeFault{
	{name: "node_silent", why: "one node that hangs must not hold up the requests of the others, which share goroutines, connections and a breaker with it",
		classes: []driver.Class{driver.ClassTimeout},
		hurt:    func(_ *scene, node *redistest.Server) { node.Proxy().Silence() },
		heal:    func(_ *scene, node *redistest.Server) { node.Proxy().Drop(); node.Proxy().Pass() }},
	{name: "node_refuses", why: "a client cut off from one node, which is well, has nobody else to ask: limits of the other nodes must hold meanwhile",
		classes: []driver.Class{driver.ClassOther, driver.ClassTimeout},
		hurt:    func(_ *scene, node *redistest.Server) { node.Proxy().Refuse() }, heal: passes},
	{name: "node_drops", why: "connections that break say nothing of those to other nodes",
		classes: []driver.Class{driver.ClassOther, driver.ClassTimeout},
		hurt:    func(_ *scene, node *redistest.Server) { node.Proxy().Drop() }, heal: passes},
	{name: "node_late", why: "answers of one node that come after the deadline must not make those of others late",
		classes: []driver.Class{driver.ClassTimeout},
		hurt:    func(_ *scene, node *redistest.Server) { node.Proxy().Delay(late) }, heal: passes, linger: late},
	{name: "node_cuts_replies", why: "half a reply is no reply, and no reason to ask the others again",
		classes: []driver.Class{driver.ClassOther, driver.ClassTimeout},
		hurt:    func(_ *scene, node *redistest.Server) { node.Proxy().Cut(7) }, heal: passes},
	{name: "BR058_node_loading", why: "a node that loads its data answers at once, with an error that is its own",
		classes: []driver.Class{driver.ClassLoading, driver.ClassTimeout, madeUp},
		hurt:    answersOf("-LOADING Redis is loading the dataset in memory\r\n"), heal: passes},
	{name: "BR058_node_read_only", why: "a node that became a replica and does not know it yet refuses writes",
		classes: []driver.Class{driver.ClassReadOnly, driver.ClassTimeout, madeUp},
		hurt:    answersOf("-READONLY You can't write against a read only replica.\r\n"), heal: passes},
	{name: "BR058_node_tries_again", why: "a slot that is stuck half way must not take the others with it",
		classes: []driver.Class{driver.ClassClusterDown, driver.ClassTimeout, madeUp},
		hurt:    answersOf("-TRYAGAIN Multiple keys request during rehashing of slot\r\n"), heal: passes},
	{name: "node_out_of_memory", why: "a node that is full refuses writes, and the others do not",
		classes: []driver.Class{driver.ClassOOM},
		hurt: func(s *scene, node *redistest.Server) {
			s.ask(node, "CONFIG", "SET", "maxmemory-policy", "noeviction")
			s.ask(node, "CONFIG", "SET", "maxmemory", "1")
		},
		heal: func(s *scene, node *redistest.Server) { s.ask(node, "CONFIG", "SET", "maxmemory", "0") }},
	{name: "node_without_permission", why: "permissions are set node by node, and may be forgotten on one",
		classes: []driver.Class{driver.ClassAuth},
		hurt:    func(s *scene, node *redistest.Server) { s.ask(node, "ACL", "SETUSER", "default", "-eval", "-evalsha") },
		heal:    func(s *scene, node *redistest.Server) { s.ask(node, "ACL", "SETUSER", "default", "+eval", "+evalsha") }},
	{name: "node_with_another_password", why: "credentials are changed node by node, too",
		classes: []driver.Class{driver.ClassAuth, driver.ClassOther, driver.ClassTimeout},
		hurt: func(s *scene, node *redistest.Server) {
			s.ask(node, "CONFIG", "SET", "requirepass", "changed")
			s.ask(node, "CLIENT", "KILL", "TYPE", "normal")
		},
		heal: func(s *scene, node *redistest.Server) { s.ask(node, "CONFIG", "SET", "requirepass", "") }},
	{name: "node_pauses_clients", why: "a node that postpones commands, as during a failover, is as silent as a dead one",
		classes: []driver.Class{driver.ClassTimeout},
		hurt:    func(s *scene, node *redistest.Server) { s.ask(node, "CLIENT", "PAUSE", "3000", "ALL") },
		heal:    func(*scene, *redistest.Server) {}, linger: 3 * time.Second},
	{name: "BR058_cluster_down", why: "a cluster that lacks a node serves nobody by default, and must be asked again when it is whole",
		classes: []driver.Class{driver.ClassOther, driver.ClassClusterDown, driver.ClassTimeout}, whole: true, wipes: true,
		hurt: func(s *scene, node *redistest.Server) {
			node.Stop()
			other := s.nodes.Servers()[1]
			if _, ok := until(patience, func() bool {
				info, _ := s.ask(other, "CLUSTER", "INFO").(string)
				return strings.Contains(info, "cluster_state:fail")
			}); !ok {
				s.fatalf("the cluster does not notice that a node is dead")
			}
		},
		heal: func(s *scene, node *redistest.Server) { node.Restart(); s.nodes.Await() }},
}

func (f nodeFault) asCase() Case {
	return Case{Name: f.name, Why: f.why, Waits: true, run: f.run}
}

// Of the requests during a fault, four of five are of tenants of the node: a hot one, and most calls to the store fail.
const (
	nodeRequests = 300
	nodeRate     = 150
)

func (f nodeFault) run(s *scene) {
	nodes := s.cluster(redistest.WithReplicas(0), redistest.WithProxies())
	sv := s.serveOn(nodes.Addrs(), gate.Config{Limiters: both(plenty), StoreTimeout: roomy})
	where, node := sv.owners(), nodes.Servers()[0]
	own := where.some(node, 12, "own")
	var others []string
	for _, other := range nodes.Servers()[1:] {
		others = append(others, where.some(other, 12, "other")...)
	}
	for _, tenant := range append(others, own...) {
		sv.settled("before the fault", tenant, patience)
	}
	sv.warmUp()
	start := sv.atRest()
	sv.settled("before the fault", own[0], patience)
	n, asked := sv.watch.count(), 0
	beside := s.bystander()
	f.hurt(s, node)
	load := sv.traffic(nodeRate, func() string {
		if asked++; asked%5 == 0 {
			return others[asked/5%len(others)]
		}
		return own[asked%len(own)]
	})
	wait(nodeRequests * time.Second / nodeRate)
	shots := load.stop()
	var hit sum
	ofNode := func(x shot) bool { return f.whole || strings.HasPrefix(x.tenant, "own") }
	for _, x := range shots {
		if ofNode(x) {
			hit.add(x)
		}
	}
	rest := sv.undisturbed(beside, slices.DeleteFunc(shots, ofNode))
	if hit.open != hit.asked {
		sv.failf("during the fault: %d of %d requests of the node's tenants were decided", hit.asked-hit.open, hit.asked)
	}
	if rest.open > 0 {
		sv.failf("during the fault: %d of %d requests of other nodes' tenants were undecided: %v; the breaker: %q", rest.open, rest.asked,
			sv.classesOf(n, "other"), sv.watch.changes())
	}
	sv.duringOf(slices.DeleteFunc(sv.watch.since(n), func(e seen) bool { return e.class() == "" }), f.classes)
	s.notef("breaker %q %v %v", sv.watch.changes(), sv.classesOf(n, "own"), sv.classesOf(n, "other"))
	f.heal(s, node)
	took := time.Duration(0)
	for _, tenant := range own {
		took += sv.settled("after the fault", tenant, backWithin+f.linger)
	}
	s.notef("%d requests of the node's tenants, of others %d; enforced again after %v", hit.asked, rest.asked, took.Round(time.Millisecond))
	now, took := sv.backAt(start, backWithin)
	s.notef("at the start %+v, %v after %+v", start, took.Round(time.Millisecond), now)
	for _, tenant := range own {
		if r := sv.get(tenant); !r.decided() || r.status != http.StatusOK {
			sv.failf("%s is not decided, or refused, after the fault", tenant)
		}
	}
	sv.audit(2)
	sv.noLeases()
	if len(sv.logs.byKind()[back]) == 0 {
		sv.failf("the log does not tell the recovery:\n%s", sv.tail())
	}
}

// classesOf counts the failures among the events after the first n of tenants whose names begin so.
func (sv *service) classesOf(n int, prefix string) map[driver.Class]int {
	counts := map[driver.Class]int{}
	for _, e := range sv.watch.since(n) {
		if class := e.class(); class != "" && strings.HasPrefix(e.tenant, secret+prefix) {
			counts[class]++
		}
	}
	return counts
}
