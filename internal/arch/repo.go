package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"sort"
	"strconv"
	"strings"
)

// Repo is what the rules look at: every module and every Go file under one folder.
type Repo struct {
	Modules []*Module       // sorted by folder; the root module, ".", comes first
	Used    []string        // the folders in go.work, sorted
	Listed  map[string]bool // the folders in modules.txt, and whether they are released
	Files   []*File
}

// Module is one go.mod.
type Module struct {
	Dir       string // slash-separated, relative to the root; "." for the root module
	Path      string
	Toolchain bool
	Requires  []string
	Replaces  map[string]string
}

// File is one Go file.
type File struct {
	Path      string // relative to the root
	Dir       string
	Module    *Module
	Test      bool
	Generated bool
	Imports   []string
	Source    string
	Syntax    *ast.File
	Positions *token.FileSet
}

// Load reads the tree. It follows the go command in what it leaves out: testdata, and names that begin with "." or "_".
func Load(tree fs.FS) (*Repo, error) {
	r := &Repo{}
	var goFiles []string
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		base := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name != "." && (base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_') {
				return fs.SkipDir
			}
		case base == "go.mod":
			m, err := loadModule(tree, name)
			if err != nil {
				return err
			}
			r.Modules = append(r.Modules, m)
		case strings.HasSuffix(base, ".go") && base[0] != '.' && base[0] != '_':
			goFiles = append(goFiles, name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	sort.Slice(r.Modules, func(i, j int) bool { return r.Modules[i].Dir < r.Modules[j].Dir })
	if len(r.Modules) == 0 || r.Modules[0].Dir != "." {
		return nil, fmt.Errorf("arch: no go.mod at the root")
	}
	if r.Used, err = loadWork(tree); err != nil {
		return nil, err
	}
	if r.Listed, err = loadList(tree); err != nil {
		return nil, err
	}
	for _, name := range goFiles {
		f, err := loadFile(tree, name)
		if err != nil {
			return nil, err
		}
		f.Module = r.moduleOf(f.Dir)
		r.Files = append(r.Files, f)
	}
	return r, nil
}

func loadFile(tree fs.FS, name string) (*File, error) {
	src, err := fs.ReadFile(tree, name)
	if err != nil {
		return nil, err
	}
	f := &File{
		Path: name, Dir: path.Dir(name), Test: strings.HasSuffix(name, "_test.go"),
		Source: string(src), Positions: token.NewFileSet(),
	}
	f.Syntax, err = parser.ParseFile(f.Positions, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("arch: %w", err)
	}
	f.Generated = ast.IsGenerated(f.Syntax)
	for _, spec := range f.Syntax.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("arch: %s: %w", name, err)
		}
		f.Imports = append(f.Imports, p)
	}
	return f, nil
}

// at says where in the file a node is.
func (f *File) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.Path, f.Positions.Position(n.Pos()).Line)
}

// moduleOf returns the module that holds a folder: the one with the longest matching folder.
func (r *Repo) moduleOf(dir string) *Module {
	best := r.Modules[0]
	for _, m := range r.Modules[1:] {
		if below(dir, m.Dir) && len(m.Dir) > len(best.Dir) {
			best = m
		}
	}
	return best
}

// local turns the import path of a package of ours into its folder.
func (r *Repo) local(importPath string) (dir string, ours bool) {
	root := r.Modules[0].Path
	if importPath == root {
		return ".", true
	}
	dir, ours = strings.CutPrefix(importPath, root+"/")
	return dir, ours
}

// Imported returns the other modules of the repository that files of m import, tests included.
func (r *Repo) Imported(m *Module) []*Module {
	found := map[*Module]bool{}
	for _, f := range r.Files {
		if f.Module != m {
			continue
		}
		for _, p := range f.Imports {
			if dir, ours := r.local(p); ours {
				found[r.moduleOf(dir)] = true
			}
		}
	}
	delete(found, m)
	return sorted(found)
}

// Needs returns the modules of the repository that m depends on, directly or not: those that its go.mod replaces.
func (r *Repo) Needs(m *Module) []*Module {
	found := map[*Module]bool{}
	todo := []*Module{m}
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		for _, n := range r.Imported(next) {
			if !found[n] {
				found[n] = true
				todo = append(todo, n)
			}
		}
	}
	delete(found, m)
	return sorted(found)
}

func sorted(set map[*Module]bool) []*Module {
	var list []*Module
	for m := range set {
		list = append(list, m)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Dir < list[j].Dir })
	return list
}

// below reports whether dir is top or a folder in it.
func below(dir, top string) bool {
	return top == "." || dir == top || strings.HasPrefix(dir, top+"/")
}
