package gate

import (
	"context"
	"io"
	"net/netip"
	"net/textproto"
	"strings"
)

// Request is what limiters may look at. Strings are valid only during the call unless copied: Fiber reuses the memory
// behind them for the next request on the connection.
type Request interface {
	// Context returns the request's context; never nil.
	Context() context.Context
	// Method returns the method as it was sent; empty for a [Call] that is not HTTP.
	Method() string
	// Path returns the path as the router sees it: not cleaned, not decoded further.
	Path() string
	// Header returns the first value of the named field, "" where there is none.
	Header(name string) string
	// HeaderValues returns every value of the named field, in order.
	HeaderValues(name string) []string
	// RemoteAddr returns the address of the socket's peer, never one from a forwarded header.
	RemoteAddr() string
	// Value returns what earlier middleware stored under name: Gin's and Echo's Get, Fiber's Locals, and in net/http
	// what [WithValue] put into the context. Nil where there is none.
	Value(name string) any
}

// Exchange is one request and its response as an adapter sees them. Adapters implement it; nobody else needs it.
// A gate uses it from one goroutine and not after Serve returned.
type Exchange interface {
	Request
	// Admission returns what an outer gate attached to this request; nil the first time.
	Admission() *Admission
	// Attach keeps a with the request, in the request's own context, so that [FromContext] finds it. It is called
	// before Next and before Reject.
	Attach(a *Admission)
	// SetHeader sets a response field, before Reject or Next. The name is in canonical form. An empty value removes
	// the field: an inner 503 takes back the fields of the outer gate.
	SetHeader(name, value string)
	// Reject writes the whole response: status, content type, Content-Length and body (no body for HEAD). A failed
	// write is not returned to frameworks that would write a second response for it.
	Reject(status int, contentType string, body []byte) error
	// Next runs the rest of the chain, once, and says what became of it. The error is the handler's own and is
	// returned to the framework as it is. A panic passes through.
	Next() (Result, error)
}

// Result is what became of a handler.
type Result struct {
	// Status is the response's status, or, where the response is not written yet, what the framework's default error
	// handler would send. 1xx is never a result.
	Status int
	// Final says that the response is committed.
	Final bool
	// Hijacked says that the handler took the connection over. Only net/http can tell.
	Hijacked bool
}

// Trailing is implemented by exchanges whose response can go on after Next returned: streams and hijacked connections
// in Fiber.
type Trailing interface {
	// Trail asks for closer.Close to be called exactly once when the response is really over. False: it is over when
	// Next returns, and Close will not be called.
	Trail(closer io.Closer) bool
}

// Labeled is implemented by exchanges that know the matched route's template after Next. It is used for telemetry
// only; empty where no route matched.
type Labeled interface {
	Route() string
}

// Addressed is implemented by exchanges that have the peer's address in binary form, where making text of it for
// RemoteAddr would cost allocations. An invalid address means a peer without one, as a unix socket.
type Addressed interface {
	RemoteAddrPort() netip.AddrPort
}

// Roomy is implemented by exchanges that hold the memory of their admission, so that the two cost one allocation.
type Roomy interface {
	// Room returns a zero admission that belongs to this exchange alone. It is asked for once at most.
	Room() *Admission
}

// Fields sets response fields in a header map as net/http has it, for adapters: the values' slices are part of it, so
// that setting one costs no allocation of its own. The zero value is ready; it serves one response.
type Fields struct {
	values [8]string
	used   int
}

// Set sets a field, or removes it if value is empty. The name is in canonical form.
func (f *Fields) Set(header map[string][]string, name, value string) {
	if value == "" {
		delete(header, name)
		return
	}
	if f.used == len(f.values) {
		header[name] = []string{value}
		return
	}
	f.values[f.used] = value
	f.used++
	header[name] = f.values[f.used-1 : f.used : f.used]
}

// FieldValues returns a request's values of a field out of a header map as net/http has it, for adapters: the Host is
// kept apart from the others there.
func FieldValues(header map[string][]string, host, name string) []string {
	values := header[textproto.CanonicalMIMEHeaderKey(name)]
	if len(values) == 0 && host != "" && strings.EqualFold(name, "Host") {
		return []string{host}
	}
	return values
}

// FieldValue returns the first of [FieldValues], "" where there is none.
func FieldValue(header map[string][]string, host, name string) string {
	if values := FieldValues(header, host, name); len(values) > 0 {
		return values[0]
	}
	return ""
}
