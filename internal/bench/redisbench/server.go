package redisbench

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/headgate-go/headgate/conformance/redistest"
)

// meter reads what a server spends.
type meter struct{ server *redistest.Server }

// spent is what a server has spent since its start, or since [meter.reset].
type spent struct {
	cpu       float64 // microseconds of the process, user and system
	calls     float64 // of scripts
	execution float64 // microseconds in scripts
}

// reset empties the server, so that every benchmark finds it alike, and loads scripts.
func (m meter) reset(scripts ...string) error {
	commands := [][]string{{"FLUSHALL", "SYNC"}, {"CONFIG", "RESETSTAT"}}
	for _, text := range scripts {
		commands = append(commands, []string{"SCRIPT", "LOAD", text})
	}
	for _, c := range commands {
		if _, err := m.server.Do(c...); err != nil {
			return fmt.Errorf("redisbench: %s: %w", c[0], err)
		}
	}
	return nil
}

// read asks once, so that all figures are of one moment.
func (m meter) read() (spent, error) {
	reply, err := m.server.Do("INFO", "cpu", "commandstats")
	if err != nil {
		return spent{}, fmt.Errorf("redisbench: INFO: %w", err)
	}
	var s spent
	info, _ := reply.(string)
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "used_cpu_sys", "used_cpu_user":
			s.cpu += 1e6 * number(value)
		case "cmdstat_evalsha", "cmdstat_eval":
			for field := range strings.SplitSeq(value, ",") {
				switch key, v, _ := strings.Cut(field, "="); key {
				case "calls":
					s.calls += number(v)
				case "usec":
					s.execution += number(v)
				}
			}
		}
	}
	if s.cpu == 0 {
		return spent{}, fmt.Errorf("redisbench: INFO says nothing of the processor: %q", info)
	}
	return s, nil
}

func (s spent) minus(before spent) spent {
	return spent{s.cpu - before.cpu, s.calls - before.calls, s.execution - before.execution}
}

func (s spent) plus(more spent) spent {
	return spent{s.cpu + more.cpu, s.calls + more.calls, s.execution + more.execution}
}

// number reads what INFO writes; 0 where that is no number.
func number(s string) float64 {
	x, _ := strconv.ParseFloat(s, 64)
	return x
}

// version returns the server's version.
func (m meter) version() string {
	reply, _ := m.server.Do("INFO", "server")
	info, _ := reply.(string)
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "redis_version:"); ok {
			return v
		}
	}
	return "unknown"
}
