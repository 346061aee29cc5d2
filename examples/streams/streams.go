// Package streams is what the programs in its folders serve, each with its own framework: server-sent events and a
// WebSocket, of which a client may have two open at a time. A stream is one request for as long as it goes on.
package streams

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/headgate-go/headgate/core/gate"
)

// Gate lets each client address hold two streams or sockets.
func Gate() *gate.Gate {
	return gate.Must(gate.New(gate.Config{Limiters: []gate.Limiter{gate.ConcurrentRequests{Name: "streams", Max: 2}}}))
}

// Event writes the time to w, as a server-sent event.
func Event(w io.Writer) error {
	_, err := fmt.Fprintf(w, "data: %s\n\n", time.Now().Format(time.TimeOnly))
	return err
}

// Events sends an event each interval until the client is gone. The slot is held until the handler returns.
func Events(interval time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for Event(w) == nil && http.NewResponseController(w).Flush() == nil {
			select {
			case <-r.Context().Done():
				return
			case <-ticker.C:
			}
		}
	}
}

// Socket sends back what it is sent, until the client closes the connection. The slot is held until the handler returns:
// a handler that leaves its connection to another goroutine gives it back early.
func Socket(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has answered
	}
	defer func() { _ = conn.CloseNow() }()
	for {
		kind, message, err := conn.Read(r.Context())
		if err == nil {
			err = conn.Write(r.Context(), kind, message)
		}
		if err != nil {
			return
		}
	}
}
