package main

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/headgate-go/headgate/core/limit"
)

// finding is one thing that must be so, and what speaks against it.
type finding struct {
	what string
	err  error
}

// check holds the results against what the limits say. The upper bound is exact, since all decisions about a client
// lie between its first request and its last answer. The lower one leaves a slow machine nearly a burst of room.
func check(results []*result) []finding {
	var answers, free, bounds, held, waits []error
	limited := 0
	for _, r := range results {
		answers = append(answers, each(r, checkAnswers(r))...)
		if r.limit == nil {
			free = append(free, each(r, checkFree(r))...)
			continue
		}
		limited++
		if r.limit.slots != nil {
			held = append(held, each(r, checkHeld(r))...)
			continue
		}
		bounds = append(bounds, each(r, checkLimited(r))...)
		waits = append(waits, each(r, checkWaits(r))...)
	}
	if limited == 0 || limited == len(results) {
		answers = append(answers, errors.New("there must be clients that are refused and clients that are not"))
	}
	return []finding{
		{"every request was answered, by the API or by the limiter that it should run into", errors.Join(answers...)},
		{"who kept to the plan, and the health checks, were never refused", errors.Join(free...)},
		{"who sent too much got at least the rate, and at most the burst and the rate", errors.Join(bounds...)},
		{"who held too much had all its slots, never one more, and paid for no refused solve", errors.Join(held...)},
		{"who waited as long as Retry-After said was let in", errors.Join(waits...)},
	}
}

func each(r *result, errs []error) []error {
	for i, err := range errs {
		errs[i] = fmt.Errorf("%s: %w", r.name, err)
	}
	return errs
}

func checkAnswers(r *result) (errs []error) {
	for _, text := range r.wrong {
		errs = append(errs, errors.New(text))
	}
	if r.sent == 0 {
		errs = append(errs, errors.New("sent nothing"))
	}
	if n := r.letIn + r.refusals(); n != r.sent {
		errs = append(errs, fmt.Errorf("sent %d requests, and %d were let in or refused", r.sent, n))
	}
	for policy, n := range r.refused {
		if r.limit != nil && policy != r.limit.policy {
			errs = append(errs, fmt.Errorf("%d requests were refused by %q, not by %q", n, policy, r.limit.policy))
		}
	}
	return errs
}

func checkFree(r *result) (errs []error) {
	if n := r.refusals(); n > 0 {
		errs = append(errs, fmt.Errorf("refused %d times, by %v", n, r.refused))
	}
	return errs
}

func checkLimited(r *result) (errs []error) {
	if r.refusals() == 0 {
		errs = append(errs, errors.New("never refused, though it asked for more than its limit"))
	}
	if low, high := r.allowed(); r.cost < low || r.cost > high {
		errs = append(errs, fmt.Errorf("a cost of %d was let in; its limit says %d to %d", r.cost, low, high))
	}
	return errs
}

func checkWaits(r *result) (errs []error) {
	switch {
	case r.told < time.Second:
		errs = append(errs, fmt.Errorf("Retry-After was %v; the shortest is 1s", r.told))
	case r.again == 0:
		errs = append(errs, errors.New("never let in again after the first refusal"))
	case r.again < r.told-time.Second: // whole seconds, rounded up
		errs = append(errs, fmt.Errorf("let in %v after a refusal that said %v", r.again, r.told))
	}
	switch {
	case r.waited < time.Second:
		errs = append(errs, errors.New("not refused any more when it wanted to wait as told"))
	case !r.admitted:
		errs = append(errs, fmt.Errorf("waited %v as told, and was refused again", r.waited))
	}
	return errs
}

// checkHeld: what the API counted as running at a time was counted while the slots were held, so that bound is exact too.
func checkHeld(r *result) (errs []error) {
	if r.refusals() == 0 {
		errs = append(errs, errors.New("never refused, though it asked for more than its slots"))
	}
	if r.most != r.limit.slots.count {
		errs = append(errs, fmt.Errorf("%d at a time; it has %d slots, and asked for more", r.most, r.limit.slots.count))
	}
	if low, high := r.fitting(); r.letIn < low || r.letIn > high {
		errs = append(errs, fmt.Errorf("%d were let in; its slots say %d to %d", r.letIn, low, high))
	}
	if full := r.limit.rule.Capacity(); r.left != full {
		errs = append(errs, fmt.Errorf("%d of %d were left afterwards; what was let in leaves all", r.left, full))
	}
	if r.told != time.Second {
		errs = append(errs, fmt.Errorf("Retry-After was %v, not 1s", r.told))
	}
	return errs
}

// fitting returns how many requests the slots let in between the first request and the last answer, if each holds one for as
// long as it must, and on a slow machine for up to twice as long.
func (r *result) fitting() (low, high int) {
	high = r.limit.slots.count * int(r.last.Sub(r.first)/r.limit.slots.held)
	return high / 2, high
}

// allowed returns how much cost the limit lets in between the first request and the last answer, of a client that always
// asks for more: a bucket that begins full gives its burst and what flows in. What is left in it at the end is less than
// the burst, so the rate is the least.
func (r *result) allowed() (low, high int) {
	flow := perSecond(r.limit.rule) * r.last.Sub(r.first).Seconds()
	return int(math.Floor(flow)), r.limit.rule.Capacity() + int(math.Ceil(flow))
}

func perSecond(rule limit.Rule) float64 {
	count, period := rule.Rate()
	return float64(count) / period.Seconds()
}
