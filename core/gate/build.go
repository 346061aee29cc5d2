package gate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"regexp"
	"strings"

	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/internal/clientaddr"
)

// errNotBuilt marks what is declared and designed, and comes later.
var errNotBuilt = errors.New("not built yet")

// problems collects everything that is wrong with a Config.
type problems struct{ list []error }

func (p *problems) add(where string, err error) {
	if err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			p.add(where, e)
		}
		return
	}
	p.list = append(p.list, fmt.Errorf("gate: %s%w", where, err))
}

func (p *problems) addf(where, format string, args ...any) { p.add(where, fmt.Errorf(format, args...)) }

func (p *problems) err() error {
	switch len(p.list) {
	case 0:
		return nil
	case 1:
		return p.list[0]
	}
	return errors.Join(append([]error{fmt.Errorf("gate: New: %d problems", len(p.list))}, p.list...)...)
}

// New makes a gate. It does not dial and does not panic: the error names everything that is wrong with c, each with its
// limiter and field.
func New(c Config) (*Gate, error) {
	var p problems
	checkConfig(&p, c)
	policies := compile(&p, c)
	if err := p.err(); err != nil {
		return nil, err
	}
	g := &Gate{
		name: c.Name, prefix: driver.AppendSubject(nil, c.Name), store: c.Store, policies: policies,
		headers: c.Headers, body: c.Body, docsURL: c.DocsURL, observer: c.Observer,
		log: newRationedLog(c.Logger), clock: c.Clock, rand: c.Rand,
		client: clientaddr.Resolver{Trusted: c.Client.Trusted, TrustUnix: c.Client.TrustUnix,
			Header: c.Client.Header, IPv6Bits: c.Client.IPv6Bits},
		exempt: make(map[string]struct{}, len(c.Exempt)),
	}
	g.setStore(c)
	if g.client.IPv6Bits == 0 {
		g.client.IPv6Bits = 64
	}
	g.warnForwarded.Store(len(c.Client.Trusted) == 0 && !c.Client.TrustUnix)
	for _, path := range c.Exempt {
		g.exempt[path] = struct{}{}
	}
	for _, text := range c.Routes {
		r, _ := parseRoute(text)
		g.routes = append(g.routes, r)
	}
	if g.headers == 0 {
		g.headers = HeadersStandard
	}
	if g.body == nil {
		g.body = jsonBody
	}
	if g.rand == nil {
		g.rand = rand.Float64
	}
	g.state.Store(g.compile(Settings{}))
	return g, nil
}

var policyName = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,63}$`)

func checkName(s string) error {
	if !policyName.MatchString(s) {
		return fmt.Errorf("Name: %q; lower-case letters, digits, _ . and -, at most 64, the first a letter or digit", s)
	}
	return nil
}

func checkConfig(p *problems, c Config) {
	if c.Name != "" {
		p.add("", checkName(c.Name))
	}
	if len(c.Limiters) == 0 {
		p.addf("", "Limiters: there are none; a gate without limiters lets everything pass")
	}
	for _, path := range c.Exempt {
		if !strings.HasPrefix(path, "/") {
			p.addf("", "Exempt: %q does not begin with /", path)
		}
	}
	for _, text := range c.Routes {
		_, err := parseRoute(text)
		p.add("Routes: ", err)
	}
	checkClient(p, c.Client)
	switch {
	case c.Headers&HeadersNone != 0 && c.Headers != HeadersNone:
		p.addf("", "Headers: HeadersNone stands alone")
	case c.Headers > HeadersNone:
		p.addf("", "Headers: %d is no set of dialects", c.Headers)
	}
	if c.DocsURL != "" {
		if u, err := url.Parse(c.DocsURL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			p.addf("", "DocsURL: %q is not an address like https://docs.example.com/limits", c.DocsURL)
		}
	}
	if c.StoreTimeout < 0 {
		p.addf("", "StoreTimeout: %v; 0 is the default, 50ms", c.StoreTimeout)
	}
	if c.Instances < 0 {
		p.addf("", "Instances: %d; the number of processes that share the limits", c.Instances)
	}
	later(p, "", "Control", len(c.Control) > 0)
}

func later(p *problems, where, field string, used bool) {
	if used {
		p.addf(where, "%s: %w", field, errNotBuilt)
	}
}

func checkClient(p *problems, c ClientAddress) {
	for _, prefix := range c.Trusted {
		if !prefix.IsValid() {
			p.addf("", "Client.Trusted: %v is not a network", prefix)
		} else if prefix.Addr().Is4In6() {
			p.addf("", "Client.Trusted: %v; write the IPv4 network: addresses are compared as IPv4", prefix)
		}
	}
	if c.IPv6Bits != 0 && (c.IPv6Bits < 32 || c.IPv6Bits > 128) {
		p.addf("", "Client.IPv6Bits: %d; 32 to 128, or 0 for 64", c.IPv6Bits)
	}
	if strings.ContainsAny(c.Header, " :\t\r\n,") {
		p.addf("", "Client.Header: %q is not the name of a header", c.Header)
	}
	if c.Header != "" && len(c.Trusted) == 0 && !c.TrustUnix {
		p.addf("", "Client.Header: %q is read from trusted peers only, and Client.Trusted is empty", c.Header)
	}
}

func parseRoute(text string) (route, error) {
	method, pattern, ok := strings.Cut(text, " ")
	if !ok {
		method, pattern = "", text
	}
	r := Route(method, pattern).(route)
	return r, r.err
}
