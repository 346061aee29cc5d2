//go:build !linux

package redistest

import "os/exec"

// dieWithParent does nothing: only Linux can tie a child's life to its parent's. Cleanup still ends it.
func dieWithParent(*exec.Cmd) {}
