package adaptertest_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate-go/headgate/conformance/adaptertest"
	"github.com/headgate-go/headgate/core/gate"
)

// A frame is a small web framework with what the real ones have that makes adapters go wrong: handlers return errors,
// which a central handler writes when the whole chain is over, and values are kept with the request. In a lazy one streams
// and hijacked connections begin when the chain is over, and what is kept in closers is closed when they end.
type frame struct {
	lazy   bool
	app    []handlerFunc
	routes []frameRoute
	fail   func(c *frameContext, status int, err error)
}

type handlerFunc func(*frameContext) error

type frameRoute struct {
	method  string
	pattern string
	chain   []handlerFunc
}

// frameContext is one request.
type frameContext struct {
	w      *tap
	r      *http.Request
	values map[string]any
	route  string
	chain  []handlerFunc
	at     int
	fail   func(c *frameContext, status int, err error)
	// of a lazy frame:
	late    func()
	socket  bool // late takes the connection over
	closers []io.Closer
}

// frameError is an error with a status. Only errors.As finds it, so that it can be wrapped.
type frameError struct{ status int }

func (e *frameError) Error() string { return http.StatusText(e.status) }

func statusOf(err error) int {
	if e := (*frameError)(nil); errors.As(err, &e) {
		return e.status
	}
	return 500
}

func (f *frame) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &frameContext{w: &tap{ResponseWriter: w}, r: r, values: map[string]any{}, at: -1, fail: f.fail}
	defer func() {
		for _, closer := range c.closers {
			_ = closer.Close()
		}
	}()
	defer func() { // the framework's own recovery, outermost
		if v := recover(); v != nil {
			if v == http.ErrAbortHandler {
				panic(v)
			}
			err, _ := v.(error)
			c.fail(c, 500, err)
		}
	}()
	c.chain = append(append(c.chain, f.app...), f.find(c)...)
	if err := c.next(); err != nil {
		c.fail(c, statusOf(err), err)
	} else if c.late != nil {
		c.late()
	}
}

// find returns the chain of the matching route.
func (f *frame) find(c *frameContext) []handlerFunc {
	status := 404
	for _, r := range f.routes {
		if !matches(r.pattern, c.r.URL.Path) {
			continue
		}
		if r.method == c.r.Method {
			c.route = r.pattern
			return r.chain
		}
		status = 405
	}
	return []handlerFunc{func(*frameContext) error { return &frameError{status} }}
}

func matches(pattern, path string) bool {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	for i, w := range want {
		switch {
		case w == "*":
			return true
		case i >= len(got) || w != got[i] && !strings.HasPrefix(w, ":"):
			return false
		}
	}
	return len(want) == len(got)
}

// next runs what comes after the handler that calls it.
func (c *frameContext) next() error {
	c.at++
	defer func() { c.at-- }()
	return c.chain[c.at](c)
}

// tap notes the status.
type tap struct {
	http.ResponseWriter
	status int
}

func (t *tap) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (t *tap) WriteHeader(status int) {
	t.status = status
	t.ResponseWriter.WriteHeader(status)
}

func (t *tap) Write(b []byte) (int, error) {
	if t.status == 0 {
		t.status = 200
	}
	return t.ResponseWriter.Write(b)
}

func (t *tap) FlushError() error {
	if t.status == 0 {
		t.status = 200
	}
	return http.NewResponseController(t.ResponseWriter).Flush()
}

// site builds a site of the frame, with an adapter that has the fault f.
func site(f fault) adaptertest.NewSite {
	return func(tb testing.TB, s adaptertest.Site) string {
		app := &frame{lazy: f.lazy(), fail: func(c *frameContext, status int, err error) { _ = s.Failed(adaptertest.HTTP(c.w), status, err) }}
		mount := middleware(f)
		app.app = append(app.app, keep(s, adaptertest.TenantHeader, adaptertest.TenantValue))
		app.app = append(app.app, adaptertest.Mount(s.App, mount)...)
		app.app = append(app.app, keep(s, adaptertest.UserHeader, adaptertest.UserValue))
		for _, r := range s.Routes {
			var chain []handlerFunc
			if _, in := r.InGroup(); in {
				chain = adaptertest.Mount(s.Group, mount)
			}
			chain = append(append(chain, adaptertest.Mount(s.Route, mount)...), handle(s, r.Do, app.lazy))
			app.routes = append(app.routes, frameRoute{r.Method, r.Pattern, chain})
		}
		return s.Serve(tb, app)
	}
}

func keep(s adaptertest.Site, field, name string) handlerFunc {
	return func(c *frameContext) error {
		value := c.r.Header.Get(field)
		if c.values[name] = value; !s.Known(name, value) {
			return &frameError{401}
		}
		return c.next()
	}
}

func handle(s adaptertest.Site, do adaptertest.Behaviour, lazy bool) handlerFunc {
	return func(c *frameContext) error {
		n := adaptertest.Native{Response: adaptertest.HTTP(c.w), Writer: c.w, Request: c.r,
			Admission: admission(c), Context: c.r.Context(), Error: &frameError{503},
			WrappedError: errors.Join(adaptertest.ErrHandler, &frameError{503})}
		if lazy {
			n.Others = c.lateBehaviours(s)
		}
		return s.Handle(do, n)
	}
}

// lateBehaviours are those that a lazy frame has its own way of.
func (c *frameContext) lateBehaviours(s adaptertest.Site) map[adaptertest.Behaviour]func() error {
	later := func(f func()) func() error {
		return func() error {
			c.late = f
			return nil
		}
	}
	stream := func(write func(w io.Writer, flush func() error)) func() error {
		return later(func() {
			c.w.Header().Set("Content-Type", adaptertest.StreamType)
			write(c.w, c.w.FlushError)
		})
	}
	return map[adaptertest.Behaviour]func() error{
		adaptertest.Stream:  stream(s.Stream),
		adaptertest.Endless: stream(s.Endless),
		adaptertest.Hijack: func() error {
			c.socket = true
			return later(func() {
				if conn, _, err := http.NewResponseController(c.w).Hijack(); err == nil {
					adaptertest.SwitchAndEcho(conn)
				}
			})()
		},
	}
}

func admission(c *frameContext) *gate.Admission { return gate.FromContext(c.r.Context()) }
