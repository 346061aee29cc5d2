package adaptertest

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The transcript holds what every variant of every recorded case must send and receive. A line that not all variants
// have begins with the names of those that do: of dialects, or of the body's form, or both.
//
//	[draft all] Ratelimit: "client";r=0;t=60
//	[problem] Content-Type: application/problem+json
//
//go:embed testdata/transcript.txt
var transcript string

// sectionMark begins the part of the transcript that belongs to one case; an exchange begins with exchangeMark.
const (
	sectionMark  = "=== "
	exchangeMark = "--- "
)

// sections splits a transcript by case.
func sections(text string) map[string]string {
	m := map[string]string{}
	for _, part := range strings.Split("\n"+text, "\n"+sectionMark)[1:] {
		name, body, _ := strings.Cut(part, "\n")
		m[name] = strings.TrimRight(body, "\n") + "\n"
	}
	return m
}

// of returns a section's lines for one variant.
func (v variant) of(section string) string {
	var b strings.Builder
	for line := range strings.Lines(section) {
		names, rest, tagged := strings.Cut(strings.TrimPrefix(line, "["), "] ")
		if !strings.HasPrefix(line, "[") || !tagged {
			b.WriteString(line)
		} else if v.among(strings.Fields(names)) {
			b.WriteString(rest)
		}
	}
	return b.String()
}

// among says whether names, of dialects and of forms of a body, mean the variant. Where no dialect is named, all are
// meant; the same with bodies.
func (v variant) among(names []string) bool {
	bodies := 0
	for _, name := range names {
		if name == bodyJSON || name == bodyProblem {
			bodies++
		}
	}
	return (bodies == 0 || slices.Contains(names, v.body())) && (bodies == len(names) || slices.Contains(names, v.name))
}

// merge writes one section from what a case recorded in each of the variants.
func merge(name string, records [][]exchange) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s\n", sectionMark, name)
	for i, first := range records[0] {
		b.WriteString(first.request)
		for kind := range kindsOfLine {
			owners := map[string][]variant{}
			for n, v := range variants {
				if len(records[n]) != len(records[0]) || records[n][i].request != first.request {
					return "", fmt.Errorf("%s: in the variant %s other requests were sent", name, v)
				}
				for _, line := range records[n][i].lines[kind] {
					owners[line] = append(owners[line], v)
				}
			}
			for _, line := range slices.Sorted(maps.Keys(owners)) {
				for _, tag := range tags(owners[line]) {
					b.WriteString(tag + line + "\n")
				}
			}
		}
	}
	b.WriteString("\n")
	return b.String(), nil
}

// tags names a set of variants as briefly as it can be done.
func tags(set []variant) []string {
	byBody := map[string][]string{}
	for _, v := range set {
		byBody[v.body()] = append(byBody[v.body()], v.name)
	}
	if slices.Equal(byBody[bodyJSON], byBody[bodyProblem]) {
		return []string{tag(byBody[bodyJSON], "")}
	}
	var list []string
	for _, body := range []string{bodyJSON, bodyProblem} {
		if names := byBody[body]; len(names) > 0 {
			list = append(list, tag(names, body))
		}
	}
	return list
}

func tag(names []string, body string) string {
	if len(names) == len(dialects) {
		names = nil
	}
	if body != "" {
		names = append(names, body)
	}
	if len(names) == 0 {
		return ""
	}
	return "[" + strings.Join(names, " ") + "] "
}
