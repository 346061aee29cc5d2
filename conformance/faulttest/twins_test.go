package faulttest_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-go/headgate/conformance/faulttest"
	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
)

// faults are what is wrong with a store or its client; the zero value is nothing.
type faults struct {
	repeats          bool // a decision that failed is made again
	waits            bool // the context is ignored, and so is the answer's time
	panics           bool // a failure is a panic
	keepsConnections bool // what failed is never closed
	leavesGoroutines bool // for each failure one waits for ever
	nonsenseIsAYes   bool // an answer that makes no sense admits
	givesUp          bool // after an outage nothing is tried again
	neverLoads       bool // the script is expected to be there
	asksTwice        bool // a look before each decision
	noPacks          bool // a call for each decision
	keepsKeys        bool // keys get no end
	hidesErrors      bool // a failure admits, and says nothing
	unclassed        bool // errors are passed on as they are
	slowToFail       bool // a failure is told six seconds late
	losesCommands    bool // what is no script is not sent
}

// twins are the broken stores, and for each the case that is there to catch its kind of fault.
var twins = []struct {
	name    string
	faults  faults
	witness string
}{
	{"repeats what failed", faults{repeats: true}, "lost_reply_is_charged_once"},
	{"repeats what failed", faults{repeats: true}, "timed_out_is_charged_once"},
	{"has no deadline", faults{waits: true}, "BR065_parallel_decisions_of_a_silent_server"},
	{"panics", faults{panics: true}, "dropped"},
	{"keeps connections that failed", faults{keepsConnections: true}, "BR064_late"},
	{"leaves a goroutine for each failure", faults{leavesGoroutines: true}, "BR064_refused"},
	{"takes nonsense for a yes", faults{nonsenseIsAYes: true}, "BR058_BR063_answers"},
	{"never asks again after an outage", faults{givesUp: true}, "killed_and_restarted"},
	{"expects the script to be there", faults{neverLoads: true}, "BR052_script_flush_and_restart"},
	{"looks before it decides", faults{asksTwice: true}, "BR077_one_call_per_decision"},
	{"makes a call for each decision", faults{noPacks: true}, "BR077_callers_share_calls"},
	{"gives keys no end", faults{keepsKeys: true}, "BR035_no_key_without_an_end"},
	{"hides errors", faults{hidesErrors: true}, "no_permission"},
	{"gives errors no class", faults{unclassed: true}, "out_of_memory"},
	{"fails late", faults{slowToFail: true}, "BR057_read_only"},
}

// TestTwins proves that each broken store is caught, by the case made for its fault.
func TestTwins(t *testing.T) {
	cases := map[string]faulttest.Case{}
	for _, c := range faulttest.Cases() {
		if _, ok := cases[c.Name]; ok || c.Why == "" {
			t.Errorf("case %s is there twice, or does not say why", c.Name)
		}
		cases[c.Name] = c
	}
	var running sync.WaitGroup
	free := make(chan struct{}, 6) // they wait most of the time, more than t.Parallel allows for
	for _, twin := range twins {
		test := func(t *testing.T) {
			c, ok := cases[twin.witness]
			if !ok {
				t.Fatalf("no case is named %s", twin.witness)
			}
			found := faulttest.Failures(t, c, func(tb testing.TB, addr string) driver.Store {
				return &brokenStore{Store: open(tb, addr, twin.faults), faults: twin.faults, addr: addr,
					never: make(chan struct{})}
			})
			if found == nil {
				t.Errorf("a store that %q passes %s", twin.name, twin.witness)
			}
			t.Log(strings.Join(found, "\n"))
		}
		free <- struct{}{}
		running.Go(func() {
			defer func() { <-free }()
			t.Run(strings.ReplaceAll(twin.name, " ", "_")+"/"+twin.witness, test)
		})
	}
	running.Wait()
}

// brokenStore is a sound store with faults.
type brokenStore struct {
	driver.Store
	faults faults
	addr   string
	never  chan struct{}
	failed atomic.Int64
	calls  atomic.Int64
}

// KeyName is what the sound store says.
func (s *brokenStore) KeyName(policy, subject string, rule driver.Rule) string {
	return s.Store.(driver.KeyNamer).KeyName(policy, subject, rule)
}

func (s *brokenStore) Decide(ctx context.Context, now time.Time, batch []driver.Entry) error {
	f := s.faults
	if f.givesUp && s.failed.Load() > 5 {
		return &driver.Error{Class: driver.ClassOther, Err: errors.New("given up")}
	}
	if f.noPacks {
		now = time.Now().Add(time.Duration(s.calls.Add(1)) * time.Second) // nothing else has this time
	}
	if f.waits {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), 8*time.Second)
		defer cancel()
	}
	if f.asksTwice {
		_ = s.Store.Decide(ctx, now, []driver.Entry{{Claims: []driver.Claim{look(batch[0].Claims[0])}}})
	}
	err := s.Store.Decide(ctx, now, batch)
	if err == nil {
		if f.keepsKeys {
			s.keep(batch)
		}
		return nil
	}
	s.failed.Add(1)
	switch {
	case f.leavesGoroutines:
		go func() { <-s.never }()
	case f.repeats:
		for range 5 {
			again, cancel := context.WithTimeout(context.WithoutCancel(ctx), 100*time.Millisecond)
			err = s.Store.Decide(again, now, batch)
			cancel()
			if err == nil {
				break
			}
		}
	case f.panics:
		panic(err)
	case f.hidesErrors, f.nonsenseIsAYes && driver.ClassOf(err) == driver.ClassProtocol:
		for i := range batch {
			for j := range batch[i].Claims {
				batch[i].Claims[j].Result = driver.Result{Allowed: true}
			}
		}
		return nil
	case f.unclassed:
		return errors.New(err.Error())
	case f.slowToFail:
		late, cancel := context.WithTimeout(context.Background(), 6*time.Second)
		defer cancel()
		<-late.Done()
	}
	return err
}

// look is a claim that takes nothing.
func look(c driver.Claim) driver.Claim {
	c.Cost = 0
	return c
}

// keep takes the ends of keys away.
func (s *brokenStore) keep(batch []driver.Entry) {
	conn, err := redistest.Dial(s.addr)
	if err != nil {
		return
	}
	defer conn.Close()
	for _, c := range batch[0].Claims {
		_, _ = conn.Do("PERSIST", s.KeyName(c.Policy, c.Subject, c.Rule))
	}
}
