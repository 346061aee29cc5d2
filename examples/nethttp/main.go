// Net/http behind a gate, in one line: 100 requests a second for each client address, bursts to 500.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"

	"github.com/headgate-go/headgate/adapters/httpgate"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
)

func main() {
	listen := flag.String("listen", ":8080", "address to listen on")
	flag.Parse()

	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	handler := httpgate.Middleware(gate.PerClient(limit.PerSecond(100)))(mux)

	ln, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("listening on %s", ln.Addr())
	log.Fatal(http.Serve(ln, handler))
}
