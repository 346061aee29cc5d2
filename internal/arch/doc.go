// Package arch checks the shape of the repository: which package may import which, that go.work, modules.txt and the
// go.mod files agree, and a few rules for the source text. The rules are tables, in arrows.go, modules.go and
// source.go; each says why it exists. To allow or forbid something, change a row, and its broken twin in
// testdata/twins.txt, which proves that the row can fail.
//
// The command in folder tidy writes what the module rules ask for.
package arch
