// Package gate limits what a service lets in. A [Gate] is an ordered set of limiters over one store; it drives one request
// through them: keys, decision, headers, handler, release.
//
//	r.Use(gingate.Middleware(gate.PerClient(limit.PerSecond(100)))) // one line: per client address, in this process
//
// or, with a [Config],
//
//	g, err := gate.New(gate.Config{
//		Limiters: []gate.Limiter{
//			gate.RequestRate{Name: "tenant", Key: gate.Value("tenant"), Limit: limit.PerSecond(100).WithBurst(500)},
//		},
//	})
//
// An adapter (packages httpgate, gingate, echogate, fibergate) mounts a gate on a framework. Code that is not HTTP asks with
// [Gate.Admit] and [Gate.Take]. A handler finds what was decided with [FromContext].
//
// # Testing
//
// Config.Clock gives a gate the time of a test, so that a test is a script of requests and waits; Admit with a [Call] asks a
// policy without a server. The in-process store starts no goroutine and works inside testing/synctest.
package gate
