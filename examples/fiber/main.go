// Fiber behind a gate, in one line: 100 requests a second for each client address, bursts to 500.
package main

import (
	"flag"
	"log"
	"net"

	"github.com/gofiber/fiber/v2"

	"github.com/headgate-go/headgate/adapters/fibergate"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

func main() {
	listen := flag.String("listen", ":8080", "address to listen on")
	flag.Parse()

	app := fiber.New()
	app.Use(fibergate.Middleware(gate.PerClient(limit.PerSecond(100))))
	app.Get("/", func(c *fiber.Ctx) error { return c.SendString("hello\n") })

	ln, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("listening on %s", ln.Addr())
	log.Fatal(app.Listener(ln))
}
