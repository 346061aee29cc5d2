package redistest

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
)

// errNoServer tells what to do. Debian's redis-tools holds the server's program under another name, and brings no service.
var errNoServer = errors.New(`no redis-server in PATH; "make test" installs it, or: apt-get install redis-tools ` +
	`(HEADGATE_REDIS_SERVER=/path/to/redis-server names another one)`)

// serverProgram finds the server's program. redis-check-rdb is the same program, which looks at the name it is called by.
func serverProgram() (string, error) {
	if path := os.Getenv("HEADGATE_REDIS_SERVER"); path != "" {
		return path, nil
	}
	for _, name := range []string{"redis-server", "redis-check-rdb"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errNoServer
}

// process is one run of the program.
type process struct {
	cmd  *exec.Cmd
	log  *logBuffer
	done chan struct{}
}

func startProcess(args []string) (*process, error) {
	path, err := serverProgram()
	if err != nil {
		return nil, err
	}
	p := &process{log: &logBuffer{}, done: make(chan struct{})}
	p.cmd = &exec.Cmd{Path: path, Args: append([]string{"redis-server"}, args...), Stdout: p.log, Stderr: p.log}
	dieWithParent(p.cmd)
	started := make(chan error)
	go func() {
		// The kernel sends the parent-death signal when the thread that forked ends, so this one stays.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait()
		}
		close(p.done)
	}()
	return p, <-started
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends the process and waits for it; a paused one too.
func (p *process) kill() {
	if !p.ended() {
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// logBuffer keeps the end of what a process wrote.
type logBuffer struct {
	mu   sync.Mutex
	text []byte
}

const logKept = 32 << 10

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if over := len(l.text) - logKept; over > 0 {
		l.text = append(l.text[:0], l.text[over:]...)
	}
	return len(p), nil
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(string(l.text))
}
