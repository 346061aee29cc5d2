package main

import (
	"testing"
	"time"
)

func healthy() tally {
	return tally{
		healthy: row{allowed: burst + rate*healthyUntil, refused: 300, took: healthyUntil * time.Second},
		stopped: row{open: 400, slowest: 60 * time.Millisecond},
		back:    row{allowed: 120, open: 150, refused: 200, took: 5 * time.Second},
		last:    row{allowed: 20, refused: 80},
	}
}

// The demo fails when a promise is broken.
func TestCheckCanFail(t *testing.T) {
	if good := healthy(); good.check() != nil {
		t.Errorf("a good run fails: %v", good.check())
	}
	for name, spoil := range map[string]func(*tally){
		"the limit of each process":    func(t *tally) { t.healthy.allowed = 3 * (burst + rate*healthyUntil) },
		"too many after the restart":   func(t *tally) { t.back.allowed = 200 },
		"nobody let in":                func(t *tally) { t.healthy.allowed = 0 },
		"a 500":                        func(t *tally) { t.stopped.other = 1 },
		"open without need":            func(t *tally) { t.healthy.open = 1 },
		"refused without Redis":        func(t *tally) { t.stopped.open, t.stopped.refused = 0, 400 },
		"waiting for Redis":            func(t *tally) { t.stopped.slowest = 5 * time.Second },
		"open although Redis is back":  func(t *tally) { t.last.open = 1 },
		"no limit after Redis is back": func(t *tally) { t.last.refused = 0 },
	} {
		bad := healthy()
		spoil(&bad)
		if bad.check() == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
}
