package driver_test

import (
	"fmt"
	"testing"
)

// A million steps are what the arithmetic must survive without a difference; the keys are spread over two goroutines
// because the check runs with the race detector on small machines.
func TestBucketAgreesWithTheExactModel(t *testing.T) {
	const workers, steps = 2, 500_000
	for worker := range uint64(workers) {
		t.Run(fmt.Sprintf("seed %d", worker), func(t *testing.T) {
			t.Parallel()
			if n, err := run(theBucket(), seeded(worker), steps); err != nil {
				t.Fatal(err)
			} else if n != steps {
				t.Fatalf("%d steps done, want %d", n, steps)
			}
		})
	}
}

// The same comparison with steps chosen by a fuzzer, which looks for branches instead of for luck.
func FuzzBucket(f *testing.F) {
	for seed := range uint64(4) {
		bytes, source := make([]byte, 256), seeded(seed)
		for i := range bytes {
			bytes[i] = byte(source.below(256))
		}
		f.Add(bytes)
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, bytes []byte) {
		if _, err := run(theBucket(), &draws{fuzz: bytes}, 1000); err != nil {
			t.Fatal(err)
		}
	})
}
