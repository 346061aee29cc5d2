package gate

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/headgate-go/headgate/core/limit"
)

// PerClient returns a gate that limits every client address to rule, in this process: the one-line start. Trusted are
// the networks of your own proxies, for example PrivateNetworks() behind a load balancer; without them the socket's peer
// is the client. It panics on an invalid rule, as [Must] does. The gate needs no Close.
func PerClient(rule limit.Rule, trusted ...netip.Prefix) *Gate {
	return Must(New(Config{
		Limiters: []Limiter{RequestRate{Name: "client", Limit: rule}},
		Client:   ClientAddress{Trusted: trusted},
	}))
}

// Must returns g, or panics if err is not nil.
func Must(g *Gate, err error) *Gate {
	if err != nil {
		panic(err)
	}
	return g
}

// PrivateNetworks returns the networks that are never routed on the internet: loopback, private, link-local and unique
// local addresses. Trust them where only your own proxies can reach the service from there.
func PrivateNetworks() []netip.Prefix {
	return Prefixes("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16",
		"::1/128", "fc00::/7", "fe80::/10")
}

// Prefixes parses networks such as "10.0.0.0/8" and single addresses. It panics on anything else.
func Prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		p, err := netip.ParsePrefix(s)
		if err != nil && !strings.Contains(s, "/") {
			var addr netip.Addr
			if addr, err = netip.ParseAddr(s); err == nil {
				p = netip.PrefixFrom(addr, addr.BitLen())
			}
		}
		if err != nil {
			panic(fmt.Sprintf("gate: Prefixes: %q is neither a network like 10.0.0.0/8 nor an address", s))
		}
		out[i] = p.Masked()
	}
	return out
}
