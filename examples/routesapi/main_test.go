package main

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate-go/headgate/examples/routesapi/limits"
	"github.com/headgate-go/headgate/examples/routesapi/mount"
)

func TestRunServesUntilItIsTold(t *testing.T) {
	for _, framework := range mount.Frameworks() {
		t.Run(framework, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			ln := listen(t)
			ended := make(chan error, 1)
			go func() { ended <- run(ctx, ln, framework, limits.Config{}) }()

			client := &http.Client{Transport: &http.Transport{}}
			resp, err := client.Get("http://" + ln.Addr().String() + "/healthz")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Errorf("status %d, want 200", resp.StatusCode)
			}
			client.CloseIdleConnections()

			cancel()
			if err := <-ended; err != nil {
				t.Errorf("it ended with an error: %v", err)
			}
			if conn, err := net.Dial("tcp", ln.Addr().String()); err == nil {
				conn.Close()
				t.Error("it still listens")
			}
		})
	}
}

func TestRunRefusesAnUnknownFramework(t *testing.T) {
	err := run(t.Context(), listen(t), "rails", limits.Config{})
	if err == nil || !strings.Contains(err.Error(), `"rails" is none of gin, echo, fiber, nethttp`) {
		t.Errorf("error %v", err)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}
