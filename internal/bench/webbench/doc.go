// Package webbench measures whole requests: what a limiter adds to a bare framework, headgate's adapters beside the
// frameworks' own limiters and those that are used most with them.
//
// Requests go to the framework's handler directly, without a socket, whose cost would hide what is compared. They come
// from many client addresses in turn, which are the keys of every limiter.
package webbench
