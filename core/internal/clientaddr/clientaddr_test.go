package clientaddr_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/headgate-go/headgate/core/internal/clientaddr"
)

type headers map[string][]string

func (h headers) HeaderValues(name string) []string { return h[name] }

func prefixes(list ...string) (out []netip.Prefix) {
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// BR-089: the left end of a forwarding header is written by strangers.
func TestBR089_Resolve(t *testing.T) {
	ten := clientaddr.Resolver{Trusted: prefixes("10.0.0.0/8", "2001:db8:f::/48")}
	tests := []struct {
		name     string
		resolver clientaddr.Resolver
		peer     string
		lines    []string // of X-Forwarded-For unless the resolver names another
		want     string
	}{
		{"nobody trusted", clientaddr.Resolver{}, "192.0.2.1:99", []string{"6.6.6.6"}, "192.0.2.1"},
		{"peer not trusted", ten, "192.0.2.1:99", []string{"6.6.6.6"}, "192.0.2.1"},
		{"no header", ten, "10.0.0.1:99", nil, "10.0.0.1"},
		{"one hop", ten, "10.0.0.1:99", []string{"203.0.113.7"}, "203.0.113.7"},
		{"spoofed left end", ten, "10.0.0.1:99", []string{"6.6.6.6, 203.0.113.7"}, "203.0.113.7"},
		{"trusted hops are skipped", ten, "10.0.0.1:99", []string{"6.6.6.6, 203.0.113.7, 10.1.1.1,10.2.2.2"}, "203.0.113.7"},
		{"lines are one list, in order", ten, "10.0.0.1:99", []string{"6.6.6.6", "203.0.113.7, 10.1.1.1", "10.2.2.2"}, "203.0.113.7"},
		{"all trusted: what our own peer wrote", ten, "10.0.0.1:99", []string{"10.9.9.9, 10.8.8.8, 10.7.7.7"}, "10.7.7.7"},
		{"garbage stops at the last good hop", ten, "10.0.0.1:99", []string{"203.0.113.7, junk, 10.7.7.7"}, "10.7.7.7"},
		{"the last good hop is the left-most", ten, "10.0.0.1:99", []string{"junk, 10.6.6.6, 10.7.7.7"}, "10.6.6.6"},
		{"garbage at the right end", ten, "10.0.0.1:99", []string{"203.0.113.7, junk"}, "10.0.0.1"},
		{"an empty element is garbage", ten, "10.0.0.1:99", []string{"203.0.113.7,"}, "10.0.0.1"},
		{"port, brackets, zone", ten, "[2001:db8:f::1]:99", []string{"[2001:db8:1:2::3%eth0]:443"}, "2001:db8:1:2::3"},
		{"brackets without port", ten, "10.0.0.1:99", []string{"[2001:db8:1::3]"}, "2001:db8:1::3"},
		{"mapped IPv4", ten, "[::ffff:10.0.0.1]:99", []string{"::ffff:203.0.113.7"}, "203.0.113.7"},
		{"mapped proxy in the chain", ten, "10.0.0.1:99", []string{"203.0.113.7, ::ffff:10.1.1.1"}, "203.0.113.7"},
		{"unix socket, not trusted", ten, "@", []string{"203.0.113.7"}, "invalid IP"},
		{"unix socket, trusted", clientaddr.Resolver{TrustUnix: true}, "", []string{"6.6.6.6, 203.0.113.7"}, "203.0.113.7"},
		{"single header", clientaddr.Resolver{Trusted: ten.Trusted, Header: "CF-Connecting-IP"}, "10.0.0.1:99", []string{"203.0.113.7"}, "203.0.113.7"},
		{"Forwarded", clientaddr.Resolver{Trusted: ten.Trusted, Header: "Forwarded"}, "10.0.0.1:99",
			[]string{`for=6.6.6.6, For="[2001:db8:1::17]:4711";proto=http;by=203.0.113.43, for=10.1.1.1`}, "2001:db8:1::17"},
		{"Forwarded with a quoted comma", clientaddr.Resolver{Trusted: ten.Trusted, Header: "Forwarded"}, "10.0.0.1:99",
			[]string{`for=203.0.113.7;ext="a, for=6.6.6.6"`}, "203.0.113.7"},
		{"Forwarded, obfuscated", clientaddr.Resolver{Trusted: ten.Trusted, Header: "Forwarded"}, "10.0.0.1:99", []string{"for=203.0.113.7, for=_hidden"}, "10.0.0.1"},
		{"Forwarded without for", clientaddr.Resolver{Trusted: ten.Trusted, Header: "Forwarded"}, "10.0.0.1:99", []string{"proto=https"}, "10.0.0.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			name := tt.resolver.Header
			if name == "" {
				name = clientaddr.DefaultHeader
			}
			h := headers{name: tt.lines, "X-Real-Ip": {"6.6.6.6"}, "True-Client-Ip": {"6.6.6.6"}}
			if got := tt.resolver.Resolve(clientaddr.ParsePeer(tt.peer), h).String(); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// BR-092: an IPv6 client counts by its network.
func TestBR092_Mask(t *testing.T) {
	tests := []struct {
		addr string
		bits int
		want string
	}{
		{"203.0.113.7", 64, "203.0.113.7/32"},
		{"2001:db8:1:2:3:4:5:6", 64, "2001:db8:1:2::/64"},
		{"2001:db8:1:2ff::1", 56, "2001:db8:1:200::/56"},
		{"2001:db8:1:2::1", 48, "2001:db8:1::/48"},
		{"2001:db8::1", 128, "2001:db8::1/128"},
	}
	for _, tt := range tests {
		r := clientaddr.Resolver{IPv6Bits: tt.bits}
		if got := r.Mask(netip.MustParseAddr(tt.addr)).String(); got != tt.want {
			t.Errorf("%s by /%d: %s, want %s", tt.addr, tt.bits, got, tt.want)
		}
	}
}

// Whatever stands left of the first untrusted address makes no difference.
func TestLeftOfTheClientIsIgnored(t *testing.T) {
	peer := netip.MustParseAddr("10.0.0.1")
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"X-Forwarded-For", "Forwarded"} {
		r := clientaddr.Resolver{Trusted: prefixes("10.0.0.0/8"), Header: name}
		prefix := ""
		if name == "Forwarded" {
			prefix = "for="
		}
		for range 2000 {
			client := netip.AddrFrom4([4]byte{203, byte(rng.Uint32()), byte(rng.Uint32()), byte(rng.Uint32())})
			chain := []string{prefix + client.String()}
			for range rng.IntN(4) {
				chain = append(chain, fmt.Sprintf("%s10.%d.0.9", prefix, rng.IntN(250)))
			}
			junk := []string{"", "1.2.3.4", "junk", "10.0.0.7", `"`, `for="`, `for="1.1.1.1\`, "a,b,c", "::1", ";for=9.9.9.9"}[rng.IntN(10)]
			line := junk + "," + strings.Join(chain, ", ")
			if got := r.Resolve(peer, headers{name: {line}}); got != client {
				t.Fatalf("%s: %s: %v", name, line, got)
			}
		}
	}
}

func FuzzResolve(f *testing.F) {
	f.Add("1.2.3.4, 10.0.0.1", "10.0.0.1:1", "Forwarded")
	f.Add(`for="[::1]:80";by=x`, "[::1]:9", "X-Forwarded-For")
	f.Fuzz(func(t *testing.T, line, peer, name string) {
		r := clientaddr.Resolver{Trusted: prefixes("10.0.0.0/8", "::/0"), TrustUnix: true, Header: name, IPv6Bits: 64}
		addr := r.Resolve(clientaddr.ParsePeer(peer), headers{name: {line}})
		if !addr.IsValid() {
			return
		}
		if addr.Zone() != "" || addr.Is4In6() {
			t.Errorf("%v is not in its one form", addr)
		}
		if !r.Mask(addr).IsValid() {
			t.Errorf("%v has no network", addr)
		}
	})
}
