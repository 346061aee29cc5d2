// Package faulttest proves that a store's trouble stays the store's. It runs services with real gates over a store on
// real Redis servers, makes servers and network fail in every way that was seen to hurt somebody, and looks at what the
// clients of the services, the observers and the log saw.
//
// A store's own test calls it for every configuration of its client that behaves in a way of its own:
//
//	func TestFaults(t *testing.T) {
//		faulttest.Run(t, func(tb testing.TB, addr string) driver.Store {
//			client := redis.NewClient(&redis.Options{Addr: addr})
//			tb.Cleanup(func() { _ = client.Close() })
//			return goredisstore.New(client)
//		})
//	}
//
// Times are checked by order of magnitude: the machine may be shared. Cases named after a number (BR064) are witnesses of
// faults that people reported in other software of this kind.
package faulttest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// NewStore returns a store on the server at addr, with a client of its own, which it closes in tb.Cleanup. The cases close
// the store. The server may be down when it is called.
type NewStore = func(tb testing.TB, addr string) driver.Store

// NewStoreOn is [NewStore] where there are several addresses: of the nodes of a cluster, or of sentinels, which know the
// primary as redistest.PrimaryName.
type NewStoreOn = func(tb testing.TB, addrs []string) driver.Store

// alone is a factory for one server among those for several.
func alone(newStore NewStore) NewStoreOn {
	return func(tb testing.TB, addrs []string) driver.Store { return newStore(tb, addrs[0]) }
}

// Case is one kind of trouble and what has to hold in it. Why is printed when it does not.
type Case struct {
	Name, Why string
	// Waits says that the case takes many seconds: once per client is enough.
	Waits bool
	run   func(*scene)
}

// Cases returns the cases of [Run] in their order.
func Cases() []Case {
	var all []Case
	for _, f := range faults {
		all = append(all, f.asCase())
	}
	for _, part := range [][]Case{answerCases, onceCases, serverCases, flowCases, policyCases, countCases, memoryCases, lifeCases} {
		all = append(all, part...)
	}
	return all
}

// Run runs every case as a subtest.
func Run(t *testing.T, newStore NewStore) {
	runAll(t, Cases(), alone(newStore), together)
}

// RunQuick runs the cases that do not wait for long: for further configurations of a client.
func RunQuick(t *testing.T, newStore NewStore) {
	var quick []Case
	for _, c := range Cases() {
		if !c.Waits {
			quick = append(quick, c)
		}
	}
	runAll(t, quick, alone(newStore), together)
}

// together is how many cases run at a time. They wait most of the time, so this is not a matter of processors, and
// t.Parallel, which makes it one, is not used.
const together = 6

func runAll(t *testing.T, cases []Case, newStore NewStoreOn, together int) {
	var running sync.WaitGroup
	free := make(chan struct{}, together)
	for _, c := range cases {
		free <- struct{}{}
		running.Go(func() {
			defer func() { <-free }()
			t.Run(c.Name, func(t *testing.T) { c.test(t, newStore) })
		})
	}
	running.Wait()
}

func (c Case) test(t *testing.T, newStore NewStoreOn) {
	s := conclude(t, c, newStore)
	for _, note := range s.notes {
		t.Log(note)
	}
	for _, f := range s.failures {
		t.Error(f)
	}
	if len(s.failures) > 0 {
		t.Logf("why: %s", c.Why)
	}
}

// Failures runs one case without failing tb and returns what is wrong, nil if nothing is. It is for proving that a
// deliberately broken store is caught.
func Failures(tb testing.TB, c Case, newStore NewStore) []string {
	tb.Helper()
	return FailuresOn(tb, c, alone(newStore))
}

// FailuresOn is [Failures] for cases of clusters and sentinels.
func FailuresOn(tb testing.TB, c Case, newStore NewStoreOn) []string {
	tb.Helper()
	s := conclude(tb, c, newStore)
	for i, f := range s.failures {
		s.failures[i] = fmt.Sprintf("%s: %s", c.Name, f)
	}
	return s.failures
}

// What the documents promise, and what is asserted of it. A promise of 50 ms is tested against faults of seconds.
const (
	// answered is how soon every request is answered, whatever the store does: promised are 60 ms.
	answered = time.Second
	// backWithin is how soon limits are enforced again after the store is back: promised are 5 s. A probe that is lost to
	// a stalled machine costs another three.
	backWithin = 10 * time.Second
	// patience bounds waits for what happens at once on a machine that has nothing else to do.
	patience = 20 * time.Second
)
