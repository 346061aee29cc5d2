package httpgate_test

import (
	"flag"
	"os"
	"testing"

	"github.com/headgate-go/headgate/conformance/adaptertest"
)

var update = flag.Bool("update", false, "write the transcript that all adapters must equal")

// TestTranscript writes conformance/adaptertest/testdata/transcript.txt with -update. Otherwise TestConformance compares it.
func TestTranscript(t *testing.T) {
	const path = "../../conformance/adaptertest/testdata/transcript.txt"
	text := adaptertest.Transcript(t, newSite)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || string(want) != text {
		t.Fatalf("the transcript is out of date; regenerate it with -update and read the difference (%v)", err)
	}
}
