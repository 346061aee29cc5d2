package gate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

func keyed(t *testing.T, key gate.Key, burst int, change ...func(*gate.Config, *gate.RequestRate)) *gate.Gate {
	t.Helper()
	r := gate.RequestRate{Name: "p", Limit: limit.PerDay(1).WithBurst(burst), Key: key}
	c := gate.Config{Clock: newClock().now}
	for _, f := range change {
		f(&c, &r)
	}
	c.Limiters = []gate.Limiter{r}
	return newGate(t, c)
}

type tenantID string

type stringer struct{ id int }

func (s *stringer) String() string { return fmt.Sprint("id-", s.id) }

// digest is how two requests are told to have the same key or not.
func digest(t *testing.T, g *gate.Gate, r gate.Request) string {
	t.Helper()
	d, ok := g.Admit(context.Background(), r).Decision("p")
	if !ok {
		t.Fatal("the limiter was not asked")
	}
	return d.KeyDigest()
}

func TestValueKinds(t *testing.T) {
	g := keyed(t, gate.Value("tenant"), 1000, func(_ *gate.Config, r *gate.RequestRate) { r.OnMissingKey = gate.MissingKeySkip })
	for _, v := range []any{"7", 7, int64(7), uint8(7), tenantID("7")} {
		if got, want := digest(t, g, call("", "", "tenant", v)), digest(t, g, call("", "", "tenant", "7")); got != want {
			t.Errorf("%T is another key than the string", v)
		}
	}
	if got, want := digest(t, g, call("", "", "tenant", &stringer{3})), digest(t, g, call("", "", "tenant", "id-3")); got != want {
		t.Error("a Stringer is another key than its text")
	}
	for _, v := range []any{nil, "", "  ", 1.5, true, []byte("x"), (*stringer)(nil), struct{}{}} {
		if got := digest(t, g, call("", "", "tenant", v)); got != "" {
			t.Errorf("%T %v is a key", v, v)
		}
	}
}

// An API key that looks like an address must not drain the bucket of that address, nor a header that of a cookie.
func TestSourcesDoNotMeet(t *testing.T) {
	const text = "203.0.113.7"
	g := keyed(t, gate.Header("X-Api-Key"), 1)
	if n := admitted(g, call("", text, "X-Api-Key", text), 2); n != 1 {
		t.Fatalf("%d admitted", n)
	}
	if n := admitted(g, call("", text), 1); n != 1 {
		t.Error("the address is out of tokens that a header used")
	}
	parts := map[string]bool{}
	for _, k := range []gate.Key{gate.Header("a"), gate.Header("b"), gate.Cookie("a"), gate.Value("a"), gate.Const(text),
		gate.ClientIP(), gate.Join(gate.Header("a"), gate.Header("b")), gate.Normalize(gate.Header("a")),
		gate.KeyFunc(func(gate.Request) (string, error) { return text, nil })} {
		r := call("", text, "a", text, "b", text, "Cookie", "a="+text)
		parts[digest(t, keyed(t, k, 1), r)] = true
	}
	if len(parts) != 9 {
		t.Errorf("%d different keys of 9 sources", len(parts))
	}
}

// Parts cannot be moved from one to the next, whatever bytes they hold.
func TestJoinIsInjective(t *testing.T) {
	g := keyed(t, gate.Join(gate.Value("a"), gate.Value("b")), 1)
	seen := map[string][2]string{}
	for _, a := range []string{"x", "x\x00", "x:", "x}", "{x", "xy", strings.Repeat("x", 200)} {
		for _, b := range []string{"y", "\x00y", ":y", "yx", "x", "value:b", strings.Repeat("x", 200)} {
			d := digest(t, g, call("", "", "a", a, "b", b))
			if other, ok := seen[d]; ok {
				t.Errorf("%q and %q share a key", other, [2]string{a, b})
			}
			seen[d] = [2]string{a, b}
		}
	}
}

// BR-091: keys of any length are told apart by every byte, and what is stored stays short.
func TestBR091_LongKeys(t *testing.T) {
	g := keyed(t, gate.Header("X-Api-Key"), 3)
	for _, n := range []int{1, 255, 4096, 64 << 10, 1 << 20} {
		long := strings.Repeat("k", n-1)
		for _, last := range []string{"1", "2"} {
			if got := admitted(g, call("", "", "X-Api-Key", long+last), 5); got != 3 {
				t.Errorf("key of %d bytes: %d admitted, want 3", n, got)
			}
		}
		if k := g.StoreKey("p", long+"1"); len(k) > 200 {
			t.Errorf("a stored key of %d bytes", len(k))
		}
	}
}

// BR-095: a missing key is never a shared bucket and never silently no limit.
func TestBR095_MissingKey(t *testing.T) {
	failing := gate.KeyFunc(func(gate.Request) (string, error) { return "x", errors.New("no session") })
	empty := gate.KeyFunc(func(gate.Request) (string, error) { return "", nil })
	for _, key := range []gate.Key{gate.Header("X-Api-Key"), gate.Value("user"), gate.Cookie("session"), failing, empty,
		gate.Join(gate.ClientIP(), gate.Value("user")), gate.FirstOf(gate.Value("user"), gate.Header("X-Api-Key"))} {
		r := func(addr string) gate.Request { return call("", addr, "X-Api-Key", "  ", "Cookie", "other=1") }
		quiet := func(c *gate.Config) { c.Logger = new(lines).logger() }
		t.Run(key.String(), func(t *testing.T) {
			fallback := keyed(t, key, 5, func(c *gate.Config, _ *gate.RequestRate) { quiet(c) })
			for i := range 4 {
				if n := admitted(fallback, r(fmt.Sprintf("192.0.2.%d", i)), 6); n != 5 {
					t.Errorf("client %d: %d admitted, want 5 each", i, n)
				}
			}
			d, _ := fallback.Admit(context.Background(), r("192.0.2.9")).Decision("p")
			if d.Outcome != gate.OutcomeAllowed || d.Reason != gate.ReasonMissingKey {
				t.Errorf("fallback: %v for %v", d.Outcome, d.Reason)
			}
			skip := keyed(t, key, 5, func(c *gate.Config, r *gate.RequestRate) { quiet(c); r.OnMissingKey = gate.MissingKeySkip })
			if d, _ := skip.Admit(context.Background(), r("192.0.2.1")).Decision("p"); d.Outcome != gate.OutcomeSkipped || d.Reason != gate.ReasonMissingKey {
				t.Errorf("skip: %v for %v", d.Outcome, d.Reason)
			}
			reject := keyed(t, key, 5, func(c *gate.Config, r *gate.RequestRate) { quiet(c); r.OnMissingKey = gate.MissingKeyReject })
			ref := reject.Admit(context.Background(), r("192.0.2.1")).Refusal()
			if ref == nil || ref.Status != 400 || ref.Message != `The request carries no key for the limit "p".` || ref.RetryAfterSeconds() != 0 {
				t.Errorf("reject: %+v", ref)
			}
			shadow := keyed(t, key, 5, func(c *gate.Config, r *gate.RequestRate) {
				quiet(c)
				r.OnMissingKey, r.Mode = gate.MissingKeyReject, gate.Shadow
			})
			a := shadow.Admit(context.Background(), r("192.0.2.1"))
			if d, _ := a.Decision("p"); !a.Allowed() || d.Outcome != gate.OutcomeWouldDeny {
				t.Errorf("shadow: %v, allowed %v", d.Outcome, a.Allowed())
			}
		})
	}
}

// BR-094: a peer without an address is no key, not the key "<nil>".
func TestBR094_NoAddress(t *testing.T) {
	for _, addr := range []string{"", "@", "<nil>", "/run/app.sock"} {
		g := keyed(t, nil, 5)
		if d, _ := g.Admit(context.Background(), call("", addr)).Decision("p"); d.Outcome != gate.OutcomeSkipped || d.KeyDigest() != "" {
			t.Errorf("peer %q: %v", addr, d.Outcome)
		}
	}
	g := keyed(t, nil, 5, func(c *gate.Config, _ *gate.RequestRate) { c.Client.TrustUnix = true })
	for _, client := range []string{"198.51.100.1", "198.51.100.2"} {
		if n := admitted(g, call("", "@", "X-Forwarded-For", client), 10); n != 5 {
			t.Errorf("client %s behind a trusted socket: %d admitted", client, n)
		}
	}
}

// BR-098: the ready-made normalizer; other keys are used as they are.
func TestBR098_Normalize(t *testing.T) {
	folded, plain := keyed(t, gate.Normalize(gate.Value("mail")), 3), keyed(t, gate.Value("mail"), 3)
	total, apart := 0, 0
	for _, mail := range []string{"A@x.org", "a@x.org", " a@x.org ", "a@X.ORG"} {
		total += admitted(folded, call("", "", "mail", mail), 2)
		apart += admitted(plain, call("", "", "mail", mail), 2)
	}
	if total != 3 || apart != 8 {
		t.Errorf("normalized: %d admitted, want 3; as they are: %d, want 8", total, apart)
	}
}

func TestFirstOf(t *testing.T) {
	g := keyed(t, gate.FirstOf(gate.Value("user"), gate.Header("X-Api-Key")), 1)
	user := digest(t, g, call("", "", "user", "u", "X-Api-Key", "k"))
	if user != digest(t, g, call("", "", "user", "u")) {
		t.Error("the first key present does not decide")
	}
	if user == digest(t, g, call("", "", "X-Api-Key", "u")) {
		t.Error("a header is the same key as a value")
	}
}

func TestCookie(t *testing.T) {
	g := keyed(t, gate.Cookie("session"), 1000)
	want := digest(t, g, call("", "", "Cookie", "session=abc"))
	for _, line := range []string{"a=1; session=abc", "session=abc; session=other", ` session="abc" ;x`, "xsession=no;session=abc"} {
		if digest(t, g, call("", "", "Cookie", line)) != want {
			t.Errorf("Cookie %q: not found", line)
		}
	}
}

func TestLimitForSeesTheKey(t *testing.T) {
	var seen []string
	g := newGate(t, gate.Config{Limiters: []gate.Limiter{gate.RequestRate{Name: "p", Limit: limit.PerDay(1).WithBurst(1),
		Key: gate.Join(gate.Value("a"), gate.Const("c")),
		LimitFor: func(_ gate.Request, key string) (limit.Rule, bool) {
			seen = append(seen, key)
			switch key {
			case "big+c":
				return limit.PerDay(1).WithBurst(4), true
			case "free+c":
				return limit.Unlimited(), true
			case "broken+c":
				return limit.PerDay(-1), true
			}
			return limit.Rule{}, false
		}}}, Logger: new(lines).logger()})
	for tenant, want := range map[string]int{"big": 4, "free": 9, "broken": 1, "other": 1} {
		if n := admitted(g, call("", "", "a", tenant), 9); n != want {
			t.Errorf("%s: %d admitted, want %d", tenant, n, want)
		}
	}
	if len(seen) != 36 {
		t.Errorf("LimitFor ran %d times for 36 requests: %q", len(seen), seen[:4])
	}
}
