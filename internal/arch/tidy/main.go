// Tidy writes what every module needs to build alone: its requirements, and a replace line for each module of this
// repository that it depends on, directly or not. Package arch says which those are; the go command does the rest.
// Run it at the root of the repository. With -check it changes nothing, and fails where it would.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"

	"github.com/headgate-go/headgate/internal/arch"
)

// unreleased is required of a module of ours that was not required before; releases raise it.
const unreleased = "v0.0.0"

func main() {
	check := flag.Bool("check", false, "change nothing; fail where something would change")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "tidy:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	repo, err := arch.Load(os.DirFS("."))
	if err != nil {
		return err
	}
	// What a module needs comes first, since the go command reads its go.mod. It needs less, so its list is shorter.
	sort.SliceStable(repo.Modules, func(i, j int) bool {
		return len(repo.Needs(repo.Modules[i])) < len(repo.Needs(repo.Modules[j]))
	})
	stale := 0
	for _, m := range repo.Modules {
		edits := edits(repo, m)
		switch {
		case check && len(edits) > 0:
			fmt.Fprintf(os.Stderr, "%s: go mod edit %q\n", m.Dir, edits)
			stale++
		case check:
			if err := goMod(m, "tidy", "-diff"); err != nil {
				stale++
			}
		default:
			if len(edits) > 0 {
				if err := goMod(m, append([]string{"edit"}, edits...)...); err != nil {
					return err
				}
			}
			if err := goMod(m, "tidy"); err != nil {
				return err
			}
		}
	}
	if stale > 0 {
		return fmt.Errorf("%d modules are not tidy; run: make tidy", stale)
	}
	return nil
}

// edits are the flags of "go mod edit" that make the modules of this repository right in m's go.mod.
func edits(repo *arch.Repo, m *arch.Module) []string {
	var flags []string
	required := map[string]bool{}
	for _, p := range m.Requires {
		required[p] = true
	}
	for _, n := range repo.Imported(m) {
		if !required[n.Path] {
			flags = append(flags, "-require="+n.Path+"@"+unreleased)
		}
	}
	needs := map[string]bool{}
	for _, n := range repo.Needs(m) {
		needs[n.Path] = true
		if m.Replaces[n.Path] != m.Target(n) {
			flags = append(flags, "-replace="+n.Path+"="+m.Target(n))
		}
	}
	for _, other := range repo.Modules {
		if needs[other.Path] {
			continue
		}
		if m.Replaces[other.Path] != "" {
			flags = append(flags, "-dropreplace="+other.Path)
		}
		if required[other.Path] {
			flags = append(flags, "-droprequire="+other.Path)
		}
	}
	return flags
}

func goMod(m *arch.Module, args ...string) error {
	cmd := exec.Command("go", append([]string{"mod"}, args...)...)
	cmd.Dir = filepath.FromSlash(m.Dir)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: go mod %s: %w", m.Dir, args[0], err)
	}
	return nil
}
