package faulttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

// hostile returns names of tenants that were made to end up in somebody's slot, key, command or script.
func hostile(n int) []string {
	random := rand.New(rand.NewPCG(54, 0))
	parts := []string{"{", "}", "{}", "}{", "{{", "}}", "{a}", "\x00", "\r\n", "\xff", "\xc3\x28", ":", "hg:{", "}:tenant:b1", "%7B",
		" ", "\t", "*", "$9\r\n", "ü", "ａ", "日本", "🚪", "\u202e", "\u0000", "'; return 1 --", "KEYS[1]", "..", "\\", "a", "0"}
	long := strings.Repeat("{x}\x00é", 64<<10/7)
	list := make([]string, n)
	for i := range list {
		var name strings.Builder
		for range random.IntN(8) {
			name.WriteString(parts[random.IntN(len(parts))])
		}
		// A number makes each another one, wherever it stands.
		unique := fmt.Sprintf("%s%d%s", parts[random.IntN(len(parts))], i, name.String())
		switch i % 200 {
		case 0:
			unique = unique + long
		case 1:
			unique = long + unique
		}
		list[i] = unique
	}
	return list
}

const hostileTenants = 10_000

// lease is longer than the case takes.
const lease = 10 * time.Minute

var hostileCases = []Case{
	{Name: "BR054_hostile_tenants", Why: "a tenant whose name leads the keys of one call into two slots has no limits: every call fails, and the gate fails open",
		run: func(s *scene) {
			nodes := s.cluster(redistest.WithReplicas(0))
			tenant := gate.Value("tenant")
			limiters := []gate.Limiter{
				gate.RequestRate{Name: "bucket", Limit: limit.PerDay(1), Key: tenant},
				gate.RequestRate{Name: "sliding", Limit: limit.Sliding(100, 24*time.Hour), Key: tenant},
				gate.RequestRate{Name: "monthly", Limit: limit.Monthly(100), Key: tenant},
				gate.ConcurrentRequests{Name: "slots", Max: 2, Key: tenant, LeaseTime: lease},
			}
			sv := s.serveOn(nodes.Addrs(), gate.Config{Limiters: limiters, StoreTimeout: steady})
			names := hostile(hostileTenants)
			policies := []string{"bucket", "sliding", "monthly", "slots"}
			held := sv.admitAll(names, "bucket", gate.OutcomeAllowed)
			sv.admitAll(names, "bucket", gate.OutcomeDenied) // the state that is found is the tenant's

			least, most, sum := int64(1)<<62, int64(0), int64(0)
			for _, node := range nodes.Servers() {
				n, _ := s.ask(node, "DBSIZE").(int64)
				least, most, sum = min(least, n), max(most, n), sum+n
			}
			if n := s.answered("CROSSSLOT"); n != 0 {
				sv.failf("the nodes answered CROSSSLOT %d times", n)
			}
			if share := float64(most) / float64(least); share > 1.3 {
				sv.failf("the nodes have from %d to %d keys", least, most)
			}
			s.notef("%d tenants: %d keys, from %d to %d on a node (%.3f)", len(names), sum, least, most, float64(most)/float64(least))
			if want := int64(len(names) * len(policies)); sum != want {
				sv.failf("%d keys of %d tenants under %d policies", sum, len(names), len(policies))
			}
			sv.whereToldTo(names, policies)

			for _, a := range held {
				a.Done(nil)
			}
			if err := sv.gate.Close(context.Background()); err != nil { // waits for the releases
				sv.failf("Close: %v", err)
			}
			left := int64(0)
			for _, node := range nodes.Servers() {
				n, _ := s.ask(node, "DBSIZE").(int64)
				left += n
			}
			if want := sum - int64(len(names)); left != want {
				sv.failf("%d keys after all slots were released; want %d", left, want)
			}
		}},
}

// admitAll asks for each tenant once, many at a time, and checks what the policy says.
func (sv *service) admitAll(names []string, policy string, want gate.Outcome) []*gate.Admission {
	all := make([]*gate.Admission, len(names))
	next := make(chan int)
	sv.inService(func() {
		var running sync.WaitGroup
		for range 64 {
			running.Go(func() {
				for i := range next {
					a := sv.gate.Admit(context.Background(), gate.Call{Operation: "GET /", Values: map[string]any{"tenant": names[i]}})
					if d, _ := a.Decision(policy); d.Outcome != want {
						sv.failf("%.80q is %v (want %v): %v", names[i], d.Outcome, want, d.Err)
					}
					all[i] = a
				}
			})
		}
		for i := range names {
			next <- i
		}
		close(next)
		running.Wait()
	})
	return all
}

// whereToldTo checks that each key is where the gate says that an operator finds it. A node refuses to look at another's.
func (sv *service) whereToldTo(names, policies []string) {
	servers := sv.nodes.Servers()
	for i, name := range names {
		if i%20 >= 2 && len(name) < 1000 {
			continue
		}
		var keys []string
		for _, policy := range policies {
			keys = append(keys, sv.gate.StoreKey(policy, name))
		}
		found := false
		for _, node := range servers {
			n, err := node.Do(append([]string{"EXISTS"}, keys...)...)
			var answer redistest.Error
			if errors.As(err, &answer) && strings.HasPrefix(err.Error(), "MOVED") {
				continue
			}
			found = err == nil && n == int64(len(keys))
			break
		}
		if !found {
			sv.failf("the keys of %.80q are not where the gate says: %q", name, keys)
		}
	}
}
