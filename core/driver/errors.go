package driver

import (
	"context"
	"errors"
)

// Class is the kind of a store's failure; a short list, so that it can be a metric attribute.
type Class string

// The classes of failure.
const (
	ClassTimeout     Class = "timeout"     // no answer within the deadline
	ClassNoScript    Class = "noscript"    // the server lost the script and could not be given it again
	ClassClusterDown Class = "clusterdown" // the cluster does not serve the slot
	ClassReadOnly    Class = "readonly"    // a replica was asked to write
	ClassLoading     Class = "loading"     // the server is loading its data
	ClassOOM         Class = "oom"         // the server is out of memory
	ClassBusy        Class = "busy"        // the server runs somebody's slow script
	ClassAuth        Class = "auth"        // credentials or permissions
	ClassProtocol    Class = "protocol"    // an answer that makes no sense
	ClassClock       Class = "clock"       // the clocks differ by more than a calendar window
	ClassOverflow    Class = "overflow"    // too many calls in flight here; says nothing about the store
	ClassClosed      Class = "closed"      // the store was closed
	ClassOther       Class = "other"       // anything else
)

// Error is a store's failure with its class. Find it with errors.As, or ask [ClassOf].
type Error struct {
	Class Class
	Err   error
}

func (e *Error) Error() string { return string(e.Class) + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrClosed is what a closed store answers.
var ErrClosed error = &Error{Class: ClassClosed, Err: errors.New("the store is closed")}

// ClassOf returns the class of a store's failure: that of an [Error] in its chain, [ClassTimeout] for an exceeded
// deadline, otherwise [ClassOther]. It returns "" for nil.
func ClassOf(err error) Class {
	if err == nil {
		return ""
	}
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Class
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return ClassTimeout
	}
	return ClassOther
}
