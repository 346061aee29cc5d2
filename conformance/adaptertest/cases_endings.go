package adaptertest

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/memory"
)

// The random endings: so many, of so many clients at a time, under a cap that is lower than that.
const (
	endingRounds  = 1000
	endingClients = 12
	endingCap     = 4
	endingSeed    = 20260102
)

// ending is one way in which a request comes to its end. It says whether the request was refused, and is to be sent again.
type ending func(x *exam, c *client) (refused bool)

// asks sends a request and reads what comes, if anything does.
func asks(operation string, fields ...string) ending {
	return func(_ *exam, c *client) bool {
		res, err := c.do(ask(operation, fields...))
		return err == nil && res.status == 429
	}
}

// leaves sends a request and is gone, once it has read so many bytes of the response's body.
func leaves(operation string, after int, fields ...string) ending {
	return func(_ *exam, c *client) bool {
		defer c.close()
		if after == 0 {
			_ = c.post(ask(operation, fields...))
			return false
		}
		res, body, err := c.begin(ask(operation, fields...))
		if err == nil && res.status != 429 {
			_, _ = body.Read(make([]byte, after))
		}
		return err == nil && res.status == 429
	}
}

// socket has a connection taken over, and either lets it end or is gone.
func socket(operation string, leaves bool) ending {
	return func(_ *exam, c *client) bool {
		defer c.close()
		res, _, err := c.begin(ask(operation, "Connection", "Upgrade", "Upgrade", "echo"))
		if err == nil && res.status == 101 && !leaves {
			_, _ = c.conn.Write([]byte("over to you\n"))
			_, _ = c.in.ReadString('\n')
		}
		return err == nil && res.status == 429
	}
}

var endings = []ending{
	asks("GET /v1/text"), asks("GET /v1/none"), asks("GET /v1/error"), asks("GET /v1/wrapped"), asks("GET /v1/plain"),
	asks("GET /v1/panic"), asks("GET /v1/nil"), asks("GET /v1/abort"), asks("GET /v1/goexit"), asks("GET /v1/late"),
	asks("GET /v1/hold", TimeoutHeader, "1"), asks("GET /v1/stream"), asks("HEAD /v1/stream"), asks("GET /v1/stream", "Connection", "close"),
	asks("GET /v1/unknown"), leaves("GET /v1/events", 5), leaves("GET /v1/large", 5), leaves("GET /v1/stream", 5), leaves("GET /v1/text", 0),
	leaves("GET /v1/hold", 0, TimeoutHeader, "1"), leaves("GET /v1/events", 0), leaves("GET /v1/panic", 0),
	socket("GET /v1/socket", false), socket("GET /v1/socket", true), socket("GET /v1/away", false), socket("GET /v1/away", true),
}

var endingRoutes = append(routesOfFailing(), textRoute, holdRoute, Route{"GET", "/v1/none", NotFound}, Route{"GET", "/v1/nil", PanicNil},
	Route{"GET", "/v1/abort", Abort}, Route{"GET", "/v1/goexit", Goexit}, Route{"GET", "/v1/late", TimedOut},
	Route{"GET", "/v1/stream", Stream}, Route{"HEAD", "/v1/stream", Stream}, Route{"GET", "/v1/events", Endless},
	Route{"GET", "/v1/large", Large}, Route{"GET", "/v1/socket", Hijack}, Route{"GET", "/v1/away", HijackAway})

// endingCases are the same random endings over a store in the process and over one that is told of slots as a server is.
var endingCases = []testCase{
	{"BR120_random_endings",
		"whatever a handler, a client or a timeout does, and in whatever order: no slot leaks, and the cap holds",
		func(x *exam) { x.randomEndings(memory.New()) }},
	{"BR120_random_endings_in_a_shared_store",
		"slots that are given back off the request's path must all arrive, however the requests ended",
		func(x *exam) { x.randomEndings(newSwitchStore(false)) }},
}

func (x *exam) randomEndings(store driver.Store) {
	l := slots(endingCap)
	config := gate.Config{Store: store, StoreTimeout: patience, Limiters: []gate.Limiter{l}}
	flowing := make(chan struct{})
	close(flowing)
	x.probe.flowing, x.probe.leaving = flowing, true
	x.app(x.gate(config), endingRoutes...)

	draw := rand.New(rand.NewPCG(endingSeed, 0))
	rounds := int64(x.fewer(endingRounds, 20))
	order := make([]ending, rounds)
	for i := range order {
		order[i] = endings[draw.IntN(len(endings))]
	}
	var next, refused atomic.Int64
	var group sync.WaitGroup
	deadline := time.Now().Add(6 * x.probe.patience)
	for range endingClients {
		c := x.fresh()
		group.Go(func() {
			for i := next.Add(1); i <= rounds; i = next.Add(1) {
				for order[i-1](x, c) && time.Now().Before(deadline) {
					refused.Add(1)
				}
			}
			c.close()
		})
	}
	group.Wait()
	x.frees(x.gate(config), "slots", 0, endingCap) // read through a gate that has seen none of them
	x.balanced()
	if most := x.probe.most.Load(); most > endingCap || most < 2 {
		x.failf("%d handlers ran at a time; the cap is %d", most, endingCap)
	}
	x.notef("seed %d: %d rounds, %d refusals, at most %d handlers at a time, slots ended %s", endingSeed, rounds, refused.Load(),
		x.probe.most.Load(), x.describeEnds())
}
