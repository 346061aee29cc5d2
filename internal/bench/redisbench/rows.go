package redisbench

import (
	"fmt"

	"github.com/headgate-go/headgate/internal/bench/rounds"
)

// compared is a row that divides a figure of one benchmark by that of another.
type compared struct {
	what, ours, theirs, figure, unit string
	target                           rounds.Target
}

// rows are the targets for Redis, and what stands beside them without one.
func (s *Suite) rows(r *rounds.Results) []rounds.Row {
	list := []compared{
		{"script execution of one decision, pipeline of 16, against GET + SET PX in a script", floodBucket, floodFloor, "execution", "us", rounds.AtMost(1.6)},
		{"the same of the hash bucket script", floodHash, floodFloor, "execution", "us", rounds.Target{}},
		{"server CPU of rate + concurrency in one call, against rate alone, one call at a time (the release, a ZREM later, not included); " +
			"the tenant has another request in flight", floodBusy1, floodOne, "cpu", "us", rounds.AtMost(1.6)},
		{"the same, pipeline of 16", floodBusy, floodBucket, "cpu", "us", rounds.AtMost(2)},
		{"the same, one call at a time; the tenant has none, so a set is made and given a life", floodBoth1, floodOne, "cpu", "us", rounds.AtMost(1.6)},
		{"the same, pipeline of 16; the tenant has none", floodBoth, floodBucket, "cpu", "us", rounds.AtMost(2)},
	}
	speed := func(what string, ours, theirs contender, callers int, target rounds.Target) {
		list = append(list, compared{fmt.Sprintf("decisions per second, %s, %s", what, callersOf(callers)), with(ours, callers), with(theirs, callers), "rate", "/s", target})
	}
	for _, callers := range []int{16, 64, 256} {
		speed("one call per decision through go-redis, against redis_rate", aloneGoRedis, redisRate, callers, rounds.AtLeast(1.15))
	}
	speed("one call per decision through rueidis, against redis_rate", aloneRueidis, redisRate, 64, rounds.AtLeast(2.4))
	speed("headgate's script by a bare EVALSHA through go-redis, against redis_rate", bareGoRedis, redisRate, 64, rounds.Target{})
	speed("one call per decision through go-redis, against a bare EVALSHA", aloneGoRedis, bareGoRedis, 64, rounds.Target{})
	speed("one call per decision through rueidis, against a bare EVALSHA", aloneRueidis, bareRueidis, 64, rounds.Target{})
	for _, way := range []struct {
		name   string
		ours   contender
		target bool
	}{
		{"go-redis", storeGoRedis, true}, {"rueidis", storeRueidis, true},
		{"gate.Admit and go-redis", gateGoRedis, false}, {"gate.Admit and rueidis", gateRueidis, false},
	} {
		aims := func(t rounds.Target) rounds.Target {
			if way.target {
				return t
			}
			return rounds.Target{}
		}
		speed("packed through "+way.name+", against redis_rate", way.ours, redisRate, 64, aims(rounds.AtLeast(3)))
		speed("packed through "+way.name+", against redis_rate", way.ours, redisRate, 256, aims(rounds.AtLeast(5)))
		for _, callers := range []int{64, 256} {
			list = append(list, compared{"99th percentile, packed through " + way.name + ", against redis_rate, " + callersOf(callers),
				with(way.ours, callers), with(redisRate, callers), "p99", "us", aims(rounds.AtMost(0.4))})
		}
		list = append(list, compared{"server CPU per decision, packed through " + way.name + ", against redis_rate, 256 callers",
			with(way.ours, 256), with(redisRate, 256), "cpu", "us", aims(rounds.AtMost(0.22))})
	}
	speed("through go-redis, against redis_rate", storeGoRedis, redisRate, 1, rounds.AtLeast(0.95))
	speed("through rueidis, against redis_rate", storeRueidis, redisRate, 1, rounds.Target{})
	speed("through gate.Admit and go-redis, against redis_rate", gateGoRedis, redisRate, 1, rounds.Target{})
	list = append(list, compared{"ceiling of one node (1e6 / server us per decision), 64 decisions a call, against the hash bucket script at a pipeline of 16",
		floodPacked, floodHash, "ceiling", "/s", rounds.AtLeast(3.2)})

	var rows []rounds.Row
	for _, c := range list {
		ours, theirs := rounds.Of(c.ours, c.figure), rounds.Of(c.theirs, c.figure)
		rows = append(rows, rounds.Row{What: c.what, Value: r.Eval(rounds.Ratio(ours, theirs)), Target: c.target,
			Detail: fmt.Sprintf("%s against %s %s", rounds.Number(r.Eval(ours).Median), rounds.Number(r.Eval(theirs).Median), c.unit)})
	}
	for _, way := range []struct {
		name       string
		ours, bare contender
	}{{"go-redis", storeGoRedis, bareGoRedis}, {"rueidis", storeRueidis, bareRueidis}} {
		ours, bare := rounds.Of(with(way.ours, 1), "allocs"), rounds.Of(with(way.bare, 1), "allocs")
		rows = append(rows, rounds.Row{What: "allocations of a decision through " + way.name + " above a bare EVALSHA, 1 caller",
			Value: r.Eval(rounds.Minus(ours, bare)), Target: rounds.AtMost(2),
			Detail: fmt.Sprintf("%s against %s", rounds.Number(r.Eval(ours).Median), rounds.Number(r.Eval(bare).Median))})
	}
	return rows
}

func callersOf(n int) string {
	if n == 1 {
		return "1 caller"
	}
	return fmt.Sprintf("%d callers", n)
}

// report is the section of BENCHMARKS.md.
func (s *Suite) report(r *rounds.Results, setting rounds.Setting) string {
	return setting.String() + "\n" + rounds.Table(s.rows(r)) + "\nMedians of every benchmark:\n\n" + r.Medians(s.list,
		rounds.Column{Title: "decisions/s", Figure: "rate"}, rounds.Column{Title: "p50 us", Figure: "p50"},
		rounds.Column{Title: "p99 us", Figure: "p99"}, rounds.Column{Title: "server CPU us per decision", Figure: "cpu"},
		rounds.Column{Title: "script us per decision", Figure: "execution"}, rounds.Column{Title: "decisions per call", Figure: "share"},
		rounds.Column{Title: "allocations per decision", Figure: "allocs"}, rounds.Column{Title: "1e6 / server CPU us", Figure: "ceiling"})
}
