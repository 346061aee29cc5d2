package httpgate_test

import (
	"flag"
	"os"
	"testing"

	"github.com/headgate-go/headgate/conformance/adaptertest"
)

var update = flag.Bool("update", false, "write the transcript that all adapters must equal")

// TestTranscript writes conformance/adaptertest/testdata/transcript.txt with -update; TestConformance compares it.
func TestTranscript(t *testing.T) {
	if !*update {
		return
	}
	if err := os.WriteFile("../../conformance/adaptertest/testdata/transcript.txt", []byte(adaptertest.Transcript(t, newSite)), 0o644); err != nil {
		t.Fatal(err)
	}
}
