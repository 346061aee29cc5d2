package gate

import (
	"context"

	"github.com/headgate-go/headgate/core/driver"
)

// Settle corrects what a [RequestRate] policy was charged for this request, once the actual cost is known: the difference
// is taken or given back. It never refuses: a key that used more than it had falls into debt, by at most its capacity, and
// is refused until that is refilled. It works once per policy; it does nothing where nothing was charged (fail open,
// shadow, exempt), for a policy that was not asked, and for a negative cost.
func (a *Admission) Settle(policy string, actual int) {
	owner, v := a.charged(policy)
	if v == nil {
		return
	}
	if actual < 0 {
		owner.gate.log.warn(warnCost, "Settle: a negative cost is ignored", "policy", policy, "cost", actual)
		return
	}
	owner.mu.Lock()
	amount := actual - v.charge
	done := v.settled
	v.settled, v.charge = true, actual
	owner.mu.Unlock()
	if done || amount == 0 {
		return
	}
	v.policy.gives.Store(true)
	owner.gate.storeApply(owner.question.base, []driver.Change{owner.settlement(v, amount)})
}

// Charge takes more for this request from the key of a [RequestRate] policy, while the work goes on. A refusal means that
// it is not there, and nothing was taken; the handler decides what to do. It is nil otherwise, also where nothing was
// charged in the first place (see Settle), and a negative cost is charged as 1.
func (a *Admission) Charge(ctx context.Context, policy string, extra int) *Refusal {
	owner, v := a.charged(policy)
	if v == nil {
		return nil
	}
	more := newAdmission(owner.gate, requestIn{Call{Operation: "charge"}, ctx})
	more.verdicts = append(more.verdicts, verdict{policy: v.policy, mode: v.mode, claim: -1, subject: v.subject})
	more.claim(&more.verdicts[0], owner.claims[v.claim].Rule, extra)
	more.askStore(ctx)
	if more.took {
		owner.mu.Lock()
		v.charge += more.verdicts[0].cost
		owner.mu.Unlock()
	}
	return more.refusal
}

// charged finds the innermost admission in which the policy took tokens for this request.
func (a *Admission) charged(policy string) (*Admission, *verdict) {
	for ; a != nil; a = a.outer {
		for i := range a.verdicts {
			if v := &a.verdicts[i]; v.policy.name == policy && v.claim >= 0 && v.mode == Enforce && a.took && v.err == nil &&
				!v.policy.holds() {
				return a, v
			}
		}
	}
	return nil, nil
}

func (a *Admission) settlement(v *verdict, amount int) driver.Change {
	c := &a.claims[v.claim]
	return driver.Change{Kind: driver.Settle, Policy: c.Policy, Subject: c.Subject, Rule: c.Rule, Amount: amount,
		Receipt: c.Result.Receipt}
}

// giveBack returns the tokens that were taken of the claims that which names.
func (a *Admission) giveBack(which func(*verdict) bool) {
	if !a.took {
		return
	}
	var changes []driver.Change
	for i := range a.verdicts {
		v := &a.verdicts[i]
		if v.claim < 0 || v.policy.holds() || !which(v) || !a.claims[v.claim].Result.Allowed {
			continue
		}
		a.mu.Lock()
		if v.charge > 0 {
			changes = append(changes, a.settlement(v, -v.charge))
		}
		v.charge, v.settled = 0, true
		a.mu.Unlock()
	}
	if len(changes) > 0 {
		a.gate.storeApply(a.question.base, changes)
	}
}

// skips says whether a policy gives its cost back for a request that ended so.
func skips(failed bool) func(*verdict) bool {
	return func(v *verdict) bool {
		return failed && v.policy.skipFailed || !failed && v.policy.skipSuccessful
	}
}

func everyone(*verdict) bool { return true }
