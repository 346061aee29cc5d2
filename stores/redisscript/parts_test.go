package redisscript

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// hangsFor is a client on whose cluster some slots hang until a call's time is over.
type hangsFor struct {
	*fakeClient
	slots func(slot int) bool
}

func (c hangsFor) EvalSHA(ctx context.Context, sha string, keys, args []string) (string, error) {
	if c.slots(Slot(keys[0])) {
		<-ctx.Done()
		return "", ctx.Err()
	}
	return c.fakeClient.EvalSHA(ctx, sha, keys, args)
}

func (c hangsFor) EvalSHAs(ctx context.Context, sha string, calls []Call) {
	for i, one := range calls {
		calls[i].Reply, calls[i].Err = c.EvalSHA(ctx, sha, one.Keys, one.Args)
	}
}

func (c hangsFor) Pipe(ctx context.Context, commands [][]string) error {
	for _, command := range commands {
		if c.slots(Slot(command[1])) {
			<-ctx.Done()
			return ctx.Err()
		}
	}
	return c.fakeClient.Pipe(ctx, commands)
}

// Failures tell which part of a cluster they are of, and of a single server nothing: there is one.
func TestFailuresTellTheirPart(t *testing.T) {
	t.Parallel()
	bad := func(slot int) bool { return laneOf(slot) == 3 }
	s := New(hangsFor{&fakeClient{}, bad}, WithCluster(), WithTimeout(50*time.Millisecond))
	defer s.Close()
	var dead, live string
	for i := 0; dead == "" || live == ""; i++ {
		name := subject(t, fmt.Sprint(i))
		part := s.Part(name)
		if want := laneOf(slotAt(s, rateOf(name, fiveADay, 1))); part != want || part >= s.Parts() {
			t.Fatalf("part %d of %d, where the key is in lane %d", part, s.Parts(), want)
		}
		if part == 3 {
			dead = name
		} else {
			live = name
		}
	}
	decide := func(claims ...driver.Claim) error {
		return s.Decide(t.Context(), time.Time{}, []driver.Entry{{Claims: claims}})
	}
	for name, err := range map[string]error{
		"one slot":   decide(rateOf(dead, fiveADay, 1), slotOf(dead, 1)),
		"two slots":  decide(rateOf(live, fiveADay, 1), rateOf(dead, fiveADay, 1)),
		"correction": s.Apply(t.Context(), time.Time{}, []driver.Change{settle(live), settle(dead)}),
		"release":    s.Apply(t.Context(), time.Time{}, []driver.Change{release(live), release(dead)}),
	} {
		if driver.FailedParts(err) != 1<<3 || driver.ClassOf(err) != driver.ClassTimeout {
			t.Errorf("%s: parts %b of %v", name, driver.FailedParts(err), err)
		}
	}
	if err := decide(rateOf(live, fiveADay, 1)); err != nil {
		t.Errorf("another part: %v", err)
	}

	alone := New(hangsFor{&fakeClient{}, func(int) bool { return true }}, WithTimeout(50*time.Millisecond))
	defer alone.Close()
	err := alone.Decide(t.Context(), time.Time{}, []driver.Entry{{Claims: []driver.Claim{rateOf(dead, fiveADay, 1)}}})
	if alone.Parts() != 1 || alone.Part(dead) != 0 || err == nil || driver.FailedParts(err) != 0 {
		t.Errorf("one server has %d parts, %v", alone.Parts(), err)
	}
}

// More corrections than a call holds: those behind a failure are made all the same, and releases of one part do not wait for
// those of another. A lease that is not renewed while some node hangs would be lost with that node's.
func TestCorrectionsGoOnAfterAFailure(t *testing.T) {
	t.Parallel()
	client := &fakeClient{}
	s := New(hangsFor{client, func(slot int) bool { return laneOf(slot) == 0 }}, WithCluster(), WithTimeout(100*time.Millisecond))
	defer s.Close()
	var changes []driver.Change
	wanted := map[string]bool{}
	for i := range 200 {
		name := subject(t, fmt.Sprint(i))
		renewal := release(name)
		renewal.Kind = driver.Renew
		changes = append(changes, renewal, release(name))
		if s.Part(name) != 0 {
			wanted[s.KeyName("s", name, fiveSlots)] = true
		}
	}
	if err := s.Apply(t.Context(), time.Time{}, changes); driver.FailedParts(err) != 1 {
		t.Errorf("parts %b of %v", driver.FailedParts(err), err)
	}
	renewed, released := map[string]bool{}, map[string]bool{}
	client.mu.Lock()
	defer client.mu.Unlock()
	for _, call := range client.calls {
		for _, key := range call.keys {
			renewed[key] = true
		}
		for _, command := range call.plain {
			released[command[1]] = true
		}
	}
	for key := range wanted {
		if !renewed[key] || !released[key] {
			t.Errorf("%s: renewed %t, released %t", key, renewed[key], released[key])
		}
	}
}

func settle(subject string) driver.Change {
	return driver.Change{Kind: driver.Settle, Policy: "p", Subject: subject, Rule: fiveADay, Amount: 1}
}

func release(subject string) driver.Change {
	return driver.Change{Kind: driver.Release, Policy: "s", Subject: subject, Rule: fiveSlots, Lease: driver.ID{1}, LeaseFor: time.Minute}
}
