package adaptertest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/headgate-go/headgate/core/gate"
)

// fault is what is wrong with an adapter; the empty one is nothing.
type fault string

// The faults.
const (
	handlerRuns     fault = "the handler runs after a refusal"
	refusalIs200    fault = "a refusal is sent with status 200"
	attachLost      fault = "Attach keeps nothing"
	attachLate      fault = "Attach after Next"
	attachGlobal    fault = "the admission is kept in a global"
	attachInValues  fault = "the admission is kept where the adapter's own Admission looks, but not in the context"
	fieldsLate      fault = "fields are set after the handler"
	fieldsAdded     fault = "fields are added, not set"
	removalIgnored  fault = "the removal of a field is ignored"
	removalIsEmpty  fault = "the removal of a field leaves an empty one"
	zeroDropped     fault = "a value of 0 is taken for none"
	peerFromHeader  fault = "RemoteAddr is what X-Forwarded-For says"
	peerConstant    fault = "a peer without an address is 0.0.0.0"
	pathCleaned     fault = "the path is cleaned"
	pathLowered     fault = "the path is in lower case"
	pathOverridden  fault = "the path is what X-Original-URL says"
	methodOverride  fault = "the method is what X-HTTP-Method-Override says"
	recovers        fault = "panics are recovered"
	recoversAsError fault = "panics are turned into errors"
	errorSwallowed  fault = "the handler's error is not returned"
	errorReplaced   fault = "the handler's error is replaced by another"
	errorHandled    fault = "the framework's error handler is called by the adapter too"
	errorIs200      fault = "a returned error is reported as status 200"
	errorIs500      fault = "a returned error is always reported as status 500"
	jsonEncoder     fault = "the body goes through a JSON encoder"
	charset         fault = "the content type gets a charset"
	headNoLength    fault = "HEAD gets no Content-Length"
	refusalReturned fault = "a refusal is returned as an error, and answered twice"
	noValues        fault = "Value is always nil"
	firstLine       fault = "HeaderValues is the first line only"
	lastLine        fault = "Header is the last line"
	hostApart       fault = "Host is no field"
	scratchBuffer   fault = "all strings share one buffer"
	nextTwice       fault = "the handler runs twice"
	noContext       fault = "Context is context.Background()"
	writerHides     fault = "the writer hides what is underneath"
	bodyRead        fault = "the request's body is read"
	routeIsPath     fault = "the route label is the path"
	listSplit       fault = "a list becomes a line for each member"
	quotesLost      fault = "quotes are taken off a field's value"
	extensionsLost  fault = "fields that begin with X- are left out"
	eightFields     fault = "there is room for eight fields"
	contextCut      fault = "Attach replaces the request's context"
	trailOver       fault = "Trail says that a stream is over"
	trailLost       fault = "Trail drops the closer"
	trailOne        fault = "Trail keeps the last gate's closer only"
	trailAlways     fault = "Trail says that a response goes on which nobody will end"
	trailOfStreams  fault = "Trail knows streams only, no sockets"
	trailOfTheGone  fault = "closers are not closed where the client is gone"
)

func middleware(f fault) func(*gate.Gate) handlerFunc {
	return func(g *gate.Gate) handlerFunc {
		return func(c *frameContext) error {
			if f == bodyRead {
				_, _ = io.ReadAll(c.r.Body)
			}
			x := &exchange{c: c, f: f}
			if f.lazy() {
				return g.Serve(lazyExchange{x})
			}
			return g.Serve(x)
		}
	}
}

// exchange is the adapter for the frame, with its fault.
type exchange struct {
	c       *frameContext
	f       fault
	late    []func()
	scratch [256]byte // the one buffer of an adapter that reuses its memory too early
}

var globalAdmission atomic.Pointer[gate.Admission]

var errRefused = errors.New("refused")

func (x *exchange) Context() context.Context {
	if x.f == noContext {
		return context.Background()
	}
	return x.c.r.Context()
}

func (x *exchange) Method() string {
	if m := x.c.r.Header.Get("X-Http-Method-Override"); x.f == methodOverride && m != "" {
		return m
	}
	return x.c.r.Method
}

func (x *exchange) Path() string {
	p := x.c.r.URL.Path
	switch original := x.c.r.Header.Get("X-Original-Url"); {
	case x.f == pathCleaned:
		return path.Clean(p)
	case x.f == pathLowered:
		return strings.ToLower(p)
	case x.f == pathOverridden && original != "":
		return original
	}
	return p
}

func (x *exchange) text(s string) string {
	if x.f != scratchBuffer || s == "" {
		return s
	}
	return unsafe.String(&x.scratch[0], copy(x.scratch[:], s))
}

func (x *exchange) Header(name string) string {
	if list := x.c.r.Header.Values(name); x.f == lastLine && len(list) > 0 {
		return list[len(list)-1]
	}
	if strings.EqualFold(name, "Host") && x.f != hostApart {
		return x.c.r.Host
	}
	return x.text(x.c.r.Header.Get(name))
}

func (x *exchange) HeaderValues(name string) []string {
	var list []string
	if strings.EqualFold(name, "Host") && x.f != hostApart {
		return []string{x.c.r.Host}
	}
	for _, line := range x.c.r.Header.Values(name) {
		list = append(list, x.text(line))
	}
	if x.f == firstLine && len(list) > 0 {
		list = list[:1]
	}
	return list
}

func (x *exchange) RemoteAddr() string {
	forwarded := x.c.r.Header.Get("X-Forwarded-For")
	switch {
	case x.f == peerFromHeader && forwarded != "":
		return forwarded
	case x.f == peerConstant && !strings.Contains(x.c.r.RemoteAddr, ":"):
		return "0.0.0.0"
	}
	return x.c.r.RemoteAddr
}

func (x *exchange) Value(name string) any {
	if x.f == noValues {
		return nil
	}
	return x.c.values[name]
}

func (x *exchange) Route() string {
	if x.f == routeIsPath {
		return x.c.r.URL.Path
	}
	return x.c.route
}

const valueOfAdmission = "headgate.admission"

func (x *exchange) Admission() *gate.Admission {
	switch x.f {
	case attachGlobal:
		return globalAdmission.Load()
	case attachInValues:
		a, _ := x.c.values[valueOfAdmission].(*gate.Admission)
		return a
	}
	return admission(x.c)
}

func (x *exchange) Attach(a *gate.Admission) {
	attach := func() { x.c.r = x.c.r.WithContext(gate.NewContext(x.c.r.Context(), a)) }
	switch x.f {
	case contextCut:
		x.c.r = x.c.r.WithContext(gate.NewContext(context.Background(), a))
	case attachLost:
	case attachLate:
		x.late = append(x.late, attach)
	case attachGlobal:
		globalAdmission.Store(a)
		attach()
	case attachInValues:
		x.c.values[valueOfAdmission] = a
	default:
		attach()
	}
}

func (x *exchange) SetHeader(name, value string) {
	h := x.c.w.Header()
	switch {
	case x.f == fieldsLate:
		x.late = append(x.late, func() { h.Set(name, value) })
	case value == "" && x.f == removalIgnored:
	case value == "" && x.f == removalIsEmpty:
		h.Set(name, "")
	case value == "", value == "0" && x.f == zeroDropped:
		h.Del(name)
	case x.f == extensionsLost && strings.HasPrefix(name, "X-R"), x.f == eightFields && len(h) >= 8:
	case x.f == quotesLost:
		h.Set(name, strings.ReplaceAll(value, `"`, ""))
	case x.f == listSplit:
		h[name] = strings.Split(value, ", ")
	case x.f == fieldsAdded:
		h.Add(name, value)
	default:
		h.Set(name, value)
	}
}

func (x *exchange) Reject(status int, contentType string, body []byte) error {
	for _, f := range x.late {
		f()
	}
	switch x.f {
	case refusalIs200:
		status = 200
	case charset:
		contentType += "; charset=utf-8"
	case jsonEncoder:
		var v any
		if json.Unmarshal(body, &v) == nil {
			var b bytes.Buffer
			_ = json.NewEncoder(&b).Encode(v)
			body = b.Bytes()
		}
	}
	x.c.w.Header().Set("Content-Type", contentType)
	x.c.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if x.f == headNoLength && x.c.r.Method == "HEAD" {
		x.c.w.Header().Del("Content-Length")
		body = nil
	}
	x.c.w.WriteHeader(status)
	_, _ = x.c.w.Write(body)
	switch x.f {
	case handlerRuns:
		return x.c.next()
	case refusalReturned:
		return errRefused
	}
	return nil
}

func (x *exchange) Next() (res gate.Result, err error) {
	if v := recoverer(x.f); v != nil {
		defer func() { v(recover(), &err) }()
	}
	if x.f == writerHides {
		inner := x.c.w
		x.c.w = &tap{ResponseWriter: struct{ http.ResponseWriter }{inner}}
	}
	err = x.c.next()
	if x.f == nextTwice {
		err = x.c.next()
	}
	for _, f := range x.late {
		f()
	}
	res = gate.Result{Status: x.c.w.status, Final: x.c.w.status != 0}
	if res.Status == 0 {
		res.Status = 200
	}
	if err == nil {
		return res, nil
	}
	res.Status = statusOf(err)
	switch x.f {
	case errorSwallowed:
		err = nil
	case errorReplaced:
		err = fmt.Errorf("headgate: %v", err)
	case errorHandled:
		x.c.fail(x.c, statusOf(err), err)
	case errorIs200:
		res.Status = 200
	case errorIs500:
		res.Status = 500
	}
	return res, err
}

func recoverer(f fault) func(v any, err *error) {
	switch f {
	case recovers:
		return func(any, *error) {}
	case recoversAsError:
		return func(v any, err *error) {
			if v != nil {
				*err = fmt.Errorf("panic: %v", v)
			}
		}
	}
	return nil
}
