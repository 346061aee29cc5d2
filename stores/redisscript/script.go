package redisscript

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
)

//go:embed script.lua
var script string

var scriptSHA = sha1Hex(script)

// Script returns the text of the script, for those who want to read it or load it beforehand.
func Script() string { return script }

// SHA returns the name under which a server caches [Script]: its SHA-1 in lower-case hexadecimal.
func SHA() string { return scriptSHA }

func sha1Hex(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}
