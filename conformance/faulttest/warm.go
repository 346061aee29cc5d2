package faulttest

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/limit"
)

// warmUp makes the store and its client grow to what they become when the server is slow for a moment: as many senders
// and connections as they want. What they keep of it is theirs, and not left behind by a fault.
func (sv *service) warmUp() {
	if sv.nodes == nil {
		// Times of their own keep decisions from sharing a call.
		sv.warmOn([]*redistest.Server{sv.server}, func(i int) time.Time { return time.Unix(1_900_000_000, int64(i)*1000) })
		return
	}
	// A client may have other connections for pipelines, which is how those of one time go to a cluster.
	sv.warmOn(sv.primaries(), func(i int) time.Time { return time.Unix(1_900_000_000, int64(i)*1000) })
	sv.warmOn(sv.primaries(), func(i int) time.Time { return time.Unix(1_900_000_000, int64(i/100)*1000) })
}

func (sv *service) warmOn(servers []*redistest.Server, at func(i int) time.Time) {
	for _, server := range servers {
		sv.ask(server, "CLIENT", "PAUSE", "200", "ALL")
	}
	sv.inService(func() {
		var running sync.WaitGroup
		for i := range 200 * len(servers) {
			running.Go(func() { _ = sv.decide(at(i), "warm"+strconv.Itoa(i), plenty, 1, steady) })
		}
		running.Wait()
	})
}

// claim is what one of the direct decisions asks for.
func claim(subject string, burst, cost int) driver.Claim {
	return driver.Claim{Policy: "tenant", Subject: string(driver.AppendSubject(nil, subject)), Cost: cost,
		Rule: limit.PerDay(1).WithBurst(burst)}
}

// decide asks the store itself, past gate and breaker.
func (sv *service) decide(now time.Time, subject string, burst, cost int, timeout time.Duration) error {
	_, err := sv.result(now, claim(subject, burst, cost), timeout)
	return err
}

func (sv *service) result(now time.Time, c driver.Claim, timeout time.Duration) (driver.Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	batch := []driver.Entry{{Claims: []driver.Claim{c}}}
	err := sv.store.Decide(ctx, now, batch)
	if err == nil {
		err = batch[0].Err
	}
	return batch[0].Claims[0].Result, err
}

// left returns what a subject of direct decisions has left, as soon as the store answers.
func (sv *service) left(subject string, burst int) int {
	var r driver.Result
	if _, ok := until(patience, func() (ok bool) {
		var err error
		r, err = sv.result(time.Time{}, claim(subject, burst, 0), steady)
		return err == nil
	}); !ok {
		sv.fatalf("the store does not answer any more")
	}
	return r.Remaining
}

// splitAddr cuts an address of the kit, which is always well formed.
func splitAddr(addr string) (host, port string) {
	host, port, _ = net.SplitHostPort(addr)
	return host, port
}
