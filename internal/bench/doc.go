// Package bench is the root of a module that measures headgate beside other libraries, in one run on one machine:
//
//	rounds      the harness: whole interleaved rounds, medians of ratios, tables
//	redisbench  decisions through Redis, against redis_rate and floors ("make bench-redis")
//	membench    decisions in the process, against other limiters and floors ("make bench-memory")
//	webbench    whole requests, against the frameworks' own limiters ("make bench-memory")
//
// The tables are in BENCHMARKS.md. The module is not released; its tests only show that the machinery works.
package bench
