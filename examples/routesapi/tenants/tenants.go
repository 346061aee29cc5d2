// Package tenants knows whose an API key is, and what the tenant pays for.
package tenants

import "crypto/sha256"

// Plan is what a tenant pays for.
type Plan string

// The plans.
const (
	Free       Plan = "free"
	Team       Plan = "team"
	Enterprise Plan = "enterprise"
)

// Tenant is a customer. Its name is unique, and is no secret as its key is.
type Tenant struct {
	Name string
	Plan Plan
}

// Table holds the tenants. It is made once and then only read, so it is safe for concurrent use. Keys are kept as digests:
// a copy of the table lets nobody in, and how long a look-up takes tells nothing about a key.
type Table struct {
	byKey map[[sha256.Size]byte]Tenant
	plans map[string]Plan
}

// New makes a table from API keys and their tenants.
func New(keys map[string]Tenant) *Table {
	t := &Table{byKey: map[[sha256.Size]byte]Tenant{}, plans: map[string]Plan{}}
	for key, tenant := range keys {
		t.byKey[sha256.Sum256([]byte(key))] = tenant
		t.plans[tenant.Name] = tenant.Plan
	}
	return t
}

// ByKey returns the tenant that an API key belongs to.
func (t *Table) ByKey(key string) (Tenant, bool) {
	tenant, ok := t.byKey[sha256.Sum256([]byte(key))]
	return tenant, ok
}

// PlanOf returns the plan of the tenant called name.
func (t *Table) PlanOf(name string) (Plan, bool) {
	plan, ok := t.plans[name]
	return plan, ok
}

// Sample is a table to try the API with.
func Sample() *Table {
	return New(map[string]Tenant{
		"key-acme":      {"acme", Team},
		"key-bumper":    {"bumper", Free},
		"key-nightly":   {"nightly", Team},
		"key-dashboard": {"dashboard", Team},
		"key-hoarder":   {"hoarder", Team},
		"key-globex":    {"globex", Enterprise},
	})
}
