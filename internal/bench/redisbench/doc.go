// Package redisbench measures decisions through Redis: headgate's stores on go-redis and rueidis beside redis_rate, beside
// a hash bucket script as most projects write one, and beside two floors: a bare EVALSHA of headgate's script through each
// client, and a script that does one GET and one SET PX.
//
// Every decision is admitted and so is a write, on one of many keys. "One call per decision" gives every caller a store of
// its own on the shared client, since callers of one store share calls ("packed"): such a decision goes through all of the
// store and has an EVALSHA to itself, which the column of decisions per call confirms.
package redisbench
