package adaptertest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"time"
)

// request is what the client sends, field lines as they are given.
type request struct {
	method, target string
	fields         [][2]string
	body           []byte
}

// ask makes a request from "GET /path" and fields, name and value by turns.
func ask(operation string, fields ...string) request {
	method, target, _ := strings.Cut(operation, " ")
	r := request{method: method, target: target}
	for i := 0; i+1 < len(fields); i += 2 {
		r.fields = append(r.fields, [2]string{fields[i], fields[i+1]})
	}
	return r
}

func (r request) with(body []byte) request {
	r.body = body
	return r
}

func (r request) String() string { return r.method + " " + r.target }

// response is what came back, field lines as they came.
type response struct {
	status int
	fields [][2]string
	body   []byte
	cut    bool // the connection ended before the body did
}

// values returns the values of a field. Names are compared without case.
func (r *response) values(name string) (list []string) {
	for _, f := range r.fields {
		if strings.EqualFold(f[0], name) {
			list = append(list, f[1])
		}
	}
	return list
}

// client sends requests over one connection as long as the server keeps it. It is plain on purpose: net/http's client
// hides what two servers do differently.
type client struct {
	network, address string
	patience         time.Duration
	conn             net.Conn
	in               *bufio.Reader
	sent             chan error // the request is written
	dials            int
}

// twin is another client of the same server.
func (c *client) twin() *client {
	return &client{network: c.network, address: c.address, patience: c.patience}
}

func (c *client) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// do exchanges one request for its response.
func (c *client) do(r request) (*response, error) {
	res, body, err := c.begin(r)
	if err != nil {
		return nil, err
	}
	res.body, err = io.ReadAll(body)
	res.cut = err != nil
	if res.cut || slices.Contains(res.values("Connection"), "close") {
		c.close() // ends the writing too
	}
	_ = c.written() // a server may answer without having read all of it
	return res, nil
}

// begin sends a request and returns the head of its response, and a reader of the body that must be read to its end.
func (c *client) begin(r request) (*response, io.Reader, error) {
	if err := c.dial(); err != nil {
		return nil, nil, err
	}
	if n := c.in.Buffered(); n > 0 {
		extra, _ := c.in.Peek(n)
		return nil, nil, fmt.Errorf("%d bytes came after the last response: %q", n, extra)
	}
	_ = c.conn.SetDeadline(time.Now().Add(c.patience))
	c.sent = make(chan error, 1)
	go func(conn net.Conn, sent chan<- error) { // a server may answer before it has read all of a body
		_, err := conn.Write(r.bytes())
		sent <- err
	}(c.conn, c.sent)
	res, err := c.readHead()
	if err != nil {
		c.close() // ends the writing too
		return nil, nil, errors.Join(err, c.written())
	}
	return res, c.bodyOf(r.method, res), nil
}

func (c *client) dial() error {
	if c.conn != nil {
		return nil
	}
	conn, err := net.DialTimeout(c.network, c.address, c.patience)
	if err != nil {
		return err
	}
	c.conn, c.in = conn, bufio.NewReader(conn)
	c.dials++
	return nil
}

// post sends a request and reads nothing.
func (c *client) post(r request) error {
	if err := c.dial(); err != nil {
		return err
	}
	_ = c.conn.SetDeadline(time.Now().Add(c.patience))
	_, err := c.conn.Write(r.bytes())
	return err
}

// written waits until the request is on its way, or the connection is closed.
func (c *client) written() error { return <-c.sent }

func (r request) bytes() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: site.test\r\n", r.method, r.target)
	for _, f := range r.fields {
		fmt.Fprintf(&b, "%s: %s\r\n", f[0], f[1])
	}
	if r.body != nil {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(r.body))
	}
	b.WriteString("\r\n")
	b.Write(r.body)
	return []byte(b.String())
}

// readHead reads status line and fields; 100 Continue is passed over.
func (c *client) readHead() (*response, error) {
	for {
		line, err := c.line()
		if err != nil {
			return nil, err
		}
		proto, rest, _ := strings.Cut(line, " ")
		code, _, _ := strings.Cut(rest, " ")
		status, err := strconv.Atoi(code)
		if proto != "HTTP/1.1" || err != nil {
			return nil, fmt.Errorf("no status line: %q", line)
		}
		res := &response{status: status}
		for {
			if line, err = c.line(); err != nil {
				return nil, err
			}
			if line == "" {
				break
			}
			name, value, _ := strings.Cut(line, ":")
			res.fields = append(res.fields, [2]string{name, strings.TrimSpace(value)})
		}
		if status != 100 {
			return res, nil
		}
	}
}

func (c *client) line() (string, error) {
	line, err := c.in.ReadString('\n')
	return strings.TrimRight(line, "\r\n"), err
}

// bodyOf frames the body as RFC 9112, section 6.3, says.
func (c *client) bodyOf(method string, res *response) io.Reader {
	if method == "HEAD" || res.status < 200 || res.status == 204 || res.status == 304 {
		return strings.NewReader("")
	}
	if slices.Contains(res.values("Transfer-Encoding"), "chunked") {
		return &chunked{c: c, r: httputil.NewChunkedReader(c.in)}
	}
	if list := res.values("Content-Length"); len(list) > 0 {
		n, err := strconv.ParseInt(list[0], 10, 64)
		if err != nil {
			return failing{err}
		}
		return &exactly{r: io.LimitReader(c.in, n), left: n}
	}
	return c.in // to the end of the connection
}

// chunked reads the line after the last chunk too, so that the next response begins where it should.
type chunked struct {
	c *client
	r io.Reader
}

func (r *chunked) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if err == io.EOF {
		if line, lineErr := r.c.line(); lineErr != nil || line != "" {
			return n, io.ErrUnexpectedEOF
		}
	}
	return n, err
}

// exactly fails where the connection ends early.
type exactly struct {
	r    io.Reader
	left int64
}

func (r *exactly) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	r.left -= int64(n)
	if err == io.EOF && r.left > 0 {
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
