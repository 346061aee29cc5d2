package adaptertest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/headgate-go/headgate/core/gate"
)

// Behaviour is what a handler does. Site.Handle does it, and needs help where frameworks differ.
type Behaviour int

// The behaviours that only write.
const (
	Write       Behaviour = iota + 1 // 200 and a text
	Created                          // 201 and a text
	NoContent                        // 204
	Redirect                         // 302
	NotModified                      // 304
	NotFound                         // 404, written by the handler
	Broken                           // 500, written by the handler
	Large                            // 200 and 1 MiB
)

// The behaviours that every framework must have.
const (
	// Error fails with status 503 as the framework's handlers do: a returned error of its own type. Where handlers
	// return nothing, Site.Handle writes the failure.
	Error Behaviour = iota + 100
	// WrappedError is Error inside another error, in the way that the framework's default handler looks through.
	WrappedError
	// PlainError fails with an error that wraps ErrHandler and that the framework knows nothing of: status 500.
	PlainError
	// Panic panics with ErrPanic.
	Panic
	// Report writes what was decided, with status 200.
	Report
	// ReadBody writes the request's body back, with status 200.
	ReadBody
	// Stream sends [Site.Stream], flushing each piece.
	Stream
	// Endless sends [Site.Endless], flushing each piece.
	Endless
	// Hold answers as Write when the case lets it, or when the request's context is done.
	Hold
)

// The behaviours that not every framework has. Without them a handler answers 501.
const (
	// PanicNil panics with nil.
	PanicNil Behaviour = iota + 200
	// Abort sends the 10 bytes of AbortedText, flushes, and panics with http.ErrAbortHandler.
	Abort
	// Goexit ends the goroutine.
	Goexit
	// Hijack takes the connection over, writes nothing and calls [SwitchAndEcho] with it.
	Hijack
	// Deadlines sets a read and a write deadline on the connection and answers as Write.
	Deadlines
	// File sends the file [Site.File] with the framework's or net/http's means.
	File
	// HijackAway takes the connection over, calls [SwitchAndEcho] in another goroutine, and returns.
	HijackAway
	// TimedOut goes on until the framework's middleware for timeouts, of a millisecond, has answered for it.
	TimedOut
)

// ErrHandler is what the errors of handlers wrap, and ErrPanic what they panic with.
var (
	ErrHandler = errors.New("adaptertest: the handler failed")
	ErrPanic   = errors.New("adaptertest: the handler panicked")
)

// Bodies.
const (
	// TextType is the content type of every body that a site writes by itself.
	TextType = "text/plain"
	// Text is the body of Write.
	Text = "headgate\n"
	// AbortedText is what Abort sends.
	AbortedText = "0123456789"
)

// answer is a response as bytes.
type answer struct {
	status int
	fields [][2]string
	body   []byte // nil: none
}

func text(status int, body string) answer {
	return answer{status: status, body: []byte(body),
		fields: [][2]string{{"Content-Type", TextType}, {"Content-Length", strconv.Itoa(len(body))}}}
}

// answer returns what a handler writes; false where that is not all there is to it.
func (do Behaviour) answer() (a answer, ok bool) {
	switch do {
	case Write, Hold:
		return text(200, Text), true
	case Created:
		return text(201, "created\n"), true
	case NoContent:
		return answer{status: 204}, true
	case Redirect:
		return answer{status: 302, fields: [][2]string{{"Location", "/elsewhere"}}}, true
	case NotModified:
		return answer{status: 304}, true
	case NotFound:
		return text(404, "nothing of that name\n"), true
	case Broken:
		return text(500, "broken\n"), true
	case Large:
		return text(200, strings.Repeat(strings.Repeat("x", 63)+"\n", 1<<14)), true
	}
	return answer{}, false
}

func failure(status int) answer { return text(status, fmt.Sprintf("failed with %d\n", status)) }

// Fails returns the status that a handler fails with; 0 for those that do not return an error.
func (do Behaviour) Fails() int {
	switch do {
	case Error, WrappedError:
		return 503
	case PlainError:
		return 500
	}
	return 0
}

// unavailable is the answer of a handler that the framework cannot make.
func unavailable() answer { return text(501, "not with this framework\n") }

// report tells what was decided, as the adapter's Admission function finds it and as gate.FromContext does.
func report(adapter, context *gate.Admission) answer {
	a, c := describe(adapter), describe(context)
	if a != c {
		a = "adapter: " + a + "context: " + c
	}
	return text(200, a)
}

func describe(a *gate.Admission) string {
	if a == nil {
		return "no admission\n"
	}
	var b strings.Builder
	for _, d := range a.Decisions() {
		fmt.Fprintf(&b, "%s %s %d/%d\n", d.Policy, d.Outcome, d.Remaining, d.Limit)
	}
	if !a.Allowed() {
		b.WriteString("refused\n")
	}
	return b.String()
}
