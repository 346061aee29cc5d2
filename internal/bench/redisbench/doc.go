// Package redisbench measures decisions through Redis: headgate's stores on go-redis and rueidis beside redis_rate, beside
// a hash bucket script as most projects write one, and beside two floors: a bare EVALSHA of headgate's script through each
// client, and a script that does one GET and one SET PX.
//
// Every decision is admitted and so is a write, on one of many keys. "One call per decision" gives every caller a store of
// its own on the shared client, since callers of one store share calls ("packed"): such a decision goes through all of the
// store and has an EVALSHA to itself, which the column of decisions per call confirms.
//
// Of a request that claims a slot beside its rate the script alone is measured. Every slot is given back between two
// passes over the keys, so each acquire finds an empty set, which it has to create and to give a life: the dear case. The
// releases are not part of the figures.
package redisbench
