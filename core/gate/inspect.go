package gate

import (
	"context"
	"fmt"

	"github.com/headgate-go/headgate/core/driver"
)

// Usage tells what a key has left under a policy: it charges nothing, writes nothing, tells no observer, and asks the store
// whatever the policy's mode is. Key is what the limiter's Key yields, as for [Gate.Take]. The rule is the configured one:
// LimitFor and MaxFor are not asked, for there is no request. Of an unlimited policy the numbers are 0.
// It fails for a policy that does not exist, a key that does not fit it, and when the store fails.
func (g *Gate) Usage(ctx context.Context, policy string, key ...string) (Decision, error) {
	a := newAdmission(g, requestIn{Call{Operation: "usage"}, ctx})
	p, err := g.named(policy)
	if err == nil {
		a.text, err = g.subject(a.text, p, key)
	}
	if err != nil {
		return Decision{}, fmt.Errorf("gate: Usage: %w", err)
	}
	a.verdicts = append(a.verdicts, verdict{policy: p, mode: g.state.Load().modes[p.index], claim: -1, subject: a.kept(0)})
	a.claim(&a.verdicts[0], p.rule, 0)
	if len(a.claims) > 0 {
		a.entry[0].Claims = a.claims
		if err := g.storeDecide(ctx, a.entry[:]); err != nil {
			return Decision{}, fmt.Errorf("gate: Usage: policy %q: %w", policy, err)
		}
		a.conclude(nil)
	}
	return a.decision(0), nil
}

// Reset makes a key one that was never seen under a policy, for operators: its budget is whole again, and its slots count no
// more (requests that hold some go on, and may then be more than Max at a time). Key is what the limiter's Key yields, as
// for [Gate.Take]. Other processes that just refused the key see it within two seconds. It fails for a policy that does not
// exist, a key that does not fit it, a store that cannot be cleared, and when the store fails.
func (g *Gate) Reset(ctx context.Context, policy string, key ...string) error {
	p, err := g.named(policy)
	if err != nil {
		return fmt.Errorf("gate: Reset: %w", err)
	}
	subject, err := g.subject(nil, p, key)
	if err != nil {
		return fmt.Errorf("gate: Reset: %w", err)
	}
	store, ok := g.store.(driver.Inspector)
	if !ok {
		return fmt.Errorf("gate: Reset: the store, a %T, cannot be cleared; it has to implement driver.Inspector", g.store)
	}
	if err := store.Reset(ctx, p.name, string(subject)); err != nil {
		return fmt.Errorf("gate: Reset: policy %q: %w", policy, err)
	}
	if g.refusals != nil {
		g.refusals.Forget(p.name, string(subject))
	}
	return nil
}

// named finds a policy by its name.
func (g *Gate) named(name string) (*policy, error) {
	if p := g.policy(name); p != nil {
		return p, nil
	}
	return nil, g.unknownPolicy(name)
}
