// Gin behind a gate, in one line: 100 requests a second for each client address, bursts to 500.
package main

import (
	"flag"
	"log"
	"net"

	"github.com/gin-gonic/gin"

	"github.com/headgate-go/headgate/adapters/gingate"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

func main() {
	listen := flag.String("listen", ":8080", "address to listen on")
	flag.Parse()

	r := gin.Default()
	r.Use(gingate.Middleware(gate.PerClient(limit.PerSecond(100))))
	r.GET("/", func(c *gin.Context) { c.String(200, "hello\n") })

	ln, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("listening on %s", ln.Addr())
	log.Fatal(r.RunListener(ln))
}
