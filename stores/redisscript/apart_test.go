package redisscript

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
)

// strictClient is a client of one server that is as strict as a cluster: a call has keys of one slot. Slots can be on the
// move, where several keys are refused together, fail, or hang until the call's time is over.
type strictClient struct {
	*testClient
	mu     sync.Mutex
	moving bool
	bad    map[int]error
	hangs  map[int]bool
	wrong  []string
}

func (c *strictClient) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

func (c *strictClient) EvalSHAs(ctx context.Context, sha string, calls []Call) {
	for i, one := range calls {
		calls[i].Reply, calls[i].Err = c.EvalSHA(ctx, sha, one.Keys, one.Args)
	}
}

func (c *strictClient) EvalSHA(ctx context.Context, sha string, keys, args []string) (string, error) {
	slot := Slot(keys[0])
	c.mu.Lock()
	for _, key := range keys {
		if Slot(key) != slot {
			c.wrong = append(c.wrong, fmt.Sprint("CROSSSLOT ", keys))
		}
	}
	moving, bad, hangs := c.moving, c.bad[slot], c.hangs[slot]
	c.mu.Unlock()
	switch {
	case bad != nil:
		return "", bad
	case moving && len(keys) > 1:
		return "", redistest.Error("TRYAGAIN Multiple keys request during rehashing of slot")
	case hangs:
		<-ctx.Done()
		return "", ctx.Err()
	}
	return c.testClient.EvalSHA(ctx, sha, keys, args)
}

func openStrict(t *testing.T, options ...Option) (*Store, *strictClient) {
	srv := redistest.Start(t, redistest.Single)
	c := &strictClient{testClient: newClient(t, srv.Addr()), bad: map[int]error{}, hangs: map[int]bool{}}
	s := New(c, append([]Option{WithTimeout(20 * time.Second), WithCluster()}, options...)...)
	t.Cleanup(func() {
		_ = s.Close()
		for _, text := range c.wrong {
			t.Error(text)
		}
	})
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	return s, c
}

// apartRule is what the claims of these tests are under: five, for a long time.
var (
	fiveADay   = bucket(1, 24*time.Hour, 5)
	fiveWindow = driver.NewWindow(driver.KindFixed, 5, 24*time.Hour)
	fiveSlots  = driver.NewSlots(5)
)

func rateOf(subject string, rule driver.Rule, cost int) driver.Claim {
	return driver.Claim{Policy: "p", Subject: subject, Rule: rule, Cost: cost}
}

func slotOf(subject string, id byte) driver.Claim {
	return driver.Claim{Policy: "s", Subject: subject, Rule: fiveSlots, Cost: 1, Lease: driver.ID{1, id}, LeaseFor: time.Minute}
}

func slotAt(s *Store, c driver.Claim) int { return Slot(s.KeyName(c.Policy, c.Subject, c.Rule)) }

// remaining reads what a key has left.
func remaining(t *testing.T, s *Store, c driver.Claim) int {
	t.Helper()
	c.Cost = 0
	batch := []driver.Entry{{Claims: []driver.Claim{c}}}
	if err := s.Decide(t.Context(), time.Time{}, batch); err != nil || batch[0].Err != nil {
		t.Fatal(err, batch[0].Err)
	}
	return batch[0].Claims[0].Result.Remaining
}

// eventually waits for what is given back off the request's path.
func eventually(t *testing.T, s *Store, c driver.Claim, want int) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for remaining(t, s, c) != want {
		select {
		case <-deadline:
			t.Fatalf("%s: %d left, want %d", c.Policy, remaining(t, s, c), want)
		case <-time.After(time.Millisecond):
		}
	}
}

// Claims on several subjects: what some parts took goes back when another refuses, whatever kind it is, shadow ones too.
func TestPartsAreGivenBack(t *testing.T) {
	t.Parallel()
	s, _ := openStrict(t)
	full := rateOf(subject(t, "full"), fiveADay, 5)
	claims := []driver.Claim{rateOf(subject(t, "a"), fiveADay, 2), rateOf(subject(t, "b"), fiveWindow, 2), slotOf(subject(t, "c"), 1),
		rateOf(subject(t, "d"), fiveADay, 2), full}
	claims[3].Shadow = true
	for round := range 3 {
		batch := []driver.Entry{{Claims: append([]driver.Claim(nil), claims...)}}
		if err := s.Decide(t.Context(), time.Time{}, batch); err != nil || batch[0].Err != nil {
			t.Fatal(err, batch[0].Err)
		}
		if got := batch[0].Claims; round == 0 {
			for i, want := range []int{3, 3, 4, 3, 0} {
				if !got[i].Result.Allowed || got[i].Result.Remaining != want {
					t.Errorf("claim %d: %+v, want %d left", i, got[i].Result, want)
				}
			}
			claims[2].Lease = driver.ID{2}
			continue
		} else if got[4].Result.Allowed || got[4].Result.Reason != driver.ReasonLimit || got[0].Result.Remaining != 3 {
			t.Errorf("%+v", got)
		}
		for i, want := range []int{3, 3, 4, 3, 0} {
			eventually(t, s, claims[i], want)
		}
	}
}

// One part fails: the request is undecided, and the other parts' takes go back.
func TestPartsOfAFailure(t *testing.T) {
	t.Parallel()
	s, c := openStrict(t)
	a, b := rateOf(subject(t, "a"), fiveADay, 2), rateOf(subject(t, "b"), fiveADay, 2)
	c.set(func() { c.bad[slotAt(s, b)] = redistest.Error("CLUSTERDOWN Hash slot not served") })
	err := s.Decide(t.Context(), time.Time{}, []driver.Entry{{Claims: []driver.Claim{a, b}}})
	if driver.ClassOf(err) != driver.ClassClusterDown {
		t.Errorf("%v", err)
	}
	eventually(t, s, a, 5)
}

// While a slot moves, a node refuses several keys together and answers one: the request is decided all the same, and exactly.
func TestBR057_KeysOnTheMove(t *testing.T) {
	t.Parallel()
	s, c := openStrict(t)
	c.set(func() { c.moving = true })
	rate, slot, other := rateOf(subject(t, "a"), fiveADay, 1), slotOf(subject(t, "a"), 0), rateOf(subject(t, "b"), fiveADay, 1)
	for i := range 7 {
		slot.Lease = driver.ID{9, byte(i)}
		batch := []driver.Entry{{Claims: []driver.Claim{rate, slot, other}}, {Claims: []driver.Claim{other}}}
		if err := s.Decide(t.Context(), time.Time{}, batch); err != nil || batch[0].Err != nil {
			t.Fatal(err, batch[0].Err)
		}
		if i < 2 && (!batch[0].Claims[1].Result.Allowed || batch[0].Claims[0].Result.Remaining != 4-i) {
			t.Errorf("round %d: %+v", i, batch[0].Claims)
		}
	}
	eventually(t, s, other, 0)
	eventually(t, s, rate, 2) // three entries of two found room for both, and the fourth for one alone
	eventually(t, s, slot, 2)
}

// A node that hangs keeps its own requests waiting, and no others.
func TestHangingSlotsHoldUpTheirOwn(t *testing.T) {
	t.Parallel()
	s, c := openStrict(t)
	var dead, live driver.Claim
	for i := 0; dead.Policy == "" || live.Policy == ""; i++ {
		one := rateOf(subject(t, fmt.Sprint(i)), bucket(1, time.Hour, 1000), 1)
		switch slot := slotAt(s, one); {
		case slot < hashSlots/lanes && dead.Policy == "":
			dead = one
		case slot > hashSlots/2:
			live = one
		}
	}
	c.set(func() { c.hangs[slotAt(s, dead)] = true })
	var wg sync.WaitGroup
	for range 300 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if err := s.Decide(ctx, time.Time{}, []driver.Entry{{Claims: []driver.Claim{dead}}}); err == nil {
				t.Error("a node that hangs has answered")
			}
		})
	}
	for range 100 {
		start := time.Now()
		if err := s.Decide(t.Context(), time.Time{}, []driver.Entry{{Claims: []driver.Claim{live}}}); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("a request to another node took %v", took)
		}
	}
	wg.Wait()
}

// Corrections go to where their keys are.
func TestCorrectionsApart(t *testing.T) {
	t.Parallel()
	s, c := openStrict(t)
	var changes []driver.Change
	for i := range 100 {
		name := subject(t, fmt.Sprint(i))
		take := []driver.Entry{{Claims: []driver.Claim{rateOf(name, fiveADay, 3), slotOf(name, byte(i))}}}
		if err := s.Decide(t.Context(), time.Time{}, take); err != nil {
			t.Fatal(err)
		}
		changes = append(changes,
			driver.Change{Kind: driver.Settle, Policy: "p", Subject: name, Rule: fiveADay, Amount: -2},
			driver.Change{Kind: driver.Renew, Policy: "s", Subject: name, Rule: fiveSlots, Lease: driver.ID{1, byte(i)}, LeaseFor: time.Minute},
			driver.Change{Kind: driver.Renew, Policy: "s", Subject: name, Rule: fiveSlots, Lease: driver.ID{7}, LeaseFor: time.Minute})
	}
	if err := s.Apply(t.Context(), time.Time{}, changes); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if got := remaining(t, s, rateOf(changes[3*i].Subject, fiveADay, 0)); got != 4 {
			t.Errorf("%d left after a settlement, want 4", got)
		}
		if changes[3*i+1].Lost || !changes[3*i+2].Lost {
			t.Errorf("renewals of a lease that is there and of one that is not: lost %v and %v", changes[3*i+1].Lost, changes[3*i+2].Lost)
		}
	}
	c.set(func() { c.bad[slotAt(s, rateOf(changes[0].Subject, fiveADay, 0))] = errors.New("gone") })
	if s.Apply(t.Context(), time.Time{}, changes) == nil {
		t.Error("a correction that could not be made is no error")
	}
}
