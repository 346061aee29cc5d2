// Server-sent events and a WebSocket on Fiber, two at a time for each client address. Both go on when their handler has
// returned, and so does the slot.
package main

import (
	"bufio"
	"flag"
	"log"
	"net"
	"time"

	"github.com/gofiber/contrib/websocket"
	"github.com/gofiber/fiber/v2"

	"github.com/headgate-go/headgate/adapters/fibergate"
	"github.com/headgate-go/headgate/examples/streams"
)

func main() {
	listen := flag.String("listen", ":8080", "address to listen on")
	every := flag.Duration("every", time.Second, "time between two events")
	flag.Parse()

	app := fiber.New()
	limited := app.Group("/", fibergate.Middleware(streams.Gate()))
	limited.Get("/events", events(*every))
	limited.Get("/socket", websocket.New(socket))

	ln, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("listening on %s", ln.Addr())
	log.Fatal(app.Listener(ln))
}

// events sends an event each interval. That the client is gone shows when one cannot be written, so there must be some.
func events(interval time.Duration) fiber.Handler {
	return func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderContentType, "text/event-stream")
		c.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
			for streams.Event(w) == nil && w.Flush() == nil {
				<-time.After(interval)
			}
		})
		return nil
	}
}

// socket sends back what it is sent, until the client closes the connection.
func socket(conn *websocket.Conn) {
	for {
		kind, message, err := conn.ReadMessage()
		if err == nil {
			err = conn.WriteMessage(kind, message)
		}
		if err != nil {
			return
		}
	}
}
