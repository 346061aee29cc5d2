package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// Error is a reply of the server that says what went wrong, without the leading minus sign.
type Error string

func (e Error) Error() string { return string(e) }

// Conn is a connection that speaks RESP2: enough for tests, which must not need a client. It is for one goroutine.
type Conn struct {
	net.Conn
	r *bufio.Reader
	w *bufio.Writer
}

// Dial opens a connection to host:port.
func Dial(addr string) (*Conn, error) {
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: c, r: bufio.NewReader(c), w: bufio.NewWriter(c)}, nil
}

// Do sends one command and returns its reply: string, int64, nil or []any (which holds errors as [Error] values).
// A reply that is an error is returned as an error of type [Error]; any other error means that the connection is of
// no further use. There is no deadline but the one set with SetDeadline.
func (c *Conn) Do(args ...string) (any, error) {
	c.send(args)
	if err := c.w.Flush(); err != nil {
		return nil, err
	}
	reply, err := readReply(c.r)
	if answer, ok := reply.(Error); ok {
		return nil, answer
	}
	return reply, err
}

// Pipe sends several commands at once and returns the replies, those that are errors as [Error] values.
func (c *Conn) Pipe(commands ...[]string) ([]any, error) {
	for _, args := range commands {
		c.send(args)
	}
	if err := c.w.Flush(); err != nil {
		return nil, err
	}
	replies := make([]any, len(commands))
	for i := range replies {
		var err error
		if replies[i], err = readReply(c.r); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// send writes a command into the buffer; its errors come back from Flush.
func (c *Conn) send(args []string) {
	var scratch [24]byte
	number := func(mark byte, n int) {
		_, _ = c.w.Write(append(strconv.AppendInt(append(scratch[:0], mark), int64(n), 10), '\r', '\n'))
	}
	number('*', len(args))
	for _, arg := range args {
		number('$', len(arg))
		_, _ = c.w.WriteString(arg)
		_, _ = c.w.WriteString("\r\n")
	}
}

// readReply reads one RESP2 reply.
func readReply(r *bufio.Reader) (any, error) {
	line, err := readLine(r)
	if err != nil {
		return nil, err
	}
	text := string(line[1:])
	switch line[0] {
	case '+':
		return text, nil
	case '-':
		return Error(text), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("redistest: reply %q: %w", line, err)
	}
	switch {
	case line[0] == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case line[0] == '$':
		body := make([]byte, n+2)
		if _, err := io.ReadFull(r, body); err != nil {
			return nil, err
		}
		return string(body[:n]), nil
	case line[0] == '*':
		list := make([]any, n)
		for i := range list {
			if list[i], err = readReply(r); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("redistest: reply %q is not RESP2", line)
}

// readLine reads a line and cuts its end off. The line is never empty.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	line = line[:len(line)-1]
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	if len(line) == 0 {
		return nil, errors.New("redistest: empty line")
	}
	return line, nil
}

// CommandStat is one line of INFO commandstats.
type CommandStat struct {
	Calls int64
	Usec  int64 // the time the server spent executing them, in microseconds
}

// CommandStats returns INFO commandstats by command name in lower case ("evalsha", "config|resetstat"). Reset it with
// Do("CONFIG", "RESETSTAT").
func (s *Server) CommandStats() (map[string]CommandStat, error) {
	info, err := s.text("INFO", "commandstats")
	if err != nil {
		return nil, err
	}
	stats := map[string]CommandStat{}
	for line := range strings.Lines(info) {
		name, fields, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "cmdstat_"), ":")
		if !ok {
			continue
		}
		var stat CommandStat
		for field := range strings.SplitSeq(fields, ",") {
			key, value, _ := strings.Cut(field, "=")
			switch key {
			case "calls":
				stat.Calls, _ = strconv.ParseInt(value, 10, 64)
			case "usec":
				stat.Usec, _ = strconv.ParseInt(value, 10, 64)
			}
		}
		stats[name] = stat
	}
	return stats, nil
}

// Clients returns how many clients are connected, without the connections that belong to the kit and those with which
// replicas, sentinels and nodes that move keys are connected.
func (s *Server) Clients() (int, error) {
	list, err := s.text("CLIENT", "LIST", "TYPE", "normal")
	if err != nil {
		return 0, err
	}
	count := -1 // the one that asks
	for line := range strings.Lines(list) {
		if !strings.Contains(line, " name=sentinel-") && !strings.Contains(line, " cmd=restore-asking ") {
			count++
		}
	}
	return count, nil
}

// infoField returns the value of a line "name:value" of INFO; empty where there is none.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && key == name {
			return value
		}
	}
	return ""
}
