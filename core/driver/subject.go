package driver

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
)

// AppendSubject appends one part of a canonical key to dst: its length, then its bytes. A subject is the gate's
// name, the source of the key (a header's name, the client's address, ...) and the key's parts, each appended so:
// whatever bytes a client puts into a key, no two different lists of parts give the same subject.
func AppendSubject(dst []byte, part string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(part)))
	return append(dst, part...)
}

// Digest names a subject without telling it: the first 128 bits of its SHA-256 in unpadded base64url, 22 characters.
// Stores, logs and telemetry show this and never the subject.
func Digest(subject string) string {
	sum := sha256.Sum256([]byte(subject))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}
