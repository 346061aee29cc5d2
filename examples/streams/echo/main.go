// Server-sent events and a WebSocket on Echo, two at a time for each client address.
package main

import (
	"flag"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/headgate-go/headgate/adapters/echogate"
	"github.com/headgate-go/headgate/examples/streams"
)

func main() {
	listen := flag.String("listen", ":8080", "address to listen on")
	every := flag.Duration("every", time.Second, "time between two events")
	flag.Parse()

	e := echo.New()
	limited := e.Group("", echogate.Middleware(streams.Gate()))
	limited.GET("/events", echo.WrapHandler(streams.Events(*every)))
	limited.GET("/socket", echo.WrapHandler(http.HandlerFunc(streams.Socket)))

	ln, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("listening on %s", ln.Addr())
	e.Listener = ln
	log.Fatal(e.Start(""))
}
