package redisscript

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
)

// Reported faults and promises about slots, on a real server and by its own clock.

// slotsOf are the slots of one key on a store.
type slotsOf struct {
	t       testing.TB
	s       *Store
	subject string
	max     int
}

// take asks for a slot under the lease of a number.
func (k slotsOf) take(n byte, life time.Duration) driver.Result {
	k.t.Helper()
	c := slotOn(k.subject, k.max, n)
	c.LeaseFor = life
	batch := entry(c)
	if err := errors.Join(k.s.Decide(k.t.Context(), time.Time{}, batch), batch[0].Err); err != nil {
		k.t.Fatal(err)
	}
	return batch[0].Claims[0].Result
}

// apply makes a change of the lease of a number and says whether it was lost.
func (k slotsOf) apply(kind driver.ChangeKind, n byte, life time.Duration) (lost bool) {
	k.t.Helper()
	c := slotChange(kind, k.subject, n)
	c.LeaseFor = life
	changes := []driver.Change{c}
	if err := k.s.Apply(k.t.Context(), time.Time{}, changes); err != nil {
		k.t.Fatal(err)
	}
	return changes[0].Lost
}

func (k slotsOf) key() string { return k.s.KeyName("p", k.subject, driver.NewSlots(k.max)) }

// every calls f each interval until it says that it is done, and fails after a time that only a broken store needs.
func every(t testing.TB, interval time.Duration, f func() (done bool)) {
	t.Helper()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for end := time.Now().Add(20 * time.Second); !f(); <-ticker.C {
		if time.Now().After(end) {
			t.Fatal("it does not happen")
		}
	}
}

func TestBR040_ExactlyTheSlots(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	var stores []*Store
	for range 4 {
		stores = append(stores, openStore(t, srv.Addr()))
	}
	for run := range 5 {
		var admitted atomic.Int64
		var wg sync.WaitGroup
		barrier := make(chan struct{})
		for i := range 500 {
			wg.Go(func() {
				c := slotOn(subject(t, fmt.Sprint(run)), 25, 0)
				c.Lease[3], c.Lease[4] = byte(i), byte(i>>8)
				batch := entry(c, claimOn(c.Subject, five, 0))
				<-barrier
				if err := stores[i%4].Decide(t.Context(), time.Time{}, batch); err != nil {
					t.Error(err)
				}
				if batch[0].Claims[0].Result.Allowed {
					admitted.Add(1)
				}
			})
		}
		close(barrier)
		wg.Wait()
		equal(t, "admitted", admitted.Load(), 25)
	}
}

func TestBR127_ReleasedTwice(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	k := slotsOf{t, openStore(t, srv.Addr()), subject(t, ""), 3}
	admits(t, "first", k.take(1, time.Minute), true, 2)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range 3 {
				k.apply(driver.Release, 1, 0)
			}
		})
	}
	wg.Wait()
	equal(t, "key", do(t, srv, "EXISTS", k.key()), int64(0))
	for n := range byte(5) {
		admits(t, fmt.Sprint("request ", n), k.take(10+n, time.Minute), n < 3, max(0, 2-int(n)))
	}
}

// The key lives as long as its leases may, at most two lease times and 2 ms, and ends without a further call.
func TestBR129_LeasesExpire(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	k := slotsOf{t, openStore(t, srv.Addr()), subject(t, ""), 5}
	// take returns the life of the key after a slot was taken, which is at least that of the lease less the time it took.
	take := func(n byte, life, longest time.Duration) {
		t.Helper()
		start := time.Now()
		if r := k.take(n, life); !r.Allowed {
			t.Errorf("lease %d: refused", n)
		}
		ttl, took := time.Duration(do(t, srv, "PTTL", k.key()).(int64))*time.Millisecond, time.Since(start)
		if ttl < longest-took-time.Millisecond || ttl > 2*longest+2*time.Millisecond {
			t.Errorf("lease %d of %v: PTTL %v after %v", n, life, ttl, took)
		}
	}
	for range 10 {
		take(1, 2*time.Second, 2*time.Second)
		k.apply(driver.Release, 1, 0)
		equal(t, "released", do(t, srv, "EXISTS", k.key()), int64(0))
	}
	take(1, 2*time.Minute, 2*time.Minute)
	take(2, time.Second, 2*time.Minute) // does not cut the other one short
	take(3, 10*time.Minute, 10*time.Minute)
	for n := range byte(4) {
		k.apply(driver.Release, n, 0)
	}

	const life = 300 * time.Millisecond
	start := time.Now()
	take(1, life, life)
	take(2, life, life)
	if k.apply(driver.Renew, 2, 2*life) {
		t.Error("the lease is lost")
	}
	taken := time.Now()
	every(t, 5*time.Millisecond, func() bool { return do(t, srv, "EXISTS", k.key()) == int64(0) })
	if age := time.Since(start); age < 2*life {
		t.Errorf("the key ended %v after its first lease", age)
	}
	if age := time.Since(taken); age > 4*life+2*time.Second {
		t.Errorf("the key ended %v after its last lease", age)
	}
}

// holder is what a child process is told: the address of a server and a subject.
const holder = "REDISSCRIPT_TEST_HOLDER"

const holderLease = 2 * time.Second

func TestMain(m *testing.M) {
	if told := os.Getenv(holder); told != "" {
		hold(strings.Cut(told, " "))
		return
	}
	os.Exit(m.Run())
}

// hold takes three slots, says when it began and waits for its end.
func hold(addr, subject string, _ bool) {
	s := New(&testClient{addr: addr})
	began := time.Now()
	batch := entry()
	for n := range byte(3) {
		c := slotOn(subject, 3, n)
		c.LeaseFor = holderLease
		batch = append(batch, entry(c)...)
	}
	if err := s.Decide(context.Background(), time.Time{}, batch); err != nil || !batch[3].Claims[0].Result.Allowed {
		fmt.Println("no slots:", err)
		return
	}
	fmt.Println(began.UnixMicro())
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent is gone
}

func TestBR130_ProcessKilledWhileHolding(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	k := slotsOf{t, openStore(t, srv.Addr()), "br130", 3}
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), holder+"="+srv.Addr()+" "+k.subject)
	_, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	micros, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil {
		t.Fatalf("the child says %q", line)
	}
	began, held := time.UnixMicro(micros), time.Now()
	_ = child.Process.Kill()
	_ = child.Wait()

	n, admitted := byte(100), 0
	every(t, 100*time.Millisecond, func() bool {
		for admitted < 3 && k.take(n, time.Minute).Allowed {
			if age := time.Since(began); age < holderLease {
				t.Errorf("a slot is back after %v", age)
			}
			n++
			admitted++
		}
		return admitted == 3
	})
	if age := time.Since(held); age > holderLease+5*time.Second {
		t.Errorf("the slots are back after %v", age)
	}
	admits(t, "a fourth", k.take(n, time.Minute), false, 0)
	equal(t, "held", do(t, srv, "ZCARD", k.key()), int64(3))
}

// A renewal makes a lease last; one that is over and was swept is lost, and what its holder does then hurts nobody.
func TestBR131_LongerThanItsLease(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	s := openStore(t, srv.Addr())
	const life = 300 * time.Millisecond
	renewed, not := slotsOf{t, s, subject(t, "renewed"), 1}, slotsOf{t, s, subject(t, "not"), 1}
	admits(t, "R1", renewed.take(1, life), true, 0)
	start := time.Now()
	admits(t, "R1, not renewed", not.take(1, life), true, 0)
	every(t, 20*time.Millisecond, func() bool {
		if renewed.apply(driver.Renew, 1, 10*time.Second) {
			t.Error("the lease is lost")
		}
		admits(t, "R2", renewed.take(2, life), false, 0)
		return time.Since(start) > 3*life
	})
	renewed.apply(driver.Release, 1, 0)
	admits(t, "R3", renewed.take(3, time.Minute), true, 0)
	renewed.apply(driver.Release, 1, 0) // late, and a second time
	admits(t, "R4", renewed.take(4, time.Minute), false, 0)

	admits(t, "R2, where R1 was not renewed", not.take(2, time.Minute), true, 0)
	if !not.apply(driver.Renew, 1, life) {
		t.Error("R1's lease is not lost")
	}
	not.apply(driver.Release, 1, 0)
	admits(t, "R3, where R2 holds", not.take(3, time.Minute), false, 0)
}
