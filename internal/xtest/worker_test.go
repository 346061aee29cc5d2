package xtest_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
	"github.com/headgate-go/headgate/stores/goredisstore"
	"github.com/headgate-go/headgate/stores/rueidisstore"
)

// This test program is also a service: with workerClient set it obeys orders on its standard input, as a process of its own
// that can be killed.
const (
	workerClient = "HEADGATE_WORKER_CLIENT"
	workerAddr   = "HEADGATE_WORKER_ADDR"
)

func TestMain(m *testing.M) {
	if client := os.Getenv(workerClient); client != "" {
		if err := work(client, os.Getenv(workerAddr), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// order is what a worker is told, and report what it answers.
type order struct {
	Op     string // admit, settle, done, hold
	ID     int    // of the admission
	At     int64  // microseconds: the time of the order
	Tenant string
	Rule   string // as limit.Parse reads it
	Cost   int
	Gives  string // "failed", "successful" or nothing
	Failed bool   // done: how the work ended
	Sends  bool   // settle, done: the store is told something, which is to be waited for
	Slots  int    // hold: so many, for as long as the process lives
	Lease  time.Duration
}

type report struct {
	Error                  string
	Allowed                bool
	Remaining              int
	RetryAfter, ResetAfter time.Duration
	Held                   int
}

// admission is a request in flight. It has a gate of its own, since rules change from one to the next.
type admission struct {
	a  *gate.Admission
	at int64
}

type worker struct {
	store told
	open  map[int]*admission
}

// told is a store that says when it was told something: a gate does that off the request's path.
type told struct {
	driver.Store
	applied chan struct{}
}

func (s told) Apply(ctx context.Context, now time.Time, changes []driver.Change) error {
	defer func() { s.applied <- struct{}{} }()
	return s.Store.Apply(ctx, now, changes)
}

func work(client, addr string, in io.Reader, out io.Writer) error {
	w := worker{open: map[int]*admission{}, store: told{applied: make(chan struct{}, 1000)}}
	switch client {
	case "goredis":
		w.store.Store = goredisstore.New(redis.NewClient(&redis.Options{Addr: addr}))
	default:
		c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
		if err != nil {
			return err
		}
		w.store.Store = rueidisstore.New(c)
	}
	orders, reports := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		r, err := w.obey(o)
		if err != nil {
			r.Error = err.Error()
		}
		if err := reports.Encode(r); err != nil {
			return err
		}
	}
}

func (w *worker) obey(o order) (report, error) {
	if o.Op == "hold" {
		return w.hold(o)
	}
	if o.Op == "admit" {
		return w.admit(o)
	}
	x := w.open[o.ID]
	x.at = o.At
	if o.Op == "settle" {
		x.a.Settle("p", o.Cost)
	} else {
		delete(w.open, o.ID)
		x.a.Done(map[bool]error{true: errors.New("failed")}[o.Failed])
	}
	if o.Sends {
		<-w.store.applied
	}
	return report{}, nil
}

func (w *worker) admit(o order) (report, error) {
	rule, err := limit.Parse(o.Rule)
	if err != nil {
		return report{}, err
	}
	x := &admission{at: o.At}
	g, err := gate.New(gate.Config{
		Store: w.store, StoreTimeout: steady, Clock: func() time.Time { return time.UnixMicro(x.at) },
		Limiters: []gate.Limiter{gate.RequestRate{Name: "p", Limit: rule, Key: gate.Value("tenant"),
			Cost:       func(r gate.Request) int { return r.Value("cost").(int) },
			SkipFailed: o.Gives == "failed", SkipSuccessful: o.Gives == "successful"}},
	})
	if err != nil {
		return report{}, err
	}
	x.a = g.Admit(context.Background(), gate.Call{Values: map[string]any{"tenant": o.Tenant, "cost": o.Cost}})
	d, _ := x.a.Decision("p")
	w.open[o.ID] = x
	return report{Allowed: x.a.Allowed(), Remaining: d.Remaining, RetryAfter: d.RetryAfter, ResetAfter: d.ResetAfter}, d.Err
}

func (w *worker) hold(o order) (r report, err error) {
	g, err := holdingGate(w.store.Store, o.Slots, o.Lease)
	if err != nil {
		return r, err
	}
	for range o.Slots {
		if g.Admit(context.Background(), gate.Call{}).Allowed() {
			r.Held++
		}
	}
	return r, nil
}

func holdingGate(store driver.Store, slots int, lease time.Duration) (*gate.Gate, error) {
	return gate.New(gate.Config{Store: store, StoreTimeout: steady, Limiters: []gate.Limiter{
		gate.ConcurrentRequests{Name: "slots", Max: slots, Key: gate.Const("k"), LeaseTime: lease}}})
}

// process is a worker as its parent sees it.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	orders *json.Encoder
	answer *json.Decoder
}

func startWorker(t *testing.T, client, addr string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerClient+"="+client, workerAddr+"="+addr)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // ends it
		_ = cmd.Wait()
	})
	return &process{t: t, cmd: cmd, orders: json.NewEncoder(in), answer: json.NewDecoder(out)}
}

func (p *process) tell(o order) (r report) {
	p.t.Helper()
	err := p.orders.Encode(o)
	if err = cmp.Or(err, p.answer.Decode(&r)); err != nil {
		p.t.Fatalf("worker: %+v: %v", o, err)
	}
	if r.Error != "" {
		p.t.Fatalf("worker: %+v: %s", o, r.Error)
	}
	return r
}
