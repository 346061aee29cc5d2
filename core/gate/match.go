package gate

import (
	"errors"
	"fmt"
	"strings"
)

// Match chooses requests. Make one with Route, PathPrefix, Paths, AnyOf, AllOf, Not or MatchFunc.
type Match interface {
	// String returns the match as text: "POST /v1/routes".
	String() string
	// Matches says whether the request is one of them; of use in Config.Tier too.
	Matches(Request) bool
	check() error
}

// Route matches a method and a path pattern. The method is upper case; "" or "*" is any, and GET is HEAD too, since
// routers answer HEAD from the handler of GET. In the pattern ":id" or "{id}"
// stands for one segment, and "*" or "{rest...}" at the end for any rest, also none. Letters match without regard to case
// and one slash at the end is ignored, since frameworks serve those spellings too. It looks at the path, never at the
// framework's route, which not every framework knows when a gate runs.
func Route(method, pattern string) Match {
	r := route{method: method, pattern: pattern}
	if r.method == "*" {
		r.method = ""
	}
	r.segments, r.rest, r.err = compileRoute(method, pattern)
	return r
}

type route struct {
	method, pattern string
	segments        []string // lower case; "" for any one segment
	rest            bool
	err             error
}

func compileRoute(method, pattern string) (segments []string, rest bool, err error) {
	if method != strings.ToUpper(method) {
		return nil, false, fmt.Errorf("Route: method %q; methods are upper case", method)
	}
	if !strings.HasPrefix(pattern, "/") {
		return nil, false, fmt.Errorf("Route: pattern %q does not begin with /", pattern)
	}
	if strings.ContainsAny(pattern, " ?#") {
		return nil, false, fmt.Errorf("Route: pattern %q holds a blank, ? or #; a pattern is a path", pattern)
	}
	text := strings.TrimSuffix(pattern[1:], "/")
	if text == "" {
		return nil, false, nil
	}
	list := strings.Split(text, "/")
	for i, s := range list {
		last := i == len(list)-1
		switch braces := strings.HasPrefix(s, "{") && strings.HasSuffix(s, "}"); {
		case s == "*", braces && strings.HasSuffix(s, "...}"):
			if !last {
				return nil, false, fmt.Errorf("Route: pattern %q: %s stands for the rest and must be last", pattern, s)
			}
			return segments, true, nil
		case s == ":", s == "{}":
			return nil, false, fmt.Errorf("Route: pattern %q: a parameter without a name", pattern)
		case s == "":
			return nil, false, fmt.Errorf("Route: pattern %q has an empty segment", pattern)
		case s[0] == ':', braces:
			segments = append(segments, "")
		case strings.ContainsAny(s, "{}*"):
			return nil, false, fmt.Errorf("Route: pattern %q: a parameter is a whole segment", pattern)
		default:
			segments = append(segments, strings.ToLower(s))
		}
	}
	return segments, false, nil
}

func (r route) String() string {
	if r.method == "" {
		return r.pattern
	}
	return r.method + " " + r.pattern
}

func (r route) check() error { return r.err }

func (r route) Matches(req Request) bool {
	if r.method != "" {
		if m := req.Method(); m != r.method && (m != "HEAD" || r.method != "GET") {
			return false
		}
	}
	return r.matchPath(req.Path())
}

func (r route) matchPath(path string) bool {
	if !strings.HasPrefix(path, "/") {
		return false
	}
	path = path[1:]
	if n := len(path); n > 0 && path[n-1] == '/' {
		path = path[:n-1]
	}
	more := path != ""
	for _, want := range r.segments {
		if !more {
			return false
		}
		var got string
		got, path, more = strings.Cut(path, "/")
		if want == "" {
			if got == "" {
				return false
			}
		} else if !equalFold(got, want) {
			return false
		}
	}
	return !more || r.rest
}

// equalFold compares with a lower-case text. It is strings.EqualFold for ASCII only: paths are bytes.
func equalFold(s, lower string) bool {
	if len(s) != len(lower) {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// PathPrefix matches paths that begin with prefix, byte for byte.
func PathPrefix(prefix string) Match {
	return matchFunc{text: prefix + "...", f: func(r Request) bool { return strings.HasPrefix(r.Path(), prefix) },
		err: needSlash("PathPrefix", prefix)}
}

// Paths matches exactly these paths, byte for byte.
func Paths(paths ...string) Match {
	m := matchFunc{text: strings.Join(paths, ", ")}
	set := make(map[string]struct{}, len(paths))
	for _, p := range paths {
		set[p] = struct{}{}
		m.err = errors.Join(m.err, needSlash("Paths", p))
	}
	if len(paths) == 0 {
		m.err = errors.New("Paths: no paths")
	}
	m.f = func(r Request) bool { _, ok := set[r.Path()]; return ok }
	return m
}

func needSlash(what, path string) error {
	if !strings.HasPrefix(path, "/") {
		return fmt.Errorf("%s: %q does not begin with /", what, path)
	}
	return nil
}

// AnyOf matches what at least one of the matches does.
func AnyOf(matches ...Match) Match {
	return matchFunc{text: "any of (" + joinText(matches, "; ") + ")", err: checkMatches("AnyOf", matches),
		f: func(r Request) bool {
			for _, m := range matches {
				if m.Matches(r) {
					return true
				}
			}
			return false
		}}
}

// AllOf matches what all of the matches do.
func AllOf(matches ...Match) Match {
	return matchFunc{text: "all of (" + joinText(matches, "; ") + ")", err: checkMatches("AllOf", matches),
		f: func(r Request) bool {
			for _, m := range matches {
				if !m.Matches(r) {
					return false
				}
			}
			return true
		}}
}

// Not matches what m does not.
func Not(m Match) Match {
	return matchFunc{text: "not (" + joinText([]Match{m}, "") + ")", err: checkMatches("Not", []Match{m}),
		f: func(r Request) bool { return !m.Matches(r) }}
}

// MatchFunc matches what f says. It runs on every request, and for a gate mounted several times once each.
func MatchFunc(f func(Request) bool) Match {
	m := matchFunc{text: "func", f: f}
	if f == nil {
		m.err = errors.New("MatchFunc: the function is nil")
	}
	return m
}

type matchFunc struct {
	text string
	f    func(Request) bool
	err  error
}

func (m matchFunc) String() string         { return m.text }
func (m matchFunc) Matches(r Request) bool { return m.f(r) }
func (m matchFunc) check() error           { return m.err }

func checkMatches(what string, matches []Match) error {
	if len(matches) == 0 {
		return fmt.Errorf("%s: no matches", what)
	}
	for i, m := range matches {
		if m == nil {
			return fmt.Errorf("%s: match %d is nil", what, i+1)
		}
		if err := m.check(); err != nil {
			return fmt.Errorf("%s: match %d: %w", what, i+1, err)
		}
	}
	return nil
}
