package faulttest

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strconv"
	"strings"
)

// labelKey marks goroutines with the scene whose services they work for. Goroutines inherit labels, so that those of a
// store, its client and a server can be counted while other cases run.
const labelKey = "faulttest"

// inService runs f as part of the scene's services.
func (s *scene) inService(f func()) {
	pprof.Do(context.Background(), pprof.Labels(labelKey, s.label), func(context.Context) { f() })
}

// goroutines counts the goroutines of the scene's services, and shows where they are.
func (s *scene) goroutines() (n int, stacks string) {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		s.fatalf("goroutine profile: %v", err)
	}
	mark := fmt.Sprintf("%q:%q", labelKey, s.label)
	var found []string
	_, text, _ := strings.Cut(profile.String(), "\n") // the total
	for block := range strings.SplitSeq(text, "\n\n") {
		// "3 @ 0x1 0x2", "# labels: {...}", then a line for each call
		if !strings.Contains(block, mark) {
			continue
		}
		head, _, _ := strings.Cut(block, " ")
		count, err := strconv.Atoi(head)
		if err != nil {
			s.fatalf("goroutine profile: %q", block)
		}
		n += count
		found = append(found, block)
	}
	return n, strings.Join(found, "\n\n")
}
