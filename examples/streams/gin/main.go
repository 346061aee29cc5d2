// Server-sent events and a WebSocket on Gin, two at a time for each client address.
package main

import (
	"flag"
	"log"
	"net"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/headgate-go/headgate/adapters/gingate"
	"github.com/headgate-go/headgate/examples/streams"
)

func main() {
	listen := flag.String("listen", ":8080", "address to listen on")
	every := flag.Duration("every", time.Second, "time between two events")
	flag.Parse()

	r := gin.Default()
	limited := r.Group("/", gingate.Middleware(streams.Gate()))
	limited.GET("/events", gin.WrapF(streams.Events(*every)))
	limited.GET("/socket", gin.WrapF(streams.Socket))

	ln, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("listening on %s", ln.Addr())
	log.Fatal(r.RunListener(ln))
}
