package arch

import "fmt"

// Rule is one thing that holds for the whole repository.
type Rule struct {
	Name  string
	Why   string
	check func(*Repo, report)
}

// report is called once for each place that breaks the rule.
type report func(where, format string, args ...any)

// Finding is one place that breaks a rule.
type Finding struct {
	Rule  Rule
	Where string
	What  string
}

func (f Finding) String() string {
	return fmt.Sprintf("%s: %s\n\trule %s: %s", f.Where, f.What, f.Rule.Name, f.Rule.Why)
}

// Rules returns every rule.
func Rules() []Rule {
	var all []Rule
	for _, a := range arrows {
		all = append(all, Rule{a.name, a.why, a.check})
	}
	all = append(all, moduleRules...)
	return append(all, sourceRules...)
}

// Check returns what breaks the rules.
func (r *Repo) Check() []Finding {
	var found []Finding
	for _, rule := range Rules() {
		rule.check(r, func(where, format string, args ...any) {
			found = append(found, Finding{rule, where, fmt.Sprintf(format, args...)})
		})
	}
	return found
}
