package driver_test

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/headgate-go/headgate/core/driver"
)

func subject(parts ...string) string {
	var s []byte
	for _, part := range parts {
		s = driver.AppendSubject(s, part)
	}
	return string(s)
}

// split takes a subject apart again. That it always can is the proof that no two lists of parts share a subject.
func split(t *testing.T, text string) []string {
	t.Helper()
	var parts []string
	for rest := []byte(text); len(rest) > 0; {
		length, size := binary.Uvarint(rest)
		if size <= 0 || length > uint64(len(rest)-size) {
			t.Fatalf("%q cannot be taken apart at %q", text, rest)
		}
		parts = append(parts, string(rest[size:][:length]))
		rest = rest[size:][length:]
	}
	return parts
}

// Whoever controls one part of a key (a header, an address) must not be able to write another key with it.
func TestSubjectsOfDifferentPartsDiffer(t *testing.T) {
	for _, pair := range [][2][]string{
		{{"ab", "c"}, {"a", "bc"}},
		{{"a", ""}, {"a"}},
		{{""}, {}},
		{{"", "a"}, {"a", ""}},
		{{"a", "b"}, {"a\x01b"}}, // the second looks like the encoding of the first
		{{"a:b"}, {"a", "b"}},
		{{strings.Repeat("x", 127)}, {strings.Repeat("x", 128)}}, // the length grows by a byte
	} {
		if a, b := subject(pair[0]...), subject(pair[1]...); a == b {
			t.Errorf("%q and %q are both %q", pair[0], pair[1], a)
		}
	}
}

func TestSubjectCanBeTakenApart(t *testing.T) {
	d := seeded(17)
	for range 5_000 {
		parts := make([]string, d.below(6))
		for i := range parts {
			part := make([]byte, d.scaled(1, 300)-1)
			for j := range part { // few letters, so that parts resemble each other and their lengths
				part[j] = byte(d.below(4))
			}
			parts[i] = string(part)
		}
		if got := split(t, subject(parts...)); !slices.Equal(got, parts) {
			t.Fatalf("%q came back as %q", parts, got)
		}
	}
}

func FuzzSubject(f *testing.F) {
	f.Add("gate", "ip", "192.0.2.1")
	f.Add("", "\x00", "\x01a")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		parts := []string{a, b, c}
		if got := split(t, subject(parts...)); !slices.Equal(got, parts) {
			t.Fatalf("%q came back as %q", parts, got)
		}
		if b != "" && subject(a, b) == subject(a+b) {
			t.Fatalf("%q, %q is %q", a, b, a+b)
		}
	})
}

// AppendSubject appends: what dst held stays, and dst's own spare room is used.
func TestAppendSubjectAppends(t *testing.T) {
	room := make([]byte, 0, 64)
	if got := driver.AppendSubject(append(room, "x"...), "ab"); string(got) != "x\x02ab" || &got[0] != &room[:1][0] {
		t.Errorf("got %q", got)
	}
	if n := testing.AllocsPerRun(100, func() { driver.AppendSubject(room, "192.0.2.1") }); n != 0 {
		t.Errorf("%v allocations with room to spare, want 0", n)
	}
}

// The digest is in the keys of shared stores: if it changes, every counter in the world starts over. The vectors are
// from openssl dgst -sha256 -binary | head -c 16 | basenc --base64url, less the padding.
func TestDigestIsFixed(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "47DEQpj8HBSa-_TImW-5JA",
		"abc":                             "ungWv48Bz-pBQUDeXa4iIw",
		subject("api", "ip", "192.0.2.1"): "jgFLPSDyfz-W5uyrSOHEAg",
	} {
		if got := driver.Digest(text); got != want {
			t.Errorf("Digest(%q) = %q, want %q", text, got, want)
		}
	}
}

// 22 characters of the alphabet that is safe in keys, URLs and hash tags (no braces).
func TestDigestShape(t *testing.T) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	seen := map[string]bool{}
	for i := range 5000 {
		digest := driver.Digest(strings.Repeat("x", i))
		if len(digest) != 22 || strings.Trim(digest, alphabet) != "" {
			t.Fatalf("digest %q", digest)
		}
		if seen[digest] {
			t.Fatalf("digest %q twice", digest)
		}
		seen[digest] = true
	}
}
