package arch

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// longest is how many lines a file may have.
const longest = 400

// leftover finds words that mark unfinished work. The brackets keep it from finding itself.
var leftover = regexp.MustCompile(`\b(T[O]DO|F[I]XME|X[X]X|H[A]CK)\b`)

var sourceRules = []Rule{
	{
		Name: "package-name",
		Why:  "who reads an import path knows the package's name",
		check: eachFile(func(f *File, bad report) {
			name := f.Syntax.Name.Name
			if f.Test {
				name = strings.TrimSuffix(name, "_test")
			}
			folder := path.Base(f.Dir)
			if f.Dir == "." {
				folder = path.Base(f.Module.Path)
			}
			if name != "main" && name != folder {
				bad(f.Path, "is of package %s in folder %s", name, folder)
			}
		}),
	}, {
		Name: "file-length",
		Why:  "a longer file wants to be two",
		check: eachFile(func(f *File, bad report) {
			if n := strings.Count(f.Source, "\n"); n > longest && !f.Generated {
				bad(f.Path, "has %d lines; the most is %d", n, longest)
			}
		}),
	}, {
		Name: "no-sleep",
		Why:  "a test that sleeps is slow and still guesses; give the time as an argument, use testing/synctest, or poll",
		check: eachFile(func(f *File, bad report) {
			if f.Test {
				f.eachSelector(func(at ast.Node, of, name string) {
					if of == "time" && name == "Sleep" {
						bad(f.at(at), "sleeps")
					}
				})
			}
		}),
	}, {
		Name: "no-skip",
		Why:  "a skipped test looks like a passed one; a test that misses something fails and says how to get it",
		check: eachFile(func(f *File, bad report) {
			if slices.Contains(f.Imports, "testing") {
				f.eachSelector(func(at ast.Node, of, name string) {
					if name == "Skip" || name == "Skipf" || name == "SkipNow" || of == "testing" && name == "Short" {
						bad(f.at(at), "uses %s", name)
					}
				})
			}
		}),
	}, {
		Name: "no-leftovers",
		Why:  "what is not done is an issue, not a comment",
		check: eachFile(func(f *File, bad report) {
			if word := leftover.FindString(f.Source); word != "" && !f.Generated {
				bad(f.Path, "says %s", word)
			}
		}),
	}, {
		Name:  "doc-comments",
		Why:   "the documentation is what users read first",
		check: eachFile(checkDocs),
	},
}

func eachFile(check func(*File, report)) func(*Repo, report) {
	return func(r *Repo, bad report) {
		for _, f := range r.Files {
			check(f, bad)
		}
	}
}

// eachSelector calls visit for every x.Name in the file.
func (f *File) eachSelector(visit func(at ast.Node, of, name string)) {
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			of := ""
			if x, ok := s.X.(*ast.Ident); ok {
				of = x.Name
			}
			visit(n, of, s.Sel.Name)
		}
		return true
	})
}

func checkDocs(f *File, bad report) {
	if f.Test || f.Syntax.Name.Name == "main" || strings.Contains("/"+f.Dir+"/", "/internal/") {
		return
	}
	want := func(name *ast.Ident, comments ...*ast.CommentGroup) {
		for _, c := range comments {
			if c.Text() != "" {
				return
			}
		}
		if name.IsExported() {
			bad(f.at(name), "%s has no doc comment", name.Name)
		}
	}
	for _, decl := range f.Syntax.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if !obvious(d) {
				want(d.Name, d.Doc)
			}
		case *ast.GenDecl:
			if d.Tok != token.IMPORT {
				checkSpecs(d, want)
			}
		}
	}
}

// checkSpecs takes the comment of a group of constants or variables for all of it, and that of a type for itself only.
func checkSpecs(d *ast.GenDecl, want func(*ast.Ident, ...*ast.CommentGroup)) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if d.Lparen.IsValid() {
				want(s.Name, s.Doc)
			} else {
				want(s.Name, s.Doc, d.Doc)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				want(name, s.Doc, s.Comment, d.Doc)
			}
		}
	}
}

// obvious reports whether a function needs no comment: a method that only unexported types show, or one whose meaning
// its well-known name says.
func obvious(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) != 1 {
		return false
	}
	if d.Name.Name == "Error" || d.Name.Name == "String" {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.ParenExpr:
			t = x.X
		case *ast.Ident:
			return !x.IsExported()
		default:
			return false
		}
	}
}
