package examples_test

import (
	"bufio"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Each of the small programs is built and started as a user would, and asked once.
func TestOneLineExamples(t *testing.T) {
	for _, name := range []string{"gin", "echo", "fiber", "nethttp"} {
		t.Run(name, func(t *testing.T) {
			resp, err := http.Get("http://" + start(t, name) + "/")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Errorf("status %d, want 200", resp.StatusCode)
			}
			for field, want := range map[string]string{"RateLimit-Limit": "500", "RateLimit-Remaining": "499", "RateLimit-Reset": "1"} {
				if got := resp.Header.Get(field); got != want {
					t.Errorf("%s: %q, want %q", field, got, want)
				}
			}
		})
	}
}

// start builds and runs an example on a free port until the test ends, and returns the address that it reports.
func start(t *testing.T, name string, args ...string) (addr string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), filepath.Base(name)+".exe")
	if out, err := exec.Command("go", "build", "-o", program, "./"+name).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	cmd := exec.Command(program, append(args, "-listen", "127.0.0.1:0")...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed, as it should be
	})
	var lines strings.Builder
	for in := bufio.NewScanner(stderr); in.Scan(); lines.WriteString(in.Text() + "\n") {
		if _, addr, ok := strings.Cut(in.Text(), "listening on "); ok {
			return addr
		}
	}
	t.Fatalf("it never said where it listens:\n%s", &lines)
	return ""
}
