package redisscript

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
)

func TestKeyName(t *testing.T) {
	t.Parallel()
	s := New(&fakeClient{})
	name := s.KeyName("tenant", "acme", five)
	equal(t, "key", name, "hg:{"+driver.Digest("acme")+"}:tenant:b1")
	equal(t, "with a prefix", New(&fakeClient{}, WithPrefix("app")).KeyName("tenant", "acme", five), "app"+strings.TrimPrefix(name, "hg"))
	equal(t, "unlimited", s.KeyName("tenant", "acme", driver.Unlimited()), "")
	equal(t, "none", s.KeyName("tenant", "acme", driver.Rule{}), "")
	long := s.KeyName("tenant", strings.Repeat("}{", 1<<20), five)
	equal(t, "length", len(long), len(name))
	for _, subject := range []string{"", "a", "}{", strings.Repeat("x", 300)} {
		equal(t, "digest", string(appendDigest([]byte("-"), subject)), "-"+driver.Digest(subject))
		if Slot(s.KeyName("tenant", subject, five)) != Slot(s.KeyName("other}", subject, five)) {
			t.Error("two limiters of a subject are on two slots")
		}
	}
}

// The server itself says what the slot of a key is.
func TestSlot(t *testing.T) {
	t.Parallel()
	equal(t, "the vector of the cluster specification", Slot("123456789"), 0x31C3)
	srv := redistest.Start(t, redistest.Single, redistest.WithArgs("--cluster-enabled", "yes"))
	keys := []string{"", "a", "foo", "{user1000}.following", "foo{}{bar}", "foo{{bar}}zap", "foo{bar}{zap}", "{", "}", "{}", "}{", "a{b", "a}b{c}",
		"rl:{ac}me}:t", "{}evil}", "\x00\xff{\xfe}", strings.Repeat("x", 1000)}
	for i := range 300 {
		keys = append(keys, fmt.Sprint("key:", i), New(nil).KeyName("tenant", fmt.Sprint(i), five))
	}
	for _, key := range keys {
		if want := do(t, srv, "CLUSTER", "KEYSLOT", key); want != int64(Slot(key)) {
			t.Errorf("%q: slot %d, the server says %v", key, Slot(key), want)
		}
	}
}
