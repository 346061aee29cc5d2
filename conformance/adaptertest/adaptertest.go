// Package adaptertest proves that an adapter does what every other one does: same statuses, same header fields, same
// bytes, over real sockets.
//
// The adapter's test turns [Site] into a small application of its framework, once, and calls [Run]:
//
//	func TestConformance(t *testing.T) { adaptertest.Run(t, newSite) }
//
// Some cases record what was sent and received. All adapters must equal one transcript, testdata/transcript.txt, byte
// for byte; what matters is asserted in each case as well, so that a wrong transcript does not certify itself.
package adaptertest

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"

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
)

// Names of the stored values, for gate.Value.
const (
	TenantValue = "tenant"
	UserValue   = "user"
)

// Site is what an adapter's test builds in its framework and serves on the listener of [Site.Listen], from the outside
// in:
//
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

//go:embed testdata/transcript.txt
var transcript string

// Run tests an adapter: every case is a subtest. A failure says which fact does not hold, and why it matters.
func Run(t *testing.T, newSite func(testing.TB, Site) (baseURL string)) {
	t.Helper()
	want := sections(transcript)
	for _, c := range cases() {
		t.Run(c.Name, func(t *testing.T) {
			x := execute(t, newSite, c, patience)
			for _, f := range append(x.failures, compare(c.Name, x.recorded(), want)...) {
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
}

// Failures runs every case and returns what Run would report, without failing tb: for testing the suite itself, with
// adapters that are wrong on purpose. Each failure begins with the name of its case; "transcript:" follows where only
// the recorded bytes differ.
func Failures(tb testing.TB, newSite func(testing.TB, Site) (baseURL string)) []string {
	tb.Helper()
	want := sections(transcript)
	var all []string
	for _, c := range cases() {
		x := execute(tb, newSite, c, impatience)
		for _, f := range append(x.failures, compare(c.Name, x.recorded(), want)...) {
			all = append(all, c.Name+": "+f)
		}
	}
	return all
}

// Transcript runs every case and returns what they recorded, in the form of testdata/transcript.txt.
func Transcript(tb testing.TB, newSite func(testing.TB, Site) (baseURL string)) string {
	tb.Helper()
	var b strings.Builder
	for _, c := range cases() {
		if x := execute(tb, newSite, c, patience); len(x.exchanges) > 0 {
			fmt.Fprintf(&b, "%s%s\n%s\n", sectionMark, c.Name, x.recorded())
		}
	}
	return b.String()
}
