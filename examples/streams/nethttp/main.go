// Server-sent events and a WebSocket on net/http, two at a time for each client address.
package main

import (
	"flag"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/headgate-go/headgate/adapters/httpgate"
	"github.com/headgate-go/headgate/examples/streams"
)

func main() {
	listen := flag.String("listen", ":8080", "address to listen on")
	every := flag.Duration("every", time.Second, "time between two events")
	flag.Parse()

	limited := httpgate.Middleware(streams.Gate())
	mux := http.NewServeMux()
	mux.Handle("GET /events", limited(streams.Events(*every)))
	mux.Handle("GET /socket", limited(http.HandlerFunc(streams.Socket)))

	ln, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("listening on %s", ln.Addr())
	log.Fatal(http.Serve(ln, mux))
}
