package driver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/headgate-go/headgate/core/driver"
)

// The class decides what a gate does and counts, so it must be found however deep a store wrapped it.
func TestClassOf(t *testing.T) {
	readOnly := &driver.Error{Class: driver.ClassReadOnly, Err: io.ErrUnexpectedEOF}
	for _, v := range []struct {
		what string
		err  error
		want driver.Class
	}{
		{"no error", nil, ""},
		{"a class", readOnly, driver.ClassReadOnly},
		{"a class, wrapped", fmt.Errorf("redis: decide: %w", readOnly), driver.ClassReadOnly},
		{"a class, joined", errors.Join(io.EOF, readOnly), driver.ClassReadOnly},
		{"a class around a deadline", &driver.Error{Class: driver.ClassOverflow, Err: context.DeadlineExceeded}, driver.ClassOverflow},
		{"a deadline", context.DeadlineExceeded, driver.ClassTimeout},
		{"a deadline, wrapped", fmt.Errorf("redis: %w", context.DeadlineExceeded), driver.ClassTimeout},
		{"a client that left says nothing about the store", context.Canceled, driver.ClassOther},
		{"anything else", io.EOF, driver.ClassOther},
		{"a closed store", driver.ErrClosed, driver.ClassClosed},
		{"a closed store, wrapped", fmt.Errorf("memory: decide: %w", driver.ErrClosed), driver.ClassClosed},
	} {
		if got := driver.ClassOf(v.err); got != v.want {
			t.Errorf("%s: class %q, want %q", v.what, got, v.want)
		}
	}
}

func TestErrorTellsClassAndCause(t *testing.T) {
	err := &driver.Error{Class: driver.ClassReadOnly, Err: io.ErrUnexpectedEOF}
	if got, want := err.Error(), "readonly: unexpected EOF"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("the cause cannot be found")
	}
}

// Reasons are words of telemetry: dashboards break when they change.
func TestReasonWords(t *testing.T) {
	for reason, want := range map[driver.Reason]string{
		driver.ReasonNone:        "",
		driver.ReasonLimit:       "limit",
		driver.ReasonCost:        "cost_exceeds_limit",
		driver.ReasonMissingKey:  "missing_key",
		driver.ReasonInvalidCost: "invalid_cost",
		driver.ReasonMemory:      "memory",
		driver.ReasonOverridden:  "overridden",
		driver.Reason(255):       "unknown",
	} {
		if got := reason.String(); got != want {
			t.Errorf("reason %d is %q, want %q", reason, got, want)
		}
	}
}
