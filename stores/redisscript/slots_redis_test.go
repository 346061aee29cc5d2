package redisscript

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
)

// all is one request with a rate, slots, and shadow copies of both.
func all(subject string, n byte) []driver.Entry {
	rate, slots := claimOn(subject, five, 1), slotOn(subject, 2, n)
	shadowRate, shadowSlots := claimOn(subject, bucket(1, time.Hour, 9), 1), slotOn(subject, 9, n+100)
	shadowRate.Policy, shadowSlots.Policy, shadowRate.Shadow, shadowSlots.Shadow = "s", "s", true, true
	return entry(rate, slots, shadowRate, shadowSlots)
}

// Everything that a request claims is one call, and a refusal by one claim takes nothing of the others.
func TestRateAndSlotsAreOneCall(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	s, key := openStore(t, srv.Addr()), subject(t, "")
	equal(t, "the script is loaded", one(t, s, time.Time{}, "x", five, 0).Allowed, true)
	ask := func(n byte, want ...driver.Result) {
		t.Helper()
		do(t, srv, "CONFIG", "RESETSTAT")
		batch := all(key, n)
		if err := s.Decide(t.Context(), at(0), batch); err != nil {
			t.Fatal(err)
		}
		stats, err := srv.CommandStats()
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "EVALSHA", stats["evalsha"].Calls, int64(1))
		equal(t, "EVAL", stats["eval"].Calls, int64(0))
		for i, r := range want {
			got := batch[0].Claims[i].Result
			admits(t, fmt.Sprintf("request %d, claim %d", n, i), got, r.Allowed, r.Remaining)
			equal(t, "reason", got.Reason, r.Reason)
		}
	}
	fits := func(left int) driver.Result { return driver.Result{Allowed: true, Remaining: left} }
	refused := driver.Result{Reason: driver.ReasonLimit}
	ask(1, fits(4), fits(1), fits(8), fits(8))
	ask(2, fits(3), fits(0), fits(7), fits(7))
	ask(3, fits(3), refused, fits(7), fits(7)) // by the slots
	ask(4, fits(3), refused, fits(7), fits(7))
	if err := s.Apply(t.Context(), at(0), []driver.Change{slotChange(driver.Release, key, 1), slotChange(driver.Release, key, 2)}); err != nil {
		t.Fatal(err)
	}
	admits(t, "the rest of the rate", one(t, s, at(0), key, five, 3), true, 0)
	ask(5, refused, fits(2), fits(7), fits(7)) // by the rate
	equal(t, "slots held", do(t, srv, "EXISTS", s.KeyName("p", key, driver.NewSlots(2))), int64(0))
	equal(t, "shadow slots held", do(t, srv, "ZCARD", s.KeyName("s", key, driver.NewSlots(9))), int64(2))
}

// The script is lost between two calls of a lease's life, and within the deadline it is there again.
func TestBR052_SlotsWhenTheServerForgetsTheScript(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	k := slotsOf{t, openStore(t, srv.Addr()), subject(t, ""), 2}
	flush := func() { do(t, srv, "SCRIPT", "FLUSH") }
	flush()
	admits(t, "first", k.take(1, time.Minute), true, 1)
	flush()
	admits(t, "second", k.take(2, time.Minute), true, 0)
	flush()
	equal(t, "lost", k.apply(driver.Renew, 1, time.Hour), false)
	equal(t, "lost", k.apply(driver.Renew, 3, time.Hour), true)
	flush()
	k.apply(driver.Release, 1, 0) // without the script
	stats, err := srv.CommandStats()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "EVAL", stats["eval"].Calls, int64(3))
	equal(t, "held", do(t, srv, "ZCARD", k.key()), int64(1))
}

// A foreign value where slots should be fails its own request and its own changes.
func TestForeignValueInsteadOfSlots(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	s := openStore(t, srv.Addr())
	do(t, srv, "SET", slotKey("bad"), "x")
	err := s.Decide(t.Context(), time.Time{}, append(entry(slotOn("good", 5, 1)), entry(slotOn("bad", 5, 2))...))
	if driver.ClassOf(err) != driver.ClassOther || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("error %v", err)
	}
	equal(t, "nothing was taken", do(t, srv, "EXISTS", slotKey("good")), int64(0))
	good := slotsOf{t, s, "good", 5}
	good.take(1, time.Minute)
	err = s.Apply(t.Context(), time.Time{}, []driver.Change{slotChange(driver.Release, "bad", 2), slotChange(driver.Release, "good", 1)})
	if !strings.Contains(fmt.Sprint(err), "WRONGTYPE") {
		t.Errorf("error %v", err)
	}
	equal(t, "the other release", do(t, srv, "EXISTS", slotKey("good")), int64(0))
	equal(t, "the value", do(t, srv, "GET", slotKey("bad")), "x")
	if err := s.Reset(t.Context(), "p", "bad"); err != nil {
		t.Error(err)
	}
	equal(t, "after a reset", do(t, srv, "EXISTS", slotKey("bad")), int64(0))
}

// A reset makes a subject new under one policy, whatever its rule was.
func TestResetOnAServer(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	s, key := openStore(t, srv.Addr()), subject(t, "")
	rules := []driver.Rule{five, driver.NewWindow(driver.KindSliding, 5, time.Hour), driver.NewSlots(5)}
	take := func() {
		for _, policy := range []string{"p", "q"} {
			claims := []driver.Claim{claimOn(key, rules[0], 1), claimOn(key, rules[1], 1), slotOn(key, 5, 1)}
			for i := range claims {
				claims[i].Policy = policy
			}
			batch := entry(claims...)
			if err := s.Decide(t.Context(), time.Time{}, batch); err != nil || batch[0].Err != nil {
				t.Fatal(err, batch[0].Err)
			}
		}
	}
	for range 2 {
		take()
		if err := s.Reset(t.Context(), "p", key); err != nil {
			t.Fatal(err)
		}
		for _, rule := range rules {
			equal(t, "reset", do(t, srv, "EXISTS", s.KeyName("p", key, rule)), int64(0))
			equal(t, "another policy", do(t, srv, "EXISTS", s.KeyName("q", key, rule)), int64(1))
		}
	}
	k := slotsOf{t, s, key, 5}
	equal(t, "a lease from before", k.apply(driver.Renew, 1, time.Minute), true)
}

// A slot that was taken after its caller's deadline is free again soon after the server answered.
func TestSlotTakenTooLateIsGivenBack(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	s := openStore(t, srv.Addr())
	one(t, s, time.Time{}, "x", five, 0) // connects and loads
	srv.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	equal(t, "class", driver.ClassOf(s.Decide(ctx, time.Time{}, entry(slotOn("late", 5, 1)))), driver.ClassTimeout)
	srv.Resume()
	if err := s.Close(); err != nil { // waits for the call, and for what follows from it
		t.Fatal(err)
	}
	stats, err := srv.CommandStats()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "slots taken and given back", []int64{stats["zadd"].Calls, stats["zrem"].Calls}, []int64{1, 1})
	equal(t, "held", do(t, srv, "EXISTS", slotKey("late")), int64(0))
}
