// Package redisscript is a [driver.Store] on Redis without a Redis client: the script that decides, the encoding of its
// arguments and the reading of its reply, keys and hash slots, the senders that pack decisions into calls, and the
// classes of errors. A package for a client implements [Client] in a few lines; applications use those packages.
//
// Every decision is made by one script on the server, with the server's clock, exactly as the model in package driver
// computes it. Decisions that are asked for while calls are under way share the next call.
package redisscript
