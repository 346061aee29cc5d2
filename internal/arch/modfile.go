package arch

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"sort"
	"strings"
)

// directives reads a go.mod or go.work: one list of words per directive, its verb first, blocks unfolded.
func directives(text string) [][]string {
	var all [][]string
	block := ""
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "//")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case block != "" && words[0] == ")":
			block = ""
		case block != "":
			all = append(all, append([]string{block}, words...))
		case len(words) == 2 && words[1] == "(":
			block = words[0]
		default:
			all = append(all, words)
		}
	}
	return all
}

func loadModule(tree fs.FS, name string) (*Module, error) {
	text, err := fs.ReadFile(tree, name)
	if err != nil {
		return nil, err
	}
	m := &Module{Dir: path.Dir(name), Replaces: map[string]string{}}
	for _, words := range directives(string(text)) {
		switch {
		case words[0] == "module" && len(words) == 2:
			m.Path = words[1]
		case words[0] == "toolchain":
			m.Toolchain = true
		case words[0] == "require" && len(words) == 3:
			m.Requires = append(m.Requires, words[1])
		case words[0] == "replace" && len(words) > 3: // path [version] => target [version]
			_, target, _ := strings.Cut(strings.Join(words, " "), "=> ")
			m.Replaces[words[1]] = target
		}
	}
	if m.Path == "" {
		return nil, fmt.Errorf("arch: %s: no module line", name)
	}
	return m, nil
}

func loadWork(tree fs.FS) ([]string, error) {
	text, err := fs.ReadFile(tree, "go.work")
	if err != nil {
		return nil, err
	}
	var used []string
	for _, words := range directives(string(text)) {
		if words[0] == "use" && len(words) == 2 {
			used = append(used, path.Clean(words[1]))
		}
	}
	sort.Strings(used)
	return used, nil
}

func loadList(tree fs.FS) (map[string]bool, error) {
	text, err := fs.ReadFile(tree, "modules.txt")
	if err != nil {
		return nil, err
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if len(words) != 2 || words[1] != "yes" && words[1] != "no" {
			return nil, fmt.Errorf("arch: modules.txt: %q: want a folder, then yes or no", strings.TrimSpace(line))
		}
		listed[words[0]] = words[1] == "yes"
	}
	return listed, nil
}

// Target is what m's go.mod replaces the module to with: the way from folder to folder.
func (m *Module) Target(to *Module) string {
	rel, err := filepath.Rel(filepath.FromSlash(m.Dir), filepath.FromSlash(to.Dir))
	if err != nil {
		panic(err) // both are relative to the root
	}
	rel = filepath.ToSlash(rel)
	if !strings.HasPrefix(rel, ".") {
		rel = "./" + rel
	}
	return rel
}
