// Package adaptertest proves that an adapter does what every other one does: same statuses, same header fields, same
// bytes, over real sockets.
//
// The adapter's test turns [Site] into a small application of its framework, once, and calls [Run]:
//
//	func TestConformance(t *testing.T) { adaptertest.Run(t, newSite) }
//
// Most cases record what was sent and received. They run once for every choice of header dialects, with both forms of a
// refusal's body. All adapters must equal one transcript, testdata/transcript.txt, byte for byte; what matters is asserted
// in each case as well, so that a wrong transcript does not certify itself.
package adaptertest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/core/gate"
)

// GroupPrefix is the path of the site's one group. A route whose pattern begins with it belongs to the group.
const GroupPrefix = "/v1"

// Request fields that a site's own middleware stores.
const (
	// TenantHeader is stored by the middleware in front of all gates.
	TenantHeader = "X-Test-Tenant"
	// UserHeader is stored by the middleware behind the application's gates, which stands for authentication.
	UserHeader = "X-Test-User"
	// TimeoutHeader asks for middleware that ends a request after TimeLimit, in front of all gates.
	TimeoutHeader = "X-Test-Timeout"
)

// TimeLimit is when middleware for timeouts ends a request.
const TimeLimit = time.Millisecond

// Names of the stored values, for gate.Value.
const (
	TenantValue = "tenant"
	UserValue   = "user"
)

// Site is what an adapter's test builds in its framework and serves on the listener of [Site.Listen], from the outside
// in:
//
//   - the framework's own middleware for timeouts, for requests with the field TimeoutHeader; Site.Serve has it
//   - the framework's own recovery, then, where the framework has one, an error handler that calls [Site.Failed];
//     with DefaultErrors the framework's own instead
//   - middleware that stores the request field TenantHeader as TenantValue, natively, and asks [Site.Known]
//   - the gates App, each as middleware of the application
//   - the same middleware for UserHeader and UserValue
//   - the gates Group, on the group with the prefix GroupPrefix
//   - for each of Routes the gates Route, on the route
//   - a handler that calls [Site.Handle] with Route.Do
//
// A request that no route is for is answered by Site.Failed with 404, a wrong method with 405.
type Site struct {
	App, Group, Route []*gate.Gate
	Routes            []Route
	// DefaultErrors leaves out the error handler: the framework answers errors and panics in its own words.
	DefaultErrors bool

	probe *probe
}

// Route is one handler of a site. In Pattern, ":id" stands for one segment, and "*", at the end only, for any rest.
type Route struct {
	Method, Pattern string
	Do              Behaviour
}

// NewSite builds a site, serves it and returns its base URL. What it starts must end by tb.Cleanup.
type NewSite = func(tb testing.TB, site Site) (baseURL string)

// Run tests an adapter: every case is a subtest, with one of its own for each variant, such as draft-problem. A failure
// says which fact does not hold, and why it matters.
func Run(t *testing.T, newSite func(testing.TB, Site) (baseURL string)) {
	t.Helper()
	want := sections(transcript)
	for _, c := range cases() {
		section := want[c.Name]
		delete(want, c.Name)
		t.Run(c.Name, func(t *testing.T) {
			for _, v := range variantsOf(section) {
				t.Run(v.String(), func(t *testing.T) {
					x := execute(t, newSite, c, v, patience)
					for _, f := range append(x.failures, compare(x.recorded(), v.of(section))...) {
						t.Error(f)
					}
					for _, note := range x.notes {
						t.Log(note)
					}
					if t.Failed() {
						t.Logf("why this is tested: %s", c.Why)
					}
				})
			}
		})
	}
	for name := range want {
		t.Errorf("the transcript has a section %q that belongs to no case", name)
	}
}

// variantsOf returns the variants that a case runs in: all, if it has a section in the transcript.
func variantsOf(section string) []variant {
	if section == "" {
		return variants[:1]
	}
	return variants
}

// Failures runs the named cases, or every case, and returns what Run would report, without failing tb: for testing the
// suite itself, with adapters that are wrong on purpose. Each failure begins with the name of its case; "transcript:"
// follows where only the recorded bytes differ. As soon as one variant has failures, it returns those.
func Failures(tb testing.TB, newSite func(testing.TB, Site) (baseURL string), names ...string) []string {
	tb.Helper()
	want := sections(transcript)
	var all []string
	for _, v := range variants {
		for _, c := range cases() {
			if len(names) > 0 && !slices.Contains(names, c.Name) || !slices.Contains(variantsOf(want[c.Name]), v) {
				continue
			}
			x := execute(tb, newSite, c, v, impatience)
			for _, f := range append(x.failures, compare(x.recorded(), v.of(want[c.Name]))...) {
				all = append(all, c.Name+": "+f)
			}
		}
		if len(all) > 0 {
			break
		}
	}
	return all
}

// Transcript runs the cases and returns what they recorded, in the form of testdata/transcript.txt.
func Transcript(tb testing.TB, newSite func(testing.TB, Site) (baseURL string)) string {
	tb.Helper()
	var b strings.Builder
	for _, c := range cases() {
		var records [][]exchange
		for _, v := range variants {
			x := execute(tb, newSite, c, v, patience)
			if len(x.exchanges) == 0 {
				break
			}
			records = append(records, x.exchanges)
		}
		if len(records) == 0 {
			continue
		}
		section, err := merge(c.Name, records)
		if err != nil {
			tb.Fatal(err)
		}
		b.WriteString(section)
	}
	return b.String()
}
