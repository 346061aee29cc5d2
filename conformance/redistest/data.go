package redistest

import (
	"os"
	"testing"
)

// memory is a folder of Linux that no disk is behind.
const memory = "/dev/shm"

// dataDir returns a folder for the files of a server, which is removed at the end of the test. A node of a cluster and a
// sentinel wait for the disk whenever somebody's role changes, and answer nobody meanwhile: on a disk that others write to
// that takes seconds, and looks like the faults that tests are about.
func dataDir(t testing.TB) string {
	dir, err := os.MkdirTemp(dataRoot(), "redistest-")
	if err != nil {
		t.Fatalf("redistest: a folder for a server: %v; HEADGATE_REDIS_DIR names another place", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func dataRoot() string {
	if dir := os.Getenv("HEADGATE_REDIS_DIR"); dir != "" {
		return dir
	}
	if info, err := os.Stat(memory); err == nil && info.IsDir() {
		return memory
	}
	return "" // the system's
}
