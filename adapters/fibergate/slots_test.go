package fibergate_test

import (
	"bufio"
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/gofiber/fiber/v2/middleware/recover"

	"github.com/headgate-go/headgate/adapters/fibergate"
	"github.com/headgate-go/headgate/core/gate"
)

// slotted is an application with one slot, whose stream ends when end is closed.
func slotted(end <-chan struct{}) (*gate.Gate, *fiber.App) {
	g, app := fixed(nil, gate.ConcurrentRequests{Name: "slots", Max: 1, Key: gate.Const("k")}), fiber.New()
	app.Use(recover.New(), fibergate.Middleware(g))
	stream := func(c *fiber.Ctx) {
		c.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
			_, _ = w.WriteString("one,")
			_ = w.Flush()
			<-end
			_, _ = w.WriteString("two.")
		})
	}
	app.Get("/stream", func(c *fiber.Ctx) error { stream(c); return nil })
	app.Get("/panic", func(c *fiber.Ctx) error { stream(c); panic("on purpose") })
	app.Get("/error", func(c *fiber.Ctx) error { stream(c); return fiber.ErrTeapot })
	return g, app
}

func free(t *testing.T, g *gate.Gate) bool {
	t.Helper()
	d, err := g.Usage(context.Background(), "slots", "k")
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining == 1
}

// becomesFree waits for what happens a little after the response.
func becomesFree(t *testing.T, g *gate.Gate, when string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !free(t, g); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the slot is still held %s", when)
		}
	}
}

// Through net/http nobody tells when a stream is over, and the adaptor reads it whole after the handler has returned.
func TestBR125_SlotsThroughNetHTTP(t *testing.T) {
	end := make(chan struct{})
	close(end)
	g, app := slotted(end)
	for range 3 {
		w := httptest.NewRecorder()
		adaptor.FiberApp(app)(w, httptest.NewRequest("GET", "/stream", nil))
		if w.Code != 200 || w.Body.String() != "one,two." || !free(t, g) {
			t.Fatalf("%d %q, free: %t", w.Code, w.Body, free(t, g))
		}
	}
}

// A panic is answered by the recovery, an error by the error handler: the stream that the handler began is never sent.
func TestBR120_SlotsOfReplacedStreams(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	g, app := slotted(end)
	for path, want := range map[string]int{"/panic": 500, "/error": 418} {
		if _, got := ask(t, app, 1, "GET "+path, ""); got.status != want {
			t.Errorf("%s: status %d, want %d", path, got.status, want)
		}
		becomesFree(t, g, "after "+path)
	}
}
