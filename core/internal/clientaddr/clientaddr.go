// Package clientaddr finds the address of the client that a request came from, the same way for every framework.
//
// Frameworks disagree, and most believe whatever header a client sends. Here nobody is trusted until named, and a
// forwarding header is read from the right: what stands left of the first untrusted address was written by strangers.
package clientaddr

import (
	"net/netip"
	"strings"
)

// Resolver finds client addresses. Its methods are safe for concurrent use once it is set up.
type Resolver struct {
	Trusted   []netip.Prefix
	TrustUnix bool
	Header    string // canonical or not; "" means X-Forwarded-For
	IPv6Bits  int    // 1..128
}

// DefaultHeader is the forwarding header where none is named.
const DefaultHeader = "X-Forwarded-For"

// Headers is the part of a request that is looked at.
type Headers interface {
	HeaderValues(name string) []string
}

// Resolve returns the client's address for a peer, before masking. An invalid peer is one without an address, as a unix
// socket. The result is invalid where there is no address.
func (r *Resolver) Resolve(peer netip.Addr, h Headers) netip.Addr {
	peer = clean(peer)
	if !r.trusts(peer) {
		return peer
	}
	name := r.Header
	if name == "" {
		name = DefaultHeader
	}
	forwarded := strings.EqualFold(name, "Forwarded")
	lines := h.HeaderValues(name)
	last, rightmost, first := peer, peer, true
	for i := len(lines) - 1; i >= 0; i-- {
		elements := lines[i]
		for more := true; more; {
			var element string
			if comma := lastComma(elements, forwarded); comma >= 0 {
				elements, element = elements[:comma], elements[comma+1:]
			} else {
				element, more = elements, false
			}
			addr, ok := parse(forwarded, element)
			if !ok { // what is left of it is no better than it: the last good hop is the client
				return last
			}
			if !r.trusts(addr) {
				return addr
			}
			if first {
				rightmost, first = addr, false
			}
			last = addr
		}
	}
	return rightmost // all are trusted: the one that our own peer wrote
}

// Mask returns the network that counts as one client: an IPv4 address alone, an IPv6 address with its neighbours.
func (r *Resolver) Mask(addr netip.Addr) netip.Prefix {
	bits := 32
	if addr.Is6() {
		bits = r.IPv6Bits
	}
	p, err := addr.Prefix(bits)
	if err != nil {
		return netip.PrefixFrom(addr, addr.BitLen())
	}
	return p
}

// ParsePeer reads the address of a socket's peer, "192.0.2.1:1234" or "[2001:db8::1]:1234" or without a port. It is
// invalid for anything else.
func ParsePeer(s string) netip.Addr {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return clean(ap.Addr())
	}
	addr, ok := parseAddr(s)
	if !ok {
		return netip.Addr{}
	}
	return addr
}

func (r *Resolver) trusts(addr netip.Addr) bool {
	if !addr.IsValid() {
		return r.TrustUnix
	}
	for _, p := range r.Trusted {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

func parse(forwarded bool, element string) (netip.Addr, bool) {
	if forwarded {
		element = forwardedFor(element)
	}
	return parseAddr(element)
}

// lastComma finds the last comma; in a Forwarded field, the last one outside a quoted string. It looks from the right, so
// that a quote which a stranger left open further left changes nothing for what our own proxies wrote.
func lastComma(s string, quotes bool) int {
	quoted := false
	for i := len(s) - 1; i >= 0; i-- {
		switch {
		case s[i] == '"' && quotes && (i == 0 || s[i-1] != '\\'):
			quoted = !quoted
		case s[i] == ',' && !quoted:
			return i
		}
	}
	return -1
}

// forwardedFor returns the value of for= of one element of a Forwarded field (RFC 7239), without quotes.
func forwardedFor(element string) string {
	for element != "" {
		var pair string
		pair, element, _ = strings.Cut(element, ";")
		name, value, _ := strings.Cut(pair, "=")
		if strings.EqualFold(strings.TrimSpace(name), "for") {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return ""
}

// parseAddr reads an address with or without port, brackets and zone.
func parseAddr(s string) (netip.Addr, bool) {
	s = strings.TrimSpace(s)
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return clean(ap.Addr()), true
	}
	if len(s) > 1 && s[0] == '[' && s[len(s)-1] == ']' {
		s = s[1 : len(s)-1]
	}
	addr, err := netip.ParseAddr(s)
	return clean(addr), err == nil
}

// clean drops the zone and turns ::ffff:a.b.c.d into a.b.c.d, so that one client has one address.
func clean(addr netip.Addr) netip.Addr {
	return addr.Unmap().WithZone("")
}
