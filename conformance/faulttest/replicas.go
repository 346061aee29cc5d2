package faulttest

import (
	"strings"
	"testing"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
)

// RunReplicaReads runs a cluster's limits with a client that its user told to read from replicas. Scripts write, so they are
// none of that: replicas are not asked.
func RunReplicaReads(t *testing.T, newStore NewStoreOn) {
	runAll(t, []Case{{Name: "BR057_replica_reads", Why: "a script that is routed to a replica like a read is refused there, and the limit is off", run: func(s *scene) {
		nodes := s.cluster()
		sv := s.serveOn(nodes.Addrs(), gate.Config{Limiters: both(10), StoreTimeout: steady})
		for _, tenant := range []string{"a", "b", "c", "d", "e", "f"} {
			sv.run("with replica reads", tenant, 30, 10)
		}
		for _, node := range nodes.List() {
			if node.Primary {
				continue
			}
			stats, err := node.Server.CommandStats()
			text, _ := s.ask(node.Server, "INFO", "errorstats").(string)
			if _, asked := stats["evalsha"]; asked || err != nil || strings.Contains(text, "MOVED") {
				sv.failf("a replica was asked to run a script: %v, %v, %s", err, stats["evalsha"], text)
			}
		}
		sv.audit(2)
	}}}, newStore, 1)
}

// RunUnreachable runs a service whose client cannot reach any server, for a reason of its own: a name that nobody knows, a
// handshake that never succeeds. newStore may pay no heed to the address, which is of a server that is well.
func RunUnreachable(t *testing.T, newStore NewStore) {
	runAll(t, []Case{{Name: "BR073_never_reached", Why: "a mistake in the client's configuration is the operator's to see, and no reason not to serve", run: func(s *scene) {
		sv := s.serve(s.direct(), gate.Config{Limiters: []gate.Limiter{tenants(plenty)}})
		for _, r := range sv.load(100, faultRate, "a") {
			if r.decided() {
				sv.failf("a request was decided without a store")
			}
		}
		sv.during(0, []driver.Class{driver.ClassOther, driver.ClassTimeout})
		sv.fastAfterOpening(0)
		sv.audit(1)
	}}}, alone(newStore), 1)
}
