package adaptertest_test

import (
	"strings"
	"testing"

	"github.com/headgate-go/headgate/conformance/adaptertest"
)

// The adapters of the small framework, without a fault, pass: what the suite finds in a twin is the twin's fault.
func TestFrameConforms(t *testing.T) { adaptertest.Run(t, site("")) }

func TestLazyFrameConforms(t *testing.T) { adaptertest.Run(t, site(lazy)) }

// A suite that cannot fail proves nothing. Every twin must be caught by the case that is about its fault, and by an
// assertion: the transcript alone would also catch it, but says only that something changed.
func TestBrokenTwinsAreCaught(t *testing.T) {
	for _, w := range twins {
		t.Run(string(w.fault), func(t *testing.T) {
			t.Parallel()
			var asserted, recorded []string
			for _, failure := range adaptertest.Failures(t, site(w.fault), w.by) {
				if strings.Contains(failure, ": transcript: ") {
					recorded = append(recorded, failure)
				} else {
					asserted = append(asserted, failure)
				}
			}
			switch {
			case len(asserted)+len(recorded) == 0:
				t.Fatalf("not caught by %s", w.by)
			case len(asserted) == 0:
				t.Fatalf("caught by the transcript only: %s", recorded[0])
			}
			t.Logf("%d assertions and %d records, first: %s", len(asserted), len(recorded), asserted[0])
		})
	}
}
