package faulttest

import (
	"encoding/binary"
	"math"
	"net/http"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
)

// answers are what a server, or something that stands in for one, may say to a script.
var answers = []struct {
	name, raw string
	class     driver.Class
	hangs     bool // the answer is not complete: the connection is of no use any more
}{
	{"cluster down", "-CLUSTERDOWN Hash slot not served\r\n", driver.ClassClusterDown, false},
	{"moved", "-MOVED 3999 127.0.0.1:1\r\n", driver.ClassClusterDown, false},
	{"try again", "-TRYAGAIN Multiple keys request during rehashing of slot\r\n", driver.ClassClusterDown, false},
	{"master down", "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n", driver.ClassClusterDown, false},
	{"loading", "-LOADING Redis is loading the dataset in memory\r\n", driver.ClassLoading, false},
	{"read only", "-READONLY You can't write against a read only replica.\r\n", driver.ClassReadOnly, false},
	{"no auth", "-NOAUTH Authentication required.\r\n", driver.ClassAuth, false},
	{"no permission", "-NOPERM this user has no permissions to run the 'evalsha' command\r\n", driver.ClassAuth, false},
	{"busy", "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n", driver.ClassBusy, false},
	{"out of memory", "-OOM command not allowed when used memory > 'maxmemory'.\r\n", driver.ClassOOM, false},
	{"cannot persist", "-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.\r\n", driver.ClassOOM, false},
	{"no script, nor with its text", "-NOSCRIPT No matching script. Please use EVAL.\r\n", driver.ClassNoScript, false},
	{"unknown command", "-ERR unknown command 'EVALSHA', with args beginning with: \r\n", driver.ClassOther, false},
	{"half a reply", "$16\r\nabc", driver.ClassTimeout, true},
	{"an integer", ":1\r\n", driver.ClassProtocol, false},
	{"zero", ":0\r\n", driver.ClassProtocol, false},
	{"an empty array", "*0\r\n", driver.ClassProtocol, false},
	{"an array of one", "*1\r\n:1\r\n", driver.ClassProtocol, false},
	{"nil", "$-1\r\n", driver.ClassProtocol, false},
	{"null", "_\r\n", driver.ClassProtocol, false},
	{"false", "#f\r\n", driver.ClassProtocol, false},
	{"a short string", "$1\r\n0\r\n", driver.ClassProtocol, false},
	{"a double", ",0.0\r\n", driver.ClassProtocol, false},
	{"OK", "+OK\r\n", driver.ClassProtocol, false},
	{"not a number", bulk(math.NaN(), 0), driver.ClassProtocol, false},
	{"more than the bucket holds", bulk(plenty+1, 0), driver.ClassProtocol, false},
	{"half a token", bulk(0.5, 0), driver.ClassProtocol, false},
	{"a negative fraction", bulk(1, -1), driver.ClassProtocol, false},
}

// bulk is a reply of the script's own form.
func bulk(numbers ...float64) string {
	var body []byte
	for _, x := range numbers {
		body = binary.LittleEndian.AppendUint64(body, math.Float64bits(x))
	}
	return "$16\r\n" + string(body) + "\r\n"
}

var answerCases = []Case{
	{Name: "BR058_BR063_answers", Why: "an answer that nobody expected, taken for a refusal is an outage, for an admission a limit that is off " +
		"unseen, for a panic both", run: func(s *scene) {
		// The deadline is long, so that a busy machine does not make a timeout of an answer.
		sv := s.serve(s.proxied(), gate.Config{Limiters: []gate.Limiter{tenants(plenty)}, StoreTimeout: answered / 2})
		sv.settled("at first", "a", patience)
		for _, a := range answers {
			n := sv.watch.count()
			s.proxy.Garbage(a.raw, "EVALSHA", "EVAL")
			for range 2 {
				if r := sv.get("a"); r.err == nil && (r.decided() || r.status != http.StatusOK) {
					sv.failf("%s: answered with status %d, %v", a.name, r.status, r.header)
				}
			}
			if a.hangs {
				s.proxy.Drop()
			}
			s.proxy.Pass()
			for _, e := range sv.watch.since(n) {
				if got := e.class(); got != a.class {
					sv.failf("%s: class %q, want %q: %v", a.name, got, a.class, e.decisions[0].Err)
				}
			}
			// Each failure among enough that are none: the breaker is another case's.
			sv.settled("after "+a.name, "a", patience)
			for range 4 {
				sv.get("a")
			}
		}
		if changes := sv.watch.changes(); len(changes) > 0 {
			sv.failf("the breaker changed to %q", changes)
		}
		sv.audit(1)
	}},
}

var onceCases = []Case{
	{Name: "lost_reply_is_charged_once", Why: "a client that repeats what it got no answer to charges one request twice: it may have been executed",
		run: func(s *scene) {
			sv := s.serve(s.proxied(), gate.Config{Limiters: []gate.Limiter{tenants(plenty)}})
			const rounds, burst = 10, 100
			names := [rounds]string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
			for _, name := range names {
				sv.left("warm", burst) // so that there is a connection
				_, before := s.proxy.Bytes()
				s.proxy.Cut(5)
				failed := make(chan error, 1)
				go func() { failed <- sv.decide(time.Time{}, name, burst, 1, answered/2) }()
				// Once the reply was cut the network is whole again, and whoever repeats is heard.
				_, cut := until(answered/4, func() bool { _, now := s.proxy.Bytes(); return now > before })
				s.proxy.Pass()
				if err := <-failed; err == nil && cut {
					sv.failf("a decision whose reply was lost did not fail")
				}
			}
			executed := 0
			if _, more := until(answered, func() bool {
				executed = 0
				for _, name := range names {
					switch got := burst - sv.left(name, burst); got {
					case 0:
					case 1:
						executed++
					default:
						sv.failf("a request whose reply was lost was charged %d times", got)
						return true
					}
				}
				return false // repetitions may come late
			}); !more && executed == 0 {
				sv.failf("none of %d requests was executed; the case proves nothing", rounds)
			}
		}},
	{Name: "timed_out_is_charged_once", Why: "a client that repeats a script after its read timeout charges one request four times",
		Waits: true, run: func(s *scene) {
			sv := s.serve(s.direct(), gate.Config{Limiters: []gate.Limiter{tenants(plenty)}})
			const burst = 100
			names := "abcdefghijklmnopqrst"
			sv.left("warm", burst)
			sv.warmUp()
			before, _ := s.scriptCalls()
			s.server.Pause()
			for _, name := range names {
				start := time.Now()
				err := sv.decide(time.Time{}, string(name), burst, 1, 50*time.Millisecond)
				if took := time.Since(start); took > answered {
					sv.failf("a decision with a deadline of 50ms came back after %v", took)
				}
				if class := driver.ClassOf(err); class != driver.ClassTimeout && class != driver.ClassOverflow {
					sv.failf("a decision of a stopped server: %v", err)
				}
			}
			_, _ = until(longestRead, func() bool { return false })
			s.server.Resume()
			// Whatever repeats does so by now, on connections that work.
			var calls int64
			same := 0
			_, _ = until(patience, func() bool {
				now, _ := s.scriptCalls()
				if now != calls {
					calls, same = now, 0
				}
				same++
				return same > 300
			})
			if calls-before > int64(len(names)) {
				sv.failf("the server was asked to run %d scripts for %d decisions", calls-before, len(names))
			}
			executed := 0
			for _, name := range names {
				got := burst - sv.left(string(name), burst)
				executed += got
				if got > 1 {
					sv.failf("a request that timed out was charged %d times", got)
				}
			}
			s.notef("of %d decisions that timed out the server was asked %d, and %d were charged", len(names), calls-before, executed)
		}},
}

// longestRead is longer than a client of the usual kind waits for a reply before it may repeat a command.
const longestRead = 7 * time.Second
