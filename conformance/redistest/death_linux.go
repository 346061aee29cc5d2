package redistest

import (
	"os/exec"
	"syscall"
)

// dieWithParent ends the server when the test process ends without cleaning up: killed, or panicked at its time limit.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
