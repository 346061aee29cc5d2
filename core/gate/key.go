package gate

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/internal/clientaddr"
)

// Key says whose budget a request draws on. Make one with ClientIP, Value, Header, Cookie, Const, Join, FirstOf,
// Normalize or KeyFunc. A key that a client can invent (a header that nobody checked) is no limit by itself: put a
// ClientIP limiter in front, or take the key from the authenticated request with Value.
type Key interface {
	// String returns the key as configuration writes it: "header:X-Api-Key".
	String() string
	// appendTo adds, for each part, its source and its value to a subject; false where a part is absent.
	appendTo(q *question, dst []byte) ([]byte, bool)
	// parts returns the parts in order, for keys given in code: of alternatives, the first.
	parts() []keyPart
	// check says what is wrong with it.
	check() error
}

// keyPart is one part of a key as code gives it: the source, and how a value is brought into canonical form.
type keyPart struct {
	source    string
	canonical func(value string, c *clientaddr.Resolver) (string, error)
}

// ClientIP is the client's address as Config.Client finds it. IPv6 clients count by network, /64 by default.
func ClientIP() Key { return clientIP{} }

const clientIPSource = "client_ip"

type clientIP struct{}

func (clientIP) String() string { return clientIPSource }
func (clientIP) check() error   { return nil }

func (clientIP) parts() []keyPart { return []keyPart{{clientIPSource, canonicalAddr}} }

func (clientIP) appendTo(q *question, dst []byte) ([]byte, bool) {
	addr := q.clientAddr()
	if !addr.IsValid() {
		return dst, false
	}
	dst = driver.AppendSubject(dst, clientIPSource)
	return appendNetwork(dst, q.gate.client.Mask(addr)), true
}

// appendNetwork appends a client's network as one part: its length, then the text of its address.
func appendNetwork(dst []byte, p netip.Prefix) []byte {
	at := len(dst)
	dst = p.Addr().AppendTo(append(dst, 0)) // at most 39 characters: the length fits its one byte
	dst[at] = byte(len(dst) - at - 1)
	return dst
}

func canonicalAddr(value string, c *clientaddr.Resolver) (string, error) {
	addr := clientaddr.ParsePeer(value)
	if !addr.IsValid() {
		return "", fmt.Errorf("%q is not an address", value)
	}
	return c.Mask(addr).Addr().String(), nil
}

// Value is what earlier middleware stored with the request under name: Gin's and Echo's Set, Fiber's Locals, WithValue
// in net/http. A string, an integer or a fmt.Stringer; anything else, and blanks only, is no key.
func Value(name string) Key {
	return source("value", name, func(q *question) string { return textOf(q.req.Value(name)) })
}

// Header is the first value of a request header, as it was sent. Mind that the client chooses it.
func Header(name string) Key {
	return source("header", name, func(q *question) string { return q.req.Header(name) })
}

// Cookie is the value of a cookie, as it was sent. Mind that the client chooses it.
func Cookie(name string) Key {
	return source("cookie", name, func(q *question) string { return cookie(q.req, name) })
}

// Const is the same for every request: one budget for all.
func Const(text string) Key {
	return source("const", text, func(*question) string { return text })
}

// KeyFunc computes the key. An error or an empty string is an absent key (see OnMissingKey), and an error is logged. The
// string is copied, so it may point into the request.
func KeyFunc(f func(Request) (string, error)) Key {
	k := single{kind: "func", name: "func", read: func(q *question) string {
		text, err := f(q.req)
		if err != nil {
			q.gate.log.warn(warnKeyFunc, "a key function failed; the request counts as one without a key", "error", err)
			return ""
		}
		return text
	}}
	if f == nil {
		k.err = fmt.Errorf("KeyFunc: the function is nil")
	}
	return k
}

func source(kind, name string, read func(*question) string) Key {
	k := single{kind: kind, name: kind + ":" + name, read: read}
	if strings.TrimSpace(name) == "" {
		k.err = fmt.Errorf("%s: the name is empty", kind)
	}
	return k
}

// single is a key of one part.
type single struct {
	kind, name string
	read       func(*question) string
	fold       bool
	err        error
}

func (k single) String() string {
	if k.fold {
		return "normalize(" + k.name + ")"
	}
	return k.name
}

func (k single) check() error { return k.err }

func (k single) parts() []keyPart {
	return []keyPart{{k.String(), func(value string, _ *clientaddr.Resolver) (string, error) {
		if k.fold {
			value = normalize(value)
		}
		if strings.TrimSpace(value) == "" {
			return "", fmt.Errorf("the part for %s is blank", k)
		}
		return value, nil
	}}}
}

func (k single) appendTo(q *question, dst []byte) ([]byte, bool) {
	value := k.read(q)
	if k.fold {
		value = normalize(value)
	}
	if strings.TrimSpace(value) == "" {
		return dst, false
	}
	dst = driver.AppendSubject(dst, k.String())
	return driver.AppendSubject(dst, value), true
}

// Normalize makes variants of an identifier one key: blanks around it are dropped and letters lowered, as most
// applications do with user names and mail addresses. Other keys are used as they are.
func Normalize(k Key) Key {
	switch s := k.(type) {
	case single:
		s.fold = true
		return s
	case clientIP:
		return s // an address has one form already
	}
	return single{name: "normalize", err: fmt.Errorf("Normalize: wants a single key, such as Value(name)")}
}

func normalize(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// Join is a key of several parts, all of which must be present: Join(Value("tenant"), ClientIP()).
func Join(keys ...Key) Key { return join(keys) }

type join []Key

func (k join) String() string { return joinText(k, " + ") }

func (k join) check() error { return checkKeys("Join", k) }

func (k join) parts() []keyPart {
	var list []keyPart
	for _, key := range k {
		list = append(list, key.parts()...)
	}
	return list
}

func (k join) appendTo(q *question, dst []byte) ([]byte, bool) {
	start := dst
	for _, key := range k {
		var ok bool
		if dst, ok = key.appendTo(q, dst); !ok {
			return start, false
		}
	}
	return dst, true
}

// FirstOf is the first key that is present: FirstOf(Value("user"), Header("X-Api-Key")).
func FirstOf(keys ...Key) Key { return firstOf(keys) }

type firstOf []Key

func (k firstOf) String() string   { return joinText(k, " | ") }
func (k firstOf) check() error     { return checkKeys("FirstOf", k) }
func (k firstOf) parts() []keyPart { return k[0].parts() }

func (k firstOf) appendTo(q *question, dst []byte) ([]byte, bool) {
	for _, key := range k {
		if out, ok := key.appendTo(q, dst); ok {
			return out, true
		}
	}
	return dst, false
}

func checkKeys(what string, keys []Key) error {
	if len(keys) == 0 {
		return fmt.Errorf("%s: no keys", what)
	}
	for i, k := range keys {
		if k == nil {
			return fmt.Errorf("%s: key %d is nil", what, i+1)
		}
		if err := k.check(); err != nil {
			return fmt.Errorf("%s: key %d: %w", what, i+1, err)
		}
	}
	return nil
}

func joinText[T fmt.Stringer](list []T, sep string) string {
	texts := make([]string, len(list))
	for i, k := range list {
		if texts[i] = "nil"; any(k) != nil { // a nil is reported by check
			texts[i] = k.String()
		}
	}
	return strings.Join(texts, sep)
}
