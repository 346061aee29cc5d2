package adaptertest

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/headgate-go/headgate/core/gate"
)

// Names of fields.
const (
	fieldRetryAfter = "Retry-After"
	fieldPolicy     = "RateLimit-Policy"
	fieldState      = "RateLimit"
)

// single is a dialect of three fields that describe one limiter.
type single struct {
	dialect                 gate.HeaderSet
	limit, remaining, reset string
}

var singles = []single{
	{gate.HeadersStandard, "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"},
	{gate.HeadersLegacy, "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"},
}

// names are the fields of a variant's dialects.
func (v variant) names() (list []string) {
	for _, d := range singles {
		if v.speaks(d.dialect) {
			list = append(list, d.limit, d.remaining, d.reset)
		}
	}
	if v.speaks(gate.HeadersDraft) {
		list = append(list, fieldPolicy, fieldState)
	}
	return list
}

// budget checks the numbers in the dialects of the variant, and that no other dialect is there.
func (p *reply) budget(limit, remaining, reset int) *reply {
	return p.announces(p.x.variant, limit, remaining, reset)
}

// announces is budget for gates that choose their own dialects.
func (p *reply) announces(v variant, limit, remaining, reset int) *reply {
	for _, d := range singles {
		if !v.speaks(d.dialect) {
			p.lacks(d.limit, d.remaining, d.reset)
			continue
		}
		p.has(d.limit, strconv.Itoa(limit)).has(d.remaining, strconv.Itoa(remaining)).has(d.reset, strconv.Itoa(reset))
	}
	if !v.speaks(gate.HeadersDraft) {
		return p.lacks(fieldPolicy, fieldState)
	}
	return p.listed(limit, remaining, reset)
}

// silent checks that there are no numbers, in no dialect.
func (p *reply) silent() *reply { return p.announces(p.x.variant.in(gate.HeadersNone), 0, 0, 0) }

// draft checks the fields of the draft dialect where the variant has it.
func (p *reply) draft(policy, state string) *reply {
	if p.x.variant.speaks(gate.HeadersDraft) {
		p.has(fieldPolicy, policy).has(fieldState, state)
	}
	return p
}

// member is one policy in a field of the draft dialect. Numbers that are not there are -1.
type member struct {
	name       string
	q, w, r, t int
}

var memberForm = regexp.MustCompile(`^"([a-z0-9][a-z0-9_.-]{0,63})"((?:;[a-z]+=(?:[0-9]{1,15}|"[a-z-]*"))*)$`)

// members reads a field as RFC 9651 has lists of strings with parameters, and as strictly as a gate writes them.
func (p *reply) members(field string) (list []member) {
	lines := p.values(field)
	if len(lines) != 1 {
		p.failf("%s is %q; want one line", field, lines)
		return nil
	}
	for _, text := range strings.Split(lines[0], ", ") {
		parts := memberForm.FindStringSubmatch(text)
		if parts == nil {
			p.failf("%s is %q; %q is no string with parameters", field, lines[0], text)
			return nil
		}
		m := member{parts[1], -1, -1, -1, -1}
		for _, parameter := range strings.Split(parts[2], ";")[1:] {
			key, value, _ := strings.Cut(parameter, "=")
			n, _ := strconv.Atoi(value)
			switch key {
			case "q":
				m.q = n
			case "w":
				m.w = n
			case "r":
				m.r = n
			case "t":
				m.t = n
			}
		}
		list = append(list, m)
	}
	return list
}

// listed checks the draft dialect: each state belongs to a policy, one of them has these numbers, and on a refusal its
// time is the reset. A case that knows more uses draft.
func (p *reply) listed(limit, remaining, reset int) *reply {
	policies, states := p.members(fieldPolicy), p.members(fieldState)
	if p.status != 429 && len(states) != len(policies) {
		p.failf("%d policies have a state; want one for each of %d", len(states), len(policies))
	}
	found := false
	for _, s := range states {
		for len(policies) > 0 && policies[0].name != s.name { // in the same order; those that did not refuse have no state
			policies = policies[1:]
		}
		if len(policies) == 0 {
			return p.failf("%s has a state of %q; want one of %q only, in its order", fieldState, s.name, p.values(fieldPolicy))
		}
		quota := policies[0]
		if s.r > quota.q || s.r < 0 || s.t == 0 || quota.w == 0 {
			p.failf("%s is %q and %s is %q: the numbers do not go together", fieldState, p.values(fieldState), fieldPolicy, p.values(fieldPolicy))
		}
		found = found || quota.q == limit && s.r == remaining && (p.status != 429 || s.t == p.waits(quota, reset))
	}
	if !found {
		p.failf("%s is %q and %s is %q; want one with %d of %d left", fieldState, p.values(fieldState), fieldPolicy, p.values(fieldPolicy),
			remaining, limit)
	}
	return p
}

// waits is the time that a refused policy names: none where waiting cannot help, nor of slots, which have no time.
func (p *reply) waits(quota member, reset int) int {
	if quota.w < 0 || len(p.values(fieldRetryAfter)) == 0 {
		return -1
	}
	return reset
}
