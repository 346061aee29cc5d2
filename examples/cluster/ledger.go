package main

import (
	"net/http"
	"sync"
	"time"
)

// count is what became of a tenant's requests.
type count struct {
	allowed int // let in by the limits
	refused int
	open    int // let in because the store failed
	errors  int // any answer but 204 and 429, and none
}

func (c *count) add(d count) {
	c.allowed += d.allowed
	c.refused += d.refused
	c.open += d.open
	c.errors += d.errors
}

func (c count) less(d count) count {
	return count{c.allowed - d.allowed, c.refused - d.refused, c.open - d.open, c.errors - d.errors}
}

// account is all that is noted of a tenant.
type account struct {
	count
	inFlight, most int // of those that the limits let in
	lastOpen       time.Time
}

// ledger is what is noted of all of them.
type ledger struct {
	mu       sync.Mutex
	accounts map[string]*account
	slowest  time.Duration // answer, beyond the work, since it was asked for
	last     time.Time     // when a request was let in
}

func newLedger() *ledger { return &ledger{accounts: map[string]*account{}} }

// of returns the tenant's account; l.mu is held.
func (l *ledger) of(tenant string) *account {
	a := l.accounts[tenant]
	if a == nil {
		a = &account{}
		l.accounts[tenant] = a
	}
	return a
}

// enter notes that a handler begins, and returns what notes its end.
func (l *ledger) enter(tenant string, open bool) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.of(tenant)
	l.last = time.Now()
	if open {
		a.lastOpen = l.last
		return func() {}
	}
	a.inFlight++
	a.most = max(a.most, a.inFlight)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		a.inFlight--
	}
}

// answered notes an answer, as the tenant saw it, and how long it took beyond the work.
func (l *ledger) answered(tenant string, status int, outcome string, took time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.of(tenant)
	switch {
	case err == nil && status == http.StatusNoContent && outcome == "":
		a.allowed++
	case err == nil && status == http.StatusNoContent:
		a.open++
	case err == nil && status == http.StatusTooManyRequests:
		a.refused++
	default:
		a.errors++
	}
	l.slowest = max(l.slowest, took)
}

// snapshot returns all that was noted until now.
func (l *ledger) snapshot() map[string]account {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[string]account, len(l.accounts))
	for name, a := range l.accounts {
		all[name] = *a
	}
	return all
}

// longest returns the slowest answer since it was asked last.
func (l *ledger) longest() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	slowest := l.slowest
	l.slowest = 0
	return slowest
}

// until returns when a request was let in last.
func (l *ledger) until() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}
