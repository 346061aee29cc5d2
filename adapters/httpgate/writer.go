package httpgate

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// writer notes the status of a response. What the writer underneath can do (flush, hijack, copy from a file, push, set
// deadlines) it can do too, through Unwrap and http.ResponseController.
type writer struct {
	http.ResponseWriter
	status   int // 0 until the response is committed
	hijacked bool
}

// Unwrap returns the writer underneath, for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) {
	if w.status == 0 && status >= 200 { // 1xx is on the way, not the response
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(b []byte) (int, error) {
	w.commit()
	return w.ResponseWriter.Write(b)
}

// ReadFrom keeps sendfile.
func (w *writer) ReadFrom(src io.Reader) (int64, error) {
	w.commit()
	return io.Copy(w.ResponseWriter, src)
}

func (w *writer) Flush() {
	w.commit()
	_ = http.NewResponseController(w.ResponseWriter).Flush() // Flush has no error to return
}

func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.hijacked = w.hijacked || err == nil
	return conn, rw, err
}

func (w *writer) Push(target string, opts *http.PushOptions) error {
	if p, ok := w.ResponseWriter.(http.Pusher); ok {
		return p.Push(target, opts)
	}
	return http.ErrNotSupported
}

func (w *writer) commit() {
	if w.status == 0 {
		w.status = http.StatusOK
	}
}
