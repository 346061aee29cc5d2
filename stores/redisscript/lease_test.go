package redisscript

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// Slots on their way through the store: what is sent for them, and what becomes of those that nobody waits for any more.

// lease is the ID of a number, with bytes that text would not survive.
func lease(n byte) driver.ID { return driver.ID{0: 0xff, 1: '\r', 2: '\n', 15: n} }

func leaseText(n byte) string { id := lease(n); return string(id[:]) }

// slotOn claims a slot.
func slotOn(subject string, limit int, n byte) driver.Claim {
	return driver.Claim{Policy: "p", Subject: subject, Rule: driver.NewSlots(limit), Cost: 1, Lease: lease(n), LeaseFor: time.Minute}
}

func slotChange(kind driver.ChangeKind, subject string, n byte) driver.Change {
	return driver.Change{Kind: kind, Policy: "p", Subject: subject, Rule: driver.NewSlots(1), Lease: lease(n), LeaseFor: time.Minute}
}

func slotKey(subject string) string { return New(nil).KeyName("p", subject, driver.NewSlots(1)) }

// plain returns the plain commands that were sent so far, those of a call in one line.
func (f *fakeClient) plain() (lines []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		if c.plain != nil {
			lines = append(lines, fmt.Sprintf("%q", c.plain))
		}
	}
	return lines
}

func zrem(subject string, ids ...byte) []string {
	command := []string{"ZREM", slotKey(subject)}
	for _, n := range ids {
		command = append(command, leaseText(n))
	}
	return command
}

func plainCall(commands ...[]string) string { return fmt.Sprintf("%q", commands) }

func apply(s *Store, ctx context.Context, changes ...driver.Change) <-chan error {
	done := make(chan error, 1)
	go func() { done <- s.Apply(ctx, time.Time{}, changes) }()
	return done
}

// What a call looks like: strings before sets, a look as a shadow claim without a lease, renewals last.
func TestEncodeSlots(t *testing.T) {
	t.Parallel()
	shadow, look := slotOn("b", 7, 3), slotOn("a", 5, 2)
	shadow.Shadow, look.Cost = true, 0
	var changes request
	renewal, settle := slotChange(driver.Renew, "c", 4), driver.Change{Kind: driver.Settle, Policy: "p", Subject: "a", Rule: five, Amount: -1}
	for _, c := range []driver.Change{renewal, settle, slotChange(driver.Release, "a", 9)} {
		if err := changes.addChange("hg", &c); err != nil {
			t.Fatal(err)
		}
	}
	requests := append([]*request{&changes}, requestsOf(t, entry(slotOn("a", 5, 1), claimOn("a", five, 1), shadow), entry(look))...)
	var p pack
	arg := p.encode(requests)
	want := `bucket last settle key 1: burst 5, 1 per 3600000000us, cost -1 ->
slots key 3: max 5, lease 60000000us, id ff0d0a00000000000000000000000001 ->
bucket key 1: burst 5, 1 per 3600000000us, cost 1 ->
slots last shadow key 4: max 7, lease 60000000us, id ff0d0a00000000000000000000000003 ->
slots last shadow key 3: max 0, lease 0us, id 00000000000000000000000000000000 ->
renew last key 2: max 0, lease 60000000us, id ff0d0a00000000000000000000000004 ->
`
	equal(t, "records", strings.ReplaceAll(FormatCall(arg, ""), " missing", ""), want)
	equal(t, "keys", p.keys, []string{New(nil).KeyName("p", "a", five), slotKey("c"), slotKey("a"), slotKey("b")})
	equal(t, "string keys", arg[:2], "\x01\x00")

	saw := []float64{5, 0, 2, 5, 0, 7, 2, 1}
	for i, c := range []struct {
		value float64
		ok    bool
	}{{-1, false}, {0.5, false}, {math.NaN(), false}, {driver.MaxCount, true}, {driver.MaxCount + 1, false}, {3, true}} {
		for _, at := range []int{2, 5, 6} {
			strange := append([]float64(nil), saw...)
			strange[at] = c.value
			err := p.decode(doubles(strange...))
			equal(t, fmt.Sprint("strange reply ", i), driver.ClassOf(err) == driver.ClassProtocol, !c.ok)
		}
	}
	for _, value := range []float64{-1, 2} {
		equal(t, "strange renewal", driver.ClassOf(p.decode(doubles(append(saw[:7:7], value)...))), driver.ClassProtocol)
	}
	if err := p.decode(doubles(saw...)); err != nil {
		t.Fatal(err)
	}
	batch := append(entry(slotOn("a", 5, 1), claimOn("a", five, 1), shadow), entry(look)...)
	requests[1].answer(&batch[0], 0)
	requests[2].answer(&batch[1], 0)
	equal(t, "taken", batch[0].Claims[0].Result, driver.Result{Allowed: true, Remaining: 2})
	equal(t, "a full shadow", batch[0].Claims[2].Result, driver.Result{Reason: driver.ReasonLimit})
	equal(t, "a look", batch[1].Claims[0].Result, driver.Result{Allowed: true, Remaining: 3})
}

// What is wrong with a claim or a change is said of it alone.
func TestSlotErrors(t *testing.T) {
	t.Parallel()
	client := &fakeClient{}
	s := New(client)
	defer s.Close()
	spoiled := func(spoil func(*driver.Claim)) []driver.Claim {
		c := slotOn("a", 5, 1)
		spoil(&c)
		return []driver.Claim{claimOn("a", five, 1), c}
	}
	shadow := slotOn("a", 5, 2)
	shadow.Shadow = true
	look := slotOn("a", 5, 2)
	look.Cost = 0
	batch := []driver.Entry{
		{Claims: spoiled(func(c *driver.Claim) { c.Cost = 2 })},
		{Claims: spoiled(func(c *driver.Claim) { c.Cost = -1 })},
		{Claims: spoiled(func(c *driver.Claim) { c.Lease = driver.ID{} })},
		{Claims: spoiled(func(c *driver.Claim) { c.LeaseFor = 1 })},
		{Claims: spoiled(func(c *driver.Claim) { c.Rule = driver.NewSlots(0) })},
		{Claims: []driver.Claim{slotOn("a", 5, 1), shadow}},
		{Claims: []driver.Claim{slotOn("a", 5, 1), look}}, // no shadow, though it is sent as one
	}
	if err := s.Decide(t.Context(), time.Time{}, batch); err != nil {
		t.Fatal(err)
	}
	for i, e := range batch {
		equal(t, fmt.Sprint("entry ", i, " has an error"), e.Err != nil, i < 6)
		if e.Err != nil && !strings.HasPrefix(e.Err.Error(), "redisscript: ") {
			t.Error(e.Err)
		}
	}
	equal(t, "sent", client.sizes(), []int{2})

	client.calls = nil
	bucketRelease, short, unknown := slotChange(driver.Release, "a", 1), slotChange(driver.Renew, "a", 1), slotChange(9, "a", 1)
	bucketRelease.Rule, short.LeaseFor, unknown.Rule = five, time.Microsecond, five
	settle := driver.Change{Kind: driver.Settle, Policy: "p", Subject: "a", Rule: driver.NewSlots(5), Amount: 1}
	changes := []driver.Change{bucketRelease, short, slotChange(driver.Renew, "a", 2), unknown, settle, slotChange(driver.Release, "a", 3)}
	changes[1].Lost, changes[2].Lost = true, true
	err := s.Apply(t.Context(), time.Time{}, changes)
	if err == nil || len(strings.Split(err.Error(), "\n")) != 4 {
		t.Errorf("four changes are wrong: %v", err)
	}
	equal(t, "lost", []bool{changes[1].Lost, changes[2].Lost}, []bool{true, false}) // only the second was asked about
	equal(t, "released", client.plain(), []string{plainCall(zrem("a", 3))})
	equal(t, "calls", len(client.calls), 2)
}

// Releases go in one pipeline, a command for each key, while renewals and settlements go by the script.
func TestApplyMixed(t *testing.T) {
	bubble(t, func(t *testing.T, client *fakeClient, s *Store) {
		var changes []driver.Change
		for n := range byte(150) {
			changes = append(changes, slotChange(driver.Release, fmt.Sprint(n%2), n), slotChange(driver.Renew, "r", n))
		}
		changes = append(changes, driver.Change{Kind: driver.Settle, Policy: "p", Subject: "a", Rule: five, Amount: 1})
		done := apply(s, t.Context(), changes...)
		for range 4 {
			synctest.Wait()
			client.hold <- struct{}{}
		}
		equal(t, "error", <-done, nil)
		sizes := client.sizes()
		slices.Sort(sizes) // the two kinds go side by side
		equal(t, "calls", sizes, []int{0, 23, 64, 64})
		var even, odd []byte
		for n := range byte(75) {
			even, odd = append(even, 2*n), append(odd, 2*n+1)
		}
		equal(t, "released", client.plain(), []string{plainCall(zrem("0", even...), zrem("1", odd...))})
	})
}

// Lost is written where there was an answer, and only there.
func TestLostNeedsAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, client *fakeClient, s *Store) {
		changes := []driver.Change{slotChange(driver.Renew, "a", 1), slotChange(driver.Release, "a", 2)}
		changes[0].Lost = true
		client.fail = func(c fakeCall) error {
			if c.plain == nil {
				return errors.New("LOADING")
			}
			return nil
		}
		done := make(chan error, 1)
		again := func() {
			go func() { done <- s.Apply(t.Context(), time.Time{}, changes) }()
			synctest.Wait()
			client.hold <- struct{}{}
			client.hold <- struct{}{}
		}
		again()
		equal(t, "class", driver.ClassOf(<-done), driver.ClassLoading)
		equal(t, "lost", changes[0].Lost, true)
		client.fail = func(c fakeCall) error {
			if c.plain != nil {
				return errors.New("READONLY")
			}
			return nil
		}
		again()
		equal(t, "class", driver.ClassOf(<-done), driver.ClassReadOnly)
		equal(t, "lost", changes[0].Lost, false)

		// A caller that left is not written to.
		changes[0].Lost = true
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		client.fail = nil
		left := append([]driver.Change(nil), changes...)
		go func() { done <- s.Apply(ctx, time.Time{}, left) }()
		equal(t, "class", driver.ClassOf(<-done), driver.ClassTimeout)
		left[0].Lost = true // races with a late writer
		client.hold <- struct{}{}
		client.hold <- struct{}{}
		synctest.Wait()
		equal(t, "lost", left[0].Lost, true)
	})
}

// A plain job is sent alone; decisions that wait around it still go together.
func TestPlainJobsAreSentAlone(t *testing.T) {
	for plainFirst, want := range map[bool][]int{false: {1, 1, 3, 0, 0, 0}, true: {1, 1, 0, 3, 0, 0}} {
		bubble(t, func(t *testing.T, client *fakeClient, s *Store) {
			var all []<-chan result
			for i := range eager {
				all = append(all, decide(s, t.Context(), entries(fmt.Sprint("busy", i), 1, 1)))
				synctest.Wait()
			}
			var gives []<-chan error
			for i := range 6 {
				if (i%2 == 0) == plainFirst {
					gives = append(gives, apply(s, t.Context(), slotChange(driver.Release, "a", byte(i))))
				} else {
					all = append(all, decide(s, t.Context(), entries(fmt.Sprint("w", i), 1, 1)))
				}
				synctest.Wait()
			}
			for range eager + 4 {
				client.hold <- struct{}{}
				synctest.Wait()
			}
			equal(t, "calls", client.sizes(), want)
			for _, done := range all {
				r := <-done
				equal(t, "error", r.err, nil)
				equal(t, "remaining", r.batch[0].Claims[0].Result.Remaining, 4)
			}
			for _, done := range gives {
				equal(t, "error", <-done, nil)
			}
		})
	}
}

// A reset keeps its deadline although the client does not, and fails as a decision does.
func TestReset(t *testing.T) {
	bubble(t, func(t *testing.T, client *fakeClient, s *Store) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		start := time.Now()
		equal(t, "class", driver.ClassOf(s.Reset(ctx, "p", "a")), driver.ClassTimeout)
		equal(t, "waited", time.Since(start), 50*time.Millisecond)
		client.hold <- struct{}{}
		synctest.Wait()
		want := []string{"DEL"}
		for _, rule := range []driver.Rule{five, driver.NewWindow(driver.KindFixed, 1, time.Second), driver.NewSlots(1)} {
			want = append(want, s.KeyName("p", "a", rule))
		}
		equal(t, "sent", client.plain(), []string{plainCall(want)})
		client.fail = func(fakeCall) error { return errors.New("NOPERM no") }
		done := make(chan error)
		go func() { done <- s.Reset(t.Context(), "p", "a") }()
		client.hold <- struct{}{}
		err := <-done
		equal(t, "class", driver.ClassOf(err), driver.ClassAuth)
		if !strings.Contains(err.Error(), "+del") {
			t.Error(err)
		}
		client.fail = nil
		equal(t, "of a store that is wrong", driver.ClassOf(New(nil).Reset(t.Context(), "p", "a")), driver.ClassOther)
	})
}
