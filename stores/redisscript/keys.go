package redisscript

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash/maphash"
	"strings"

	"github.com/headgate-go/headgate/core/driver"
)

// DefaultPrefix begins every key unless [WithPrefix] says otherwise.
const DefaultPrefix = "hg"

// Every kind of state has a letter and a version at the end of its key: a renamed rule, or a new format, never meets
// state that it cannot read.
const (
	kindBucket = ":b1"
	kindWindow = ":w1" // fixed, sliding and calendar ones: a rule may become another of them under live keys
	kindSlots  = ":c1" // c for concurrency
)

// kindOf returns the end of the keys of a rule, "" if the rule has no state.
func kindOf(rule driver.Rule) string {
	switch {
	case rule.Kind() == driver.KindBucket:
		return kindBucket
	case rule.IsWindow():
		return kindWindow
	case rule.Kind() == driver.KindSlots:
		return kindSlots
	}
	return ""
}

// appendKey appends <prefix>:{<digest>}:<policy>:<kind><version>. All limiters of one subject share the hash tag, and so
// the slot; the digest has a fixed length and no braces, whatever a client puts into a subject.
func appendKey(dst []byte, prefix, policy, subject, kind string) []byte {
	dst = append(dst, prefix...)
	dst = append(dst, ':', '{')
	dst = appendDigest(dst, subject)
	dst = append(dst, '}', ':')
	dst = append(dst, policy...)
	return append(dst, kind...)
}

// appendDigest is driver.Digest without its allocations.
func appendDigest(dst []byte, subject string) []byte {
	start := len(dst)
	dst = append(dst, subject...)
	sum := sha256.Sum256(dst[start:])
	return base64.RawURLEncoding.AppendEncode(dst[:start], sum[:16])
}

func checkPrefix(prefix string) error {
	if strings.ContainsAny(prefix, "{}") {
		return fmt.Errorf("redisscript: prefix %q: braces would change the hash slot of every key", prefix)
	}
	return nil
}

var hashSeed = maphash.MakeSeed()

// Slot returns the cluster hash slot of a key: CRC16 (XMODEM) modulo 16384 of what stands between the first "{" and the
// first "}" after it, or of the whole key if there is nothing between them.
func Slot(key string) int {
	if _, tail, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(tail, "}"); ok && tag != "" {
			key = tag
		}
	}
	return hashSlot(key)
}

// hashSlot returns the slot of what the hash is taken of.
func hashSlot[T string | []byte](tag T) int {
	var crc uint16
	for i := range len(tag) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^tag[i]]
	}
	return int(crc % hashSlots)
}

var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*0x1021
		}
		table[i] = crc
	}
	return table
}()
