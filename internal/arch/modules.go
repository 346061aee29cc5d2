package arch

import (
	"path"
	"sort"
	"strings"
)

var moduleRules = []Rule{
	{
		Name: "modules-agree",
		Why:  "a module that go.work or modules.txt does not know is neither built, nor tested, nor released",
		check: func(r *Repo, bad report) {
			used := map[string]bool{}
			for _, dir := range r.Used {
				used[dir] = true
			}
			onDisk := map[string]bool{}
			for _, m := range r.Modules {
				onDisk[m.Dir] = true
				if !used[m.Dir] {
					bad("go.work", "does not use ./%s", m.Dir)
				}
				if _, ok := r.Listed[m.Dir]; !ok {
					bad("modules.txt", "does not list %s", m.Dir)
				}
			}
			for _, dir := range r.Used {
				if !onDisk[dir] {
					bad("go.work", "uses ./%s, which has no go.mod", dir)
				}
			}
			for dir := range r.Listed {
				if !onDisk[dir] {
					bad("modules.txt", "lists %s, which has no go.mod", dir)
				}
			}
		},
	}, {
		Name: "module-path",
		Why:  "the go command finds a nested module by its folder",
		check: eachModule(func(r *Repo, m *Module, bad report) {
			if want := path.Join(r.Modules[0].Path, m.Dir); m.Path != want {
				bad(m.file(), "module %s; its folder says %s", m.Path, want)
			}
		}),
	}, {
		Name: "replaces",
		Why:  `every module builds alone from this tree, so it replaces the modules of ours that it needs and nothing else; "make tidy" writes that`,
		check: eachModule(func(r *Repo, m *Module, bad report) {
			want := map[string]bool{}
			for _, n := range r.Needs(m) {
				want[n.Path] = true
				if got := m.Replaces[n.Path]; got != m.Target(n) {
					bad(m.file(), "replaces %s with %q instead of %q", n.Path, got, m.Target(n))
				}
			}
			for _, p := range sortedKeys(m.Replaces) {
				if !want[p] {
					bad(m.file(), "replaces %s, which it does not need", p)
				}
			}
		}),
	}, {
		Name: "released-on-released",
		Why:  "what is not released cannot be fetched, so a released module that needs it does not build elsewhere",
		check: eachModule(func(r *Repo, m *Module, bad report) {
			for _, n := range r.Needs(m) {
				if r.Listed[m.Dir] && !r.Listed[n.Dir] {
					bad(m.file(), "is released and needs %s, which is not", n.Path)
				}
			}
		}),
	}, {
		Name: "no-toolchain",
		Why:  "a toolchain line makes users download a Go release that they did not ask for",
		check: eachModule(func(_ *Repo, m *Module, bad report) {
			if m.Toolchain {
				bad(m.file(), "has a toolchain line")
			}
		}),
	}, {
		Name: "root-requires-nothing",
		Why:  "the library is standard library only; a third party gets a module of its own",
		check: func(r *Repo, bad report) {
			for _, p := range r.Modules[0].Requires {
				bad("go.mod", "requires %s", p)
			}
		},
	}, {
		Name: "no-foreign-internal",
		Why:  "an internal package changes without notice, and modules are released and chosen one by one",
		check: func(r *Repo, bad report) {
			for _, f := range r.Files {
				for _, p := range f.Imports {
					dir, ours := r.local(p)
					if ours && strings.Contains("/"+dir+"/", "/internal/") && r.moduleOf(dir) != f.Module {
						bad(f.Path, "imports %s of another module", p)
					}
				}
			}
		},
	},
}

func eachModule(check func(*Repo, *Module, report)) func(*Repo, report) {
	return func(r *Repo, bad report) {
		for _, m := range r.Modules {
			check(r, m, bad)
		}
	}
}

func (m *Module) file() string { return path.Join(m.Dir, "go.mod") }

func sortedKeys(set map[string]string) []string {
	var keys []string
	for k := range set {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
