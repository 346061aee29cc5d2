package rounds

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// Setting describes where and how something was measured.
type Setting struct {
	Make    string   // the make target
	Command string   // what it runs in internal/bench
	Rounds  string   // what the rounds were
	Extra   []string // further lines
	Modules []string // whose versions are told; they must be in the build list
}

// String returns the setting as a Markdown list.
func (s Setting) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "- `make %s`, which runs `%s` in internal/bench\n", s.Make, s.Command)
	fmt.Fprintf(&b, "- %s, headgate at %s\n", time.Now().UTC().Format(time.DateOnly), revision())
	fmt.Fprintf(&b, "- %s %s/%s, GOMAXPROCS %d, a machine of %d cores\n", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.GOMAXPROCS(0), runtime.NumCPU())
	fmt.Fprintf(&b, "- %s\n", s.Rounds)
	for _, line := range s.Extra {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	if len(s.Modules) > 0 {
		fmt.Fprintf(&b, "- %s\n", strings.Join(versions(s.Modules), ", "))
	}
	return b.String()
}

// versions asks the go command, since a test's binary does not know the modules that it was built from.
func versions(modules []string) []string {
	out, err := exec.Command("go", append([]string{"list", "-m", "-f", "{{.Path}} {{.Version}}"}, modules...)...).Output()
	if err != nil {
		return []string{"versions of the modules: not known"}
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func revision() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "an unknown revision"
	}
	return strings.TrimSpace(string(out))
}

// WriteSection replaces what stands between <!-- name --> and <!-- /name --> in a file.
func WriteSection(file, name, text string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	first, last := []byte("<!-- "+name+" -->\n"), []byte("<!-- /"+name+" -->\n")
	from, to := bytes.Index(old, first), bytes.Index(old, last)
	if from < 0 || to < from {
		return fmt.Errorf("rounds: %s has no section %q", file, name)
	}
	from += len(first)
	return os.WriteFile(file, bytes.Join([][]byte{old[:from], []byte("\n" + strings.TrimSpace(text) + "\n\n"), old[to:]}, nil), 0o644)
}
