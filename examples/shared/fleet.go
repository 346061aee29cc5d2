package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// fleet is the processes and the tenant that sends to them.
type fleet struct {
	processes [processes]*exec.Cmd
	addrs     [processes]string
	http      *http.Client
}

func startFleet(ctx context.Context, client, redis string) (*fleet, error) {
	f := &fleet{http: &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: offered}}}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for i := range f.processes {
		cmd := exec.CommandContext(ctx, program, "-client", client, "-worker", redis)
		cmd.Stderr = &indented{prefix: fmt.Sprintf("          process %d: ", i+1)}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			f.stop()
			return nil, err
		}
		f.processes[i] = cmd
		if f.addrs[i], err = bufio.NewReader(out).ReadString('\n'); err != nil {
			f.stop()
			return nil, fmt.Errorf("process %d did not start: %w", i+1, err)
		}
		f.addrs[i] = strings.TrimSpace(f.addrs[i])
	}
	return f, nil
}

func (f *fleet) stop() {
	for _, cmd := range f.processes {
		if cmd != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // killed, as it should be
		}
	}
}

// row is what became of one second's requests.
type row struct {
	by                            [processes]int // let in and counted, by process
	allowed, refused, open, other int
	slowest                       time.Duration
	took                          time.Duration // a busy machine's second is longer
}

// second sends the tenant's requests, evenly, and returns when a second is over and all are answered.
func (f *fleet) second(ctx context.Context) (row, error) {
	var (
		r   row
		mu  sync.Mutex
		wg  sync.WaitGroup
		err error
	)
	began := time.Now()
	ticker := time.NewTicker(time.Second / offered)
	defer ticker.Stop()
	for i := range offered {
		wg.Go(func() {
			start := time.Now()
			status, outcome, e := f.ask(ctx, f.addrs[i%processes])
			took := time.Since(start)
			mu.Lock()
			defer mu.Unlock()
			r.slowest = max(r.slowest, took)
			switch {
			case e != nil:
				err = errors.Join(err, e)
			case status == http.StatusOK && outcome == "fail_open":
				r.open++
			case status == http.StatusOK:
				r.allowed++
				r.by[i%processes]++
			case status == http.StatusTooManyRequests:
				r.refused++
			default:
				r.other++
			}
		})
		<-ticker.C
	}
	wg.Wait()
	r.took = time.Since(began)
	return r, err
}

func (f *fleet) ask(ctx context.Context, addr string) (status int, outcome string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/", nil)
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("X-Api-Key", "acme")
	resp, err := f.http.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Header.Get("X-Outcome"), err
}

// indented writes a process's log lines under the table, shortened to fit it.
type indented struct{ prefix string }

func (w *indented) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if at := strings.Index(line, "headgate:"); at >= 0 {
			line = line[at:]
		}
		if len(line) > 100 {
			line = line[:97] + "..."
		}
		fmt.Println(w.prefix + line)
	}
	return len(b), nil
}

// tally holds what the acts must show.
type tally struct{ healthy, stopped, back, last row }

func (t *tally) add(second int, r row) {
	act := &t.back
	switch {
	case second < healthyUntil:
		act = &t.healthy
	case second < stoppedUntil:
		act = &t.stopped
	}
	act.allowed += r.allowed
	act.refused += r.refused
	act.open += r.open
	act.other += r.other
	act.slowest = max(act.slowest, r.slowest)
	act.took += r.took
	t.last = r
}

func (t *tally) check() error {
	var errs []error
	expect := func(ok bool, promise string) {
		verdict := "ok   "
		if !ok {
			verdict = "BROKEN"
			errs = append(errs, errors.New(promise))
		}
		fmt.Printf("  %s %s\n", verdict, promise)
	}
	fmt.Println()
	for _, act := range []struct {
		name string
		row
		least int
	}{{"", t.healthy, burst + rate*(healthyUntil-1)}, {" with an empty Redis", t.back, 1}} {
		most := burst + int(rate*act.took.Seconds()) + 1
		expect(act.allowed >= act.least && act.allowed <= most,
			fmt.Sprintf("three processes%s let in what one limit allows: %d, of %d to %d", act.name, act.allowed, act.least, most))
	}
	expect(t.healthy.other+t.stopped.other+t.back.other == 0, "nobody was answered anything but 200 or 429")
	expect(t.healthy.open == 0, "nothing failed open while Redis was there")
	expect(t.stopped.open > 0 && t.stopped.refused < offered, "without Redis requests pass, and are counted as failed open")
	expect(t.stopped.slowest < time.Second, fmt.Sprintf("and nobody waited for it: %v at most", t.stopped.slowest.Round(time.Millisecond)))
	expect(t.last.open == 0 && t.last.refused > 0, "the limit holds again after Redis is back")
	return errors.Join(errs...)
}
