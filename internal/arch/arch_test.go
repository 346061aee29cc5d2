package arch

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestRepository(t *testing.T) {
	repo, err := Load(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	if len(repo.Files) == 0 || len(repo.Modules) < 2 {
		t.Fatalf("found %d files in %d modules; is this the repository?", len(repo.Files), len(repo.Modules))
	}
	for _, f := range repo.Check() {
		t.Error(f)
	}
}

// TestBrokenTwins proves that every rule can fail: a twin is the good tree with one thing broken, and exactly the
// rules that it names must find it.
func TestBrokenTwins(t *testing.T) {
	text, err := os.ReadFile("testdata/twins.txt")
	if err != nil {
		t.Fatal(err)
	}
	trees, err := parseTwins(string(text))
	if err != nil {
		t.Fatal(err)
	}
	trees = append(trees, twin{"file-length", map[string]string{
		"core/gate/long.go": "package gate\n" + strings.Repeat("\n", longest),
	}})

	seen := map[string]bool{}
	for _, tw := range trees {
		files := maps.Clone(trees[0].files)
		maps.Copy(files, tw.files)
		want := strings.Fields(strings.SplitN(tw.title, ":", 2)[0])
		if tw.title == "good" {
			want = nil
		}
		t.Run(strings.Join(strings.Fields(tw.title), "_"), func(t *testing.T) {
			found, err := check(files)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range found {
				t.Log(f)
				got = append(got, f.Rule.Name)
			}
			slices.Sort(got)
			slices.Sort(want)
			if got := slices.Compact(got); !slices.Equal(got, want) {
				t.Errorf("rules that fired: %q; want %q", got, want)
			}
		})
		for _, name := range want {
			seen[name] = true
		}
	}
	for _, rule := range Rules() {
		if !seen[rule.Name] {
			t.Errorf("rule %s has no broken twin in testdata/twins.txt", rule.Name)
		}
		if rule.Why == "" {
			t.Errorf("rule %s does not say why", rule.Name)
		}
	}
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	for name, tc := range map[string]struct{ file, text, want string }{
		"module list": {"modules.txt", "core maybe\n", "yes or no"},
		"no module":   {"go.mod", "go 1.26.0\n", "no module line"},
		"no Go":       {"core/gate/gate.go", "pack age\n", "gate.go:1"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := map[string]string{"go.mod": "module m\n", "go.work": "use .\n", "modules.txt": ". yes\n"}
			tree[tc.file] = tc.text
			if _, err := check(tree); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v; want an error with %q", err, tc.want)
			}
		})
	}
}

func check(files map[string]string) ([]Finding, error) {
	tree := fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	repo, err := Load(tree)
	if err != nil {
		return nil, err
	}
	return repo.Check(), nil
}

type twin struct {
	title string
	files map[string]string
}

// parseTwins reads "== title" lines, each followed by files: "-- name --", then the text.
func parseTwins(text string) ([]twin, error) {
	var all []twin
	file := ""
	for line := range strings.Lines(text) {
		switch trimmed := strings.TrimSpace(line); {
		case strings.HasPrefix(line, "== "):
			all = append(all, twin{trimmed[3:], map[string]string{}})
			file = ""
		case strings.HasPrefix(line, "-- ") && strings.HasSuffix(trimmed, " --"):
			file = trimmed[3 : len(trimmed)-3]
		case file != "":
			all[len(all)-1].files[file] += line
		case len(all) > 0 && trimmed != "":
			return nil, fmt.Errorf("%q is in no file", trimmed)
		}
	}
	return all, nil
}

// root is the folder with go.work, above this package.
func root(t *testing.T) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.work above this package")
		}
		dir = filepath.Dir(dir)
	}
}
