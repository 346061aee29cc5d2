package adaptertest

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
)

// sectionMark begins the part of the transcript that belongs to one case; an exchange begins with exchangeMark.
const (
	sectionMark  = "=== "
	exchangeMark = "--- "
)

// unlike are the fields in which servers differ.
var unlike = []string{"Date", "Server", "Connection"}

// longBody is the length from which a body is recorded as its digest.
const longBody = 2000

// render writes an exchange as the transcript has it: names as they came, lines in order of their bytes.
func render(r request, res *response) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s\n", exchangeMark, r)
	for _, f := range r.fields {
		fmt.Fprintf(&b, "> %s: %s\n", f[0], f[1])
	}
	if r.body != nil {
		fmt.Fprintf(&b, "> (a body of %d bytes)\n", len(r.body))
	}
	fmt.Fprintf(&b, "%d\n", res.status)
	var lines []string
	for _, f := range res.fields {
		if !slices.ContainsFunc(unlike, func(name string) bool { return strings.EqualFold(name, f[0]) }) {
			lines = append(lines, f[0]+": "+f[1]+"\n")
		}
	}
	slices.Sort(lines)
	b.WriteString(strings.Join(lines, ""))
	switch {
	case len(res.body) > longBody:
		fmt.Fprintf(&b, "(%d bytes, sha256 %x)\n", len(res.body), sha256.Sum256(res.body))
	case len(res.body) > 0:
		fmt.Fprintf(&b, "%q\n", res.body)
	}
	if res.cut {
		b.WriteString("(cut short)\n")
	}
	return b.String()
}

func (x *exam) recorded() string { return strings.Join(x.exchanges, "") }

// sections splits a transcript by case.
func sections(text string) map[string]string {
	m := map[string]string{}
	for _, part := range strings.Split("\n"+text, "\n"+sectionMark) {
		name, body, _ := strings.Cut(part, "\n")
		m[name] = strings.TrimRight(body, "\n")
	}
	return m
}

// compare says where the record of a case differs from the transcript.
func compare(name, got string, want map[string]string) []string {
	expected := want[name]
	got = strings.TrimRight(got, "\n")
	if got == expected {
		return nil
	}
	g, w := strings.Split(got, "\n"), strings.Split(expected, "\n")
	exchange := ""
	for i := range max(len(g), len(w)) {
		var a, b string
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if strings.HasPrefix(b, exchangeMark) {
			exchange = b[len(exchangeMark):]
		}
		if a != b {
			return []string{fmt.Sprintf("transcript: %s: the line is %q; the transcript has %q", exchange, a, b)}
		}
	}
	return nil
}
