package telemetry

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"time"
)

// countersPerTenant is how many counters a sketch has for each tenant that it is to name. A tenant with more than one in
// that many of all refusals, times the number named, is certain to be counted.
const countersPerTenant = 50

// halfLife is after how long a refusal counts half: who was refused much yesterday makes room for who is refused now.
const halfLife = 10 * time.Minute

// sketch counts who is refused most, in bounded memory, by the space-saving algorithm of Metwally, Agrawal and El Abbadi
// ("Efficient Computation of Frequent and Top-k Elements in Data Streams", 2005): a newcomer takes the place of whoever has
// least, together with its count, which is remembered as the newcomer's possible error. A name is shown only if its count
// without that error is more than anybody outside can have, so that a flood of names that come once shows none of them.
//
// What it exports is monotonic. A refusal is exported once: under its tenant's name if that is shown at the first collection
// after it, otherwise under "other".
type sketch struct {
	named    int // how many names are shown
	counters map[string]*tenant
	least    byCount
	aged     time.Time
	rest     int64 // exported as "other"
}

type tenant struct {
	name          string
	count, excess int64 // with age; excess of it may be somebody else's
	fresh         int64 // since the latest collection
	exported      int64
	shown         bool
	index         int // in least
}

func newSketch(named int) *sketch {
	return &sketch{named: named, counters: map[string]*tenant{}}
}

func (s *sketch) refused(name string, now time.Time) {
	s.age(now)
	t := s.counters[name]
	switch {
	case t != nil:
	case len(s.counters) < s.named*countersPerTenant:
		t = &tenant{name: strings.Clone(name)}
		s.counters[t.name] = t
		heap.Push(&s.least, t)
	default:
		t = s.least[0]
		delete(s.counters, t.name)
		s.rest += t.fresh
		*t = tenant{name: strings.Clone(name), count: t.count, excess: t.count, index: t.index}
		s.counters[t.name] = t
	}
	t.count++
	t.fresh++
	heap.Fix(&s.least, t.index)
}

// age halves every count, as often as half-lives have passed. The order by count stays.
func (s *sketch) age(now time.Time) {
	if s.aged.IsZero() {
		s.aged = now
	}
	periods := now.Sub(s.aged) / halfLife
	if periods <= 0 {
		return
	}
	s.aged = s.aged.Add(periods * halfLife)
	for _, t := range s.least {
		t.count >>= periods
		t.excess >>= periods
	}
}

// collect decides which names are shown, and calls export for each and for the rest.
func (s *sketch) collect(export func(name string, refusals int64)) {
	if len(s.least) == 0 {
		return
	}
	var outside int64 // the most that a name without a counter can have
	if len(s.least) == s.named*countersPerTenant {
		outside = s.least[0].count
	}
	list := slices.Clone(s.least)
	slices.SortFunc(list, func(a, b *tenant) int {
		return cmp.Or(cmp.Compare(b.certain(), a.certain()), cmp.Compare(b.incumbent(), a.incumbent()), cmp.Compare(a.name, b.name))
	})
	for i, t := range list {
		if t.shown = i < s.named && t.certain() > outside; t.shown {
			t.exported += t.fresh
			export(t.name, t.exported)
		} else {
			s.rest += t.fresh
		}
		t.fresh = 0
	}
	export(other, s.rest)
}

func (t *tenant) certain() int64 { return t.count - t.excess }

// incumbent prefers, of equals, who was shown before: names that take turns would be many time series.
func (t *tenant) incumbent() int {
	if t.shown {
		return 1
	}
	return 0
}

// byCount is a heap with the smallest count on top.
type byCount []*tenant

func (h byCount) Len() int           { return len(h) }
func (h byCount) Less(i, j int) bool { return h[i].count < h[j].count }
func (h byCount) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *byCount) Push(x any) {
	t := x.(*tenant)
	t.index = len(*h)
	*h = append(*h, t)
}

func (h *byCount) Pop() any { panic("telemetry: a sketch only grows") }
