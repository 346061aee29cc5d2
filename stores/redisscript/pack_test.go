package redisscript

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

func claimOn(subject string, rule driver.Rule, cost int) driver.Claim {
	return driver.Claim{Policy: "p", Subject: subject, Rule: rule, Cost: cost}
}

// requestsOf makes a request of each list of entries.
func requestsOf(t testing.TB, lists ...[]driver.Entry) (all []*request) {
	for _, list := range lists {
		r := &request{}
		for i := range list {
			if err := r.add("hg", &list[i]); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, r)
	}
	return all
}

func entry(claims ...driver.Claim) []driver.Entry { return []driver.Entry{{Claims: claims}} }

// What a pack looks like: equal requests together, repeats together, the rest one by one, each key once.
func TestEncode(t *testing.T) {
	t.Parallel()
	slow, fast := bucket(1, time.Minute, 5), bucket(10, time.Second, 50)
	var p pack
	arg := p.encode(requestsOf(t,
		entry(claimOn("a", slow, 1)),
		entry(claimOn("b", fast, 1)),
		entry(claimOn("c", slow, 1)),
		entry(claimOn("hot", slow, 1)), entry(claimOn("hot", slow, 1)), entry(claimOn("hot", slow, 2)), entry(claimOn("hot", slow, 1)),
		entry(claimOn("d", slow, 9)),
		entry(claimOn("x", slow, 1), claimOn("y", fast, 3)),
		entry(claimOn("y", fast, 3)),
		entry(claimOn("e", slow, 9)),
	))
	want := []string{
		"buckets key 1 x2: burst 5, 1 per 60000000us, cost 1 ->", // a, c
		"buckets key 3: burst 50, 1 per 100000us, cost 1 ->",     // b
		"buckets key 4 x2: burst 5, 1 per 60000000us, cost 6 ->", // d, e: above the capacity is one above it
		"bucket key 6 x2: burst 5, 1 per 60000000us, cost 1 ->",  // hot
		"bucket key 6: burst 5, 1 per 60000000us, cost 2 ->",
		"bucket key 6: burst 5, 1 per 60000000us, cost 1 ->",
		"bucket key 7: burst 5, 1 per 60000000us, cost 1 ->",     // x
		"bucket last key 8: burst 50, 1 per 100000us, cost 3 ->", // y
		"bucket last key 8: burst 50, 1 per 100000us, cost 3 ->", // y, shared with a request of two claims
	}
	got := strings.Split(strings.TrimSuffix(strings.ReplaceAll(FormatCall(arg, ""), " missing", ""), "\n"), "\n")
	equal(t, "records", strings.Join(got, "\n"), strings.Join(want, "\n"))
	var subjects []string
	s := New(nil)
	for _, key := range p.keys {
		for _, name := range strings.Split("a b c d e hot x y", " ") {
			if s.KeyName("p", name, slow) == key {
				subjects = append(subjects, name)
			}
		}
	}
	equal(t, "keys", subjects, []string{"a", "c", "b", "d", "e", "hot", "x", "y"})
	equal(t, "string keys", arg[:2], "\x08\x00")

	arg = p.encode(requestsOf(t, entry(claimOn("a", slow, 7))))
	equal(t, "fast path", FormatCall(arg, doubles(3, 20)), "bucket key 1: burst 5, 1 per 60000000us, cost 6 -> 3 20\n")
}

// What is wrong with one entry is said of it, and nothing of it is sent.
func TestEntryErrors(t *testing.T) {
	t.Parallel()
	client := &fakeClient{}
	s := New(client)
	defer s.Close()
	ok := bucket(1, time.Second, 5)
	shadow := claimOn("a", ok, 1)
	shadow.Shadow = true
	many := entries("m", 1, packClaims+1)[0]
	batch := []driver.Entry{
		{Claims: []driver.Claim{claimOn("a", ok, 1)}},
		{Claims: []driver.Claim{claimOn("a", ok, 1), claimOn("b", ok, -1)}},
		{Claims: []driver.Claim{claimOn("a", ok, math.MinInt)}},
		{Claims: []driver.Claim{claimOn("a", driver.Rule{}, 1)}},
		{Claims: []driver.Claim{claimOn("a", ok.WithBurst(0), 1)}},
		{Claims: []driver.Claim{claimOn("a", driver.Unlimited(), 1)}},
		{Claims: []driver.Claim{shadow, claimOn("a", ok, 1)}},
		many,
		{},
		{Claims: []driver.Claim{claimOn("a", ok, math.MaxInt)}},
		{Claims: []driver.Claim{shadow}, Err: errors.New("of the last time")},
	}
	if err := s.Decide(t.Context(), time.Time{}, batch); err != nil {
		t.Fatal(err)
	}
	var failed []int
	for i, e := range batch {
		if e.Err != nil {
			failed = append(failed, i)
		}
	}
	equal(t, "entries with errors", failed, []int{1, 2, 3, 4, 5, 6, 7})
	equal(t, "sent", client.sizes(), []int{3})
	equal(t, "taken", batch[0].Claims[0].Result.Remaining, 4)
	equal(t, "reason", batch[9].Claims[0].Result.Reason, driver.ReasonCost)

	client.calls = nil
	err := s.Apply(t.Context(), time.Time{}, []driver.Change{
		{Kind: driver.Settle, Policy: "p", Subject: "a", Rule: ok, Amount: 0},
		{Kind: driver.Settle, Policy: "p", Subject: "a", Rule: ok, Amount: math.MinInt},
		{Kind: driver.Settle, Policy: "p", Subject: "a", Rule: driver.Rule{}, Amount: 1},
		{Kind: driver.Release, Policy: "p", Subject: "a", Rule: ok},
		{Kind: driver.Settle, Policy: "p", Subject: "a", Rule: ok, Amount: math.MaxInt},
	})
	if err == nil || len(strings.Split(err.Error(), "\n")) != 2 {
		t.Errorf("two changes are wrong: %v", err)
	}
	equal(t, "sent", client.sizes(), []int{2})
}

func TestOptions(t *testing.T) {
	t.Parallel()
	client := &fakeClient{}
	for _, s := range []*Store{New(client), New(client, WithPrefix("app"), WithTimeout(time.Hour)), New(client, WithPrefix(""), WithTimeout(0))} {
		equal(t, "error", s.Err(), nil)
		equal(t, "close", s.Close(), nil)
	}
	for _, s := range []*Store{New(nil), New(client, WithPrefix("a{b")), New(client, WithPrefix("}")), New(client, WithTimeout(-1))} {
		if s.Err() == nil || !errors.Is(s.Decide(t.Context(), time.Time{}, nil), s.Err()) || !errors.Is(s.Apply(t.Context(), time.Time{}, nil), s.Err()) {
			t.Errorf("error %v", s.Err())
		}
	}
	s := New(client)
	for _, now := range []time.Time{time.UnixMicro(0), time.UnixMicro(-1), time.UnixMicro(driver.MaxMicros + 1), time.Unix(math.MaxInt64/2, 0)} {
		equal(t, now.String(), driver.ClassOf(s.Decide(t.Context(), now, nil)), driver.ClassOther)
	}
	equal(t, "in range", s.Decide(t.Context(), time.UnixMicro(driver.MaxMicros), entries("a", 1, 1)), nil)
	equal(t, "time", client.calls[0].args[1], "4503599627370495")
}

// Whatever a server answers, either it is refused as nonsense or the results are within the range of the rule.
func FuzzDecode(f *testing.F) {
	f.Add(uint8(0), []byte(doubles(5, 0)))
	f.Add(uint8(0), []byte(doubles(math.NaN(), 0)))
	f.Add(uint8(0), []byte(doubles(4.5, 0)))
	f.Add(uint8(0), []byte(doubles(math.Inf(1), math.MaxFloat64)))
	f.Add(uint8(1), []byte(doubles(5, 0, 4, 1, 3, 2, 5, 0)))
	f.Add(uint8(2), []byte(doubles(-5, 999_999)))
	f.Add(uint8(2), []byte(doubles(-6, 1_000_000)))
	f.Add(uint8(2), []byte{})
	f.Add(uint8(3), []byte(doubles(3, 5, 0)))
	f.Add(uint8(3), []byte(doubles(driver.MaxCount+1, 5, 0)))
	f.Fuzz(func(t *testing.T, shape uint8, reply []byte) {
		rule := bucket(7, time.Second, 5)
		lists := [][]driver.Entry{entry(claimOn("a", rule, 2))}
		switch shape % 4 {
		case 3:
			lists = [][]driver.Entry{entry(slotOn("a", 5, 1), claimOn("a", rule, 2))}
		case 1:
			lists = append(lists, entry(claimOn("b", rule, 2)), entry(claimOn("c", rule, 1), claimOn("d", rule, 6)))
		case 2:
			lists = append(lists, entry(claimOn("a", rule, 2)), entry(claimOn("a", rule, 2)))
		}
		var p pack
		all := requestsOf(t, lists...)
		p.encode(all)
		if err := p.decode(string(reply)); err != nil {
			if driver.ClassOf(err) != driver.ClassProtocol {
				t.Fatal(err)
			}
			return
		}
		for i, list := range lists {
			all[i].answer(&list[0], 0)
			for _, c := range list[0].Claims {
				r := c.Result
				if r.Remaining < 0 || r.Remaining > 5 || r.RetryAfter < 0 || r.ResetAfter < 0 || r.ResetAfter > 2*time.Second ||
					r.Fraction.Num < 0 || r.Fraction.Num > 0 && r.Fraction.Num >= r.Fraction.Den || r.Allowed && r.Reason != 0 {
					t.Fatalf("%+v", r)
				}
			}
		}
	})
}
