//go:build !unix

package faulttest

import (
	"errors"
	"net"
)

func setBacklog(*net.TCPListener, int) error { return errors.ErrUnsupported }
