// Echo behind a gate, in one line: 100 requests a second for each client address, bursts to 500.
package main

import (
	"flag"
	"log"
	"net"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/headgate-go/headgate/adapters/echogate"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

func main() {
	listen := flag.String("listen", ":8080", "address to listen on")
	flag.Parse()

	e := echo.New()
	e.Use(echogate.Middleware(gate.PerClient(limit.PerSecond(100))))
	e.GET("/", func(c echo.Context) error { return c.String(http.StatusOK, "hello\n") })

	ln, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("listening on %s", ln.Addr())
	e.Listener = ln
	log.Fatal(e.Start(""))
}
