package telemetry

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// shown collects a sketch: refusals by name, and those of everybody else.
func shown(s *sketch) (names map[string]int64, rest int64) {
	names = map[string]int64{}
	s.collect(func(name string, n int64) {
		if name == other {
			rest = n
			return
		}
		names[name] = n
	})
	return names, rest
}

// A few tenants are all shown at once, with exactly their refusals.
func TestSketchOfFew(t *testing.T) {
	s := newSketch(3)
	at := time.Unix(1_900_000_000, 0)
	for i, name := range []string{"a", "b", "a", "c", "a", "b"} {
		s.refused(name, at.Add(time.Duration(i)*time.Second))
	}
	names, rest := shown(s)
	if want := map[string]int64{"a": 3, "b": 2, "c": 1}; !maps.Equal(names, want) || rest != 0 {
		t.Errorf("%v and %d of others, want %v", names, rest, want)
	}
	// One more than can be shown: of equals, those stay that were shown before.
	s.refused("aa", at)
	names, rest = shown(s)
	if want := map[string]int64{"a": 3, "b": 2, "c": 1}; !maps.Equal(names, want) || rest != 1 {
		t.Errorf("%v and %d of others, want %v and 1", names, rest, want)
	}
	s.refused("aa", at)
	names, rest = shown(s)
	if want := map[string]int64{"a": 3, "b": 2, "aa": 1}; !maps.Equal(names, want) || rest != 1 {
		t.Errorf("%v and %d of others, want %v and 1: what was exported as others' stays there", names, rest, want)
	}
}

// The ten most refused of 100,000 tenants are named, whatever comes between them, and a million names that come once push
// none of them out and are never shown.
func TestSketchNamesTheMostRefused(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 4))
	zipf := rand.NewZipf(rng, 1.1, 1, 99_999)
	s := newSketch(20)
	at := time.Unix(1_900_000_000, 0)
	truth := map[string]int{}
	for range 1_000_000 {
		name := "tenant-" + strconv.FormatUint(zipf.Uint64(), 10)
		truth[name]++
		s.refused(name, at)
	}
	most := slices.SortedFunc(maps.Keys(truth), func(a, b string) int { return truth[b] - truth[a] })[:10]
	named := func(when string) {
		t.Helper()
		names, _ := shown(s)
		if len(names) > 20 {
			t.Errorf("%s: %d names are shown", when, len(names))
		}
		for _, name := range most {
			if _, ok := names[name]; !ok {
				t.Errorf("%s: %s, refused %d times, is not shown", when, name, truth[name])
			}
		}
		for name := range names {
			if strings.HasPrefix(name, "once") {
				t.Errorf("%s: %s is shown", when, name)
			}
		}
	}
	named("before the flood")
	for i := range 1_000_000 {
		s.refused("once-"+strconv.Itoa(i), at)
		if i%100_000 == 0 {
			named("in the flood")
		}
	}
	named("after the flood")
	if n := len(s.counters); n != 20*countersPerTenant || len(s.least) != n {
		t.Errorf("%d counters", n)
	}
}

// What is exported only grows, and every refusal is exported once, whoever comes and goes.
func TestSketchIsMonotonic(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 5))
		s := newSketch(1 + rng.IntN(3))
		at := time.Unix(1_900_000_000, 0)
		var refusals, others, gone int64 // gone: exported for names that lost their counter
		for range 200 {
			for range rng.IntN(200) {
				name := "t" + strconv.Itoa(int(rng.ExpFloat64()*float64(10+rng.IntN(300))))
				if s.counters[name] == nil && len(s.least) == s.named*countersPerTenant {
					gone += s.least[0].exported
				}
				s.refused(name, at)
				refusals++
			}
			at = at.Add(time.Duration(rng.Int64N(int64(halfLife))))
			was := map[string]int64{}
			for name, counter := range s.counters {
				was[name] = counter.exported
			}
			names, rest := shown(s)
			sum := gone + rest
			for name, counter := range s.counters {
				if sum += counter.exported; counter.exported < was[name] {
					t.Fatalf("seed %d: %s went from %d to %d", seed, name, was[name], counter.exported)
				}
			}
			for name, n := range names {
				if n != s.counters[name].exported {
					t.Fatalf("seed %d: %s is shown with %d", seed, name, n)
				}
			}
			if rest < others || sum != refusals {
				t.Fatalf("seed %d: %d refusals are exported of %d, those of others from %d to %d", seed, sum, refusals, others, rest)
			}
			others = rest
		}
	}
}

// A tenant that was refused much yesterday makes room for one that is refused now.
func TestSketchForgets(t *testing.T) {
	s := newSketch(1)
	at := time.Unix(1_900_000_000, 0)
	for range 1000 {
		s.refused("yesterday", at)
	}
	for range 10 {
		s.refused("today", at.Add(24*time.Hour))
	}
	if names, _ := shown(s); names["today"] != 10 || len(names) != 1 {
		t.Errorf("%v is shown", names)
	}
	// Within a half-life nothing is forgotten, and a clock that went back changes nothing.
	for range 9 {
		s.refused("yesterday", at)
	}
	if names, _ := shown(s); names["today"] != 10 {
		t.Errorf("%v is shown", names)
	}
}

// The memory that WithTenants states: 300 bytes a counter at most, with names of the greatest length.
func TestSketchMemory(t *testing.T) {
	const named = 20
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := newSketch(named)
	for i := range 200_000 {
		s.refused(fmt.Sprintf("%0*d", longestName, i), time.Unix(0, 0))
	}
	shown(s)
	runtime.GC()
	runtime.ReadMemStats(&after)
	bytes := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d bytes a counter", bytes/(named*countersPerTenant))
	if bytes > 300*named*countersPerTenant {
		t.Errorf("%d bytes for %d counters", bytes, named*countersPerTenant)
	}
	runtime.KeepAlive(s)
}

func TestShortened(t *testing.T) {
	long := strings.Repeat("ä", 40) // 80 bytes
	for in, want := range map[string]string{"": "", "acme": "acme", long: long[:64], "x" + long: "x" + long[:62]} {
		if got := shortened(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
