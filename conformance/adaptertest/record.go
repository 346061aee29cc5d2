package adaptertest

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// exchange is one request and its response as the transcript has them: the request's lines, then the kinds of lines of
// the response, names as they came and in order of their bytes.
type exchange struct {
	request string
	lines   [kindsOfLine][]string
}

// Kinds of lines of a response.
const (
	lineStatus = iota
	lineField
	lineBody
	lineCut // the body is cut short
	kindsOfLine
)

// unlike are the fields in which servers differ.
var unlike = []string{"Date", "Server", "Connection"}

// longBody is the length from which a body is recorded as its digest.
const longBody = 2000

func (x *exam) record(r request, res *response) {
	x.exchanges = append(x.exchanges, exchange{r.recorded(), res.recorded()})
}

func (r request) recorded() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s\n", exchangeMark, r)
	for _, f := range r.fields {
		fmt.Fprintf(&b, "> %s: %s\n", f[0], f[1])
	}
	if r.body != nil {
		fmt.Fprintf(&b, "> (a body of %d bytes)\n", len(r.body))
	}
	return b.String()
}

func (r *response) recorded() (lines [kindsOfLine][]string) {
	lines[lineStatus] = []string{strconv.Itoa(r.status)}
	for _, f := range r.fields {
		if !slices.ContainsFunc(unlike, func(name string) bool { return strings.EqualFold(name, f[0]) }) {
			lines[lineField] = append(lines[lineField], f[0]+": "+f[1])
		}
	}
	slices.Sort(lines[lineField])
	switch text := string(r.body); {
	case text == "":
	case len(text) > longBody:
		lines[lineBody] = []string{fmt.Sprintf("(%d bytes, sha256 %x)", len(text), sha256.Sum256(r.body))}
	case strconv.CanBackquote(text):
		lines[lineBody] = []string{"`" + text + "`"}
	default:
		lines[lineBody] = []string{strconv.Quote(text)}
	}
	if r.cut {
		lines[lineCut] = []string{"(cut short)"}
	}
	return lines
}

// recorded is what the transcript must have of the case, for its variant.
func (x *exam) recorded() string {
	var b strings.Builder
	for _, e := range x.exchanges {
		b.WriteString(e.request)
		for _, line := range slices.Concat(e.lines[:]...) {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// compare says where the record of a case differs from the transcript's.
func compare(got, want string) []string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
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
