package redisscript

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
)

// floorScript is what every decision is measured against: one GET and one SET with an expiry.
const floorScript = `local v = redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return v`

const benchKeys = 10_000

// load is one way to use the script.
type load struct {
	name string
	text string
	per  int // decisions in a call
	args func() []string
	us   []float64 // by round: microseconds of the server per decision
}

// loads returns the floor first. Keys of different loads do not meet.
func loads() []*load {
	some := func(name string, n int) []string {
		first := rand.IntN(benchKeys)
		keys := make([]string, n)
		for i := range keys {
			keys[i] = fmt.Sprintf("%5.5s:{%022d}:tenant:bench:b1", name, (first+i*7)%benchKeys)
		}
		return keys
	}
	call := func(name string, keys int, arg string) func() []string {
		return func() []string { return append(append([]string{fmt.Sprint(keys)}, some(name, keys)...), arg) }
	}
	big := []float64{1e9, 1, 60e6, 1} // never refused, and alive for a minute
	refused := []float64{1e9, 1, 60e6, 1e9 + 1}
	differ := func(n int) (out string) {
		for i := range n {
			out += rec(opBucket, flagLast, i+1, 1, 1e9, 1, 60e6+float64(i), 1)
		}
		return out
	}
	return []*load{
		{name: "floor", text: floorScript, per: 1, args: func() []string {
			return append(append([]string{"1"}, some("floor", 1)...), doubles(1, 2, 3), "60000")
		}},
		{name: "bucket", per: 1, args: call("bucket", 1, doubles(big...))},
		{name: "refused", per: 1, args: call("bucket", 1, doubles(refused...))},
		{name: "general", per: 1, args: call("general", 1, head(1, differ(1)))},
		{name: "fixed", per: 1, args: call("fixed", 1, head(1, rec(opFixed, flagLast, 1, 1, 1e9, 0, 60e6, 1)))},
		{name: "sliding", per: 1, args: call("sliding", 1, head(1, rec(opSliding, flagLast, 1, 1, 1e9, 0, 60e6, 1)))},
		{name: "each-8", per: 8, args: call("each8", 8, head(8, rec(opEach, 0, 1, 8, big...)))},
		{name: "each-32", per: 32, args: call("each3", 32, head(32, rec(opEach, 0, 1, 32, big...)))},
		{name: "each-64", per: 64, args: call("each6", 64, head(64, rec(opEach, 0, 1, 64, big...)))},
		{name: "differ-32", per: 32, args: call("diff", 32, head(32, differ(32)))},
		{name: "hot-32", per: 32, args: call("hot", 1, head(1, rec(opRepeat, 0, 1, 32, big...)))},
	}
}

// BenchmarkScript measures what the server spends on a decision (INFO commandstats, 16 calls in a pipeline), in
// interleaved rounds, and reports the median of the ratios to the floor of the same round.
func BenchmarkScript(b *testing.B) {
	srv := redistest.Start(b, redistest.Single)
	conn, err := redistest.Dial(srv.Addr())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	all := loads()
	round := func(l *load, pipelines int) {
		text := l.text
		if text == "" {
			text = script
		}
		if _, err := conn.Do("SCRIPT", "LOAD", text); err != nil {
			b.Fatal(err)
		}
		do(b, srv, "CONFIG", "RESETSTAT")
		for range pipelines {
			var commands [][]string
			for range 16 {
				commands = append(commands, append([]string{"EVALSHA", sha1Hex(text)}, l.args()...))
			}
			replies, err := conn.Pipe(commands...)
			if err != nil {
				b.Fatal(err)
			}
			if answer, ok := replies[0].(redistest.Error); ok {
				b.Fatal(l.name, answer)
			}
		}
		stats, err := srv.CommandStats()
		if err != nil {
			b.Fatal(err)
		}
		stat := stats["evalsha"]
		l.us = append(l.us, float64(stat.Usec)/float64(stat.Calls)/float64(l.per))
	}
	for _, l := range all { // fill the keys
		round(l, 3*benchKeys/16/l.per)
		l.us = nil
	}
	for b.Loop() {
		for _, l := range all {
			round(l, max(20, 400/l.per))
		}
	}
	for _, l := range all[1:] {
		ratios := make([]float64, len(l.us))
		for i := range ratios {
			ratios[i] = l.us[i] / all[0].us[i]
		}
		b.ReportMetric(median(ratios), l.name+"/floor")
	}
	b.ReportMetric(median(all[0].us), "floor-us")
	b.ReportMetric(0, "ns/op")
}

func median(x []float64) float64 {
	x = slices.Clone(x)
	slices.Sort(x)
	return x[len(x)/2]
}

// BenchmarkStore compares decisions through the senders with one call per decision on the caller's own goroutine.
func BenchmarkStore(b *testing.B) {
	srv := redistest.Start(b, redistest.Single)
	client := newClient(b, srv.Addr())
	if _, err := srv.Do("SCRIPT", "LOAD", script); err != nil {
		b.Fatal(err)
	}
	s := New(client)
	defer s.Close()
	rule := bucket(1000, time.Second, 1000)
	subjects := make([]string, benchKeys)
	for i := range subjects {
		subjects[i] = subject(b, fmt.Sprint(i))
	}
	direct := func(batch []driver.Entry) error {
		var r request
		var p pack
		if err := r.add("hg", &batch[0]); err != nil {
			return err
		}
		arg := p.encode([]*request{&r})
		ctx := driver.WithDeadlineOnly(b.Context(), time.Now().Add(time.Minute))
		reply, err := client.EvalSHA(ctx, scriptSHA, p.keys, []string{arg})
		if err != nil {
			return err
		}
		return p.decode(reply)
	}
	packed := func(batch []driver.Entry) error {
		return s.Decide(driver.WithDeadlineOnly(b.Context(), time.Now().Add(time.Minute)), time.Time{}, batch)
	}
	for _, callers := range []int{1, 16, 64, 256} {
		for _, way := range []struct {
			name string
			ask  func([]driver.Entry) error
		}{{"direct", direct}, {"packed", packed}} {
			b.Run(fmt.Sprintf("%s/%d", way.name, callers), func(b *testing.B) {
				do(b, srv, "CONFIG", "RESETSTAT")
				var next atomic.Int64
				var wg sync.WaitGroup
				waits := make([][]float64, callers)
				for i := range callers {
					wg.Go(func() {
						batch := entry(claimOn("", rule, 1))
						for next.Add(1) <= int64(b.N) {
							batch[0].Claims[0].Subject = subjects[rand.IntN(benchKeys)]
							start := time.Now()
							if err := way.ask(batch); err != nil {
								b.Error(err)
								return
							}
							waits[i] = append(waits[i], float64(time.Since(start).Microseconds()))
						}
					})
				}
				wg.Wait()
				all := slices.Concat(waits...)
				slices.Sort(all)
				b.ReportMetric(all[len(all)*99/100], "p99-us")
				if stats, err := srv.CommandStats(); err == nil {
					b.ReportMetric(float64(b.N)/float64(stats["evalsha"].Calls), "decisions/call")
				}
			})
		}
	}
}
