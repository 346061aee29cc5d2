package redisscript

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/headgate-go/headgate/core/driver"
)

// Every answer with and without the "ERR " that Kvrocks puts in front, and with the "-" of the wire.
func TestClassifyAnswers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]driver.Class{
		"NOSCRIPT No matching script. Please use EVAL.":                              driver.ClassNoScript,
		"MOVED 3999 127.0.0.1:6381":                                                  driver.ClassClusterDown,
		"ASK 3999 127.0.0.1:6381":                                                    driver.ClassClusterDown,
		"TRYAGAIN Multiple keys request during rehashing of slot":                    driver.ClassClusterDown,
		"CLUSTERDOWN Hash slot not served":                                           driver.ClassClusterDown,
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is no":     driver.ClassClusterDown,
		"READONLY You can't write against a read only replica. script: 5f, on @user": driver.ClassReadOnly,
		"LOADING Redis is loading the dataset in memory":                             driver.ClassLoading,
		"MISCONF Redis is configured to save RDB snapshots":                          driver.ClassOOM,
		"NOREPLICAS Not enough good replicas to write.":                              driver.ClassOOM,
		"OOM command not allowed when used memory > 'maxmemory'.":                    driver.ClassOOM,
		"BUSY Redis is busy running a script.":                                       driver.ClassBusy,
		"UNKILLABLE Sorry the script already executed write commands":                driver.ClassBusy,
		"NOAUTH Authentication required.":                                            driver.ClassAuth,
		"WRONGPASS invalid username-password pair or user is disabled.":              driver.ClassAuth,
		"NOPERM this user has no permissions to run the 'evalsha' command":           driver.ClassAuth,
		"WRONGTYPE Operation against a key holding the wrong kind of value":          driver.ClassOther,
		"CROSSSLOT Keys in request don't hash to the same slot":                      driver.ClassOther,
		"unknown command 'EVALSHA', with args beginning with: ":                      driver.ClassOther,
		"something nobody thought of":                                                driver.ClassOther,
		"MOVEDx":                                                                     driver.ClassOther,
		"":                                                                           driver.ClassOther,
		"The user executing the script can't run this command or subcommand":         driver.ClassAuth,
		"Error running script (call to f_5f): @user_script:1: -READONLY You can't":   driver.ClassReadOnly,
		"Error running script (call to f_5f): @user_script:1: OOM command not":       driver.ClassOOM,
		"redis: nil":                     driver.ClassProtocol,
		"redis nil message":              driver.ClassProtocol,
		"redis: connection pool timeout": driver.ClassTimeout,
	} {
		for _, prefix := range []string{"", "ERR ", "-", "-ERR "} {
			equal(t, prefix+text, Classify(errors.New(prefix+text)).Class, want)
		}
	}
}

func TestClassifyErrors(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for _, c := range []struct {
		err  error
		want driver.Class
	}{
		{context.DeadlineExceeded, driver.ClassTimeout},
		{os.ErrDeadlineExceeded, driver.ClassTimeout},
		{&net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}, driver.ClassTimeout},
		{&net.DNSError{Err: "i/o timeout", IsTimeout: true}, driver.ClassTimeout},
		{fmt.Errorf("MOVED into another error: %w", context.DeadlineExceeded), driver.ClassTimeout},
		{refused, driver.ClassOther},
		{io.EOF, driver.ClassOther},
		{io.ErrUnexpectedEOF, driver.ClassOther},
		{net.ErrClosed, driver.ClassOther},
		{context.Canceled, driver.ClassOther},
		{fmt.Errorf("wrapped: %w", &driver.Error{Class: driver.ClassProtocol, Err: io.EOF}), driver.ClassProtocol},
	} {
		got := Classify(c.err)
		equal(t, c.err.Error(), got.Class, c.want)
		if !errors.Is(got, errors.Unwrap(got)) || !strings.Contains(got.Error(), errors.Unwrap(got).Error()) {
			t.Errorf("%v hides its cause", got)
		}
	}
	if Classify(nil) != nil {
		t.Error("nil is a failure")
	}
	var typed driver.Error
	if hitsOthers(&typed) || hitsOthers(nil) || hitsOthers(io.EOF) {
		t.Error("not an error of one key")
	}
}

// BR-060: whatever a server lacks, the error says what to do.
func TestBR060_ErrorsNameTheCause(t *testing.T) {
	t.Parallel()
	for text, hint := range map[string]string{
		"ERR unknown command 'EVALSHA', with args":                                                                               "EVALSHA and EVAL are needed",
		"NOPERM this user has no permissions to run the 'evalsha' command":                                                       "+evalsha",
		"ERR The user executing the script can't run this command or subcommand script":                                          "+evalsha",
		"ERR Error running script: Write commands not allowed after non deterministic commands. Call redis.replicate_commands()": "too old",
		"ERR user_script:12: Script attempted to access nonexistent global variable 'struct' script: 5f":                         "no struct library",
	} {
		err := Classify(errors.New(text))
		if !strings.Contains(err.Error(), hint) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v does not say %q", err, hint)
		}
	}
}
