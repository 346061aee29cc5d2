package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
)

// What -print shows: each decision on the span of its request, and in the metrics.
func TestPrint(t *testing.T) {
	var out bytes.Buffer
	if err := demo(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`span POST /v1/routes, \S+, status Unset: headgate.outcome=allowed headgate.store.duration=\S+ http.response.status_code=201 http.route=/v1/routes`,
		`span headgate.take, \S+, status Unset: headgate.gate=routesapi-tenant headgate.outcome=allowed`,
		`status Unset: headgate.outcome=denied headgate.policy=tenant headgate.retry_after=3 .*status_code=429`,
		`status Unset: headgate.outcome=would_deny .*status_code=201`,
		`event headgate.decision: .*headgate.mode=enforce headgate.outcome=denied headgate.policy=tenant headgate.reason=limit headgate.retry_after=\S+ headgate.tenant=bumper`,
		`event headgate.decision: .*headgate.mode=shadow headgate.outcome=would_deny headgate.policy=tenant-next .*headgate.tenant=bumper`,
		`event headgate.decision: error.type=timeout .*headgate.outcome=fail_open`,
		`span headgate.take, \S+, status Error: error.type=timeout`,
		`metric headgate.decisions\{.*headgate.outcome=denied headgate.policy=tenant headgate.reason=limit http.route=/v1/routes\} 1`,
		`metric headgate.decisions\{.*headgate.mode=shadow headgate.outcome=would_deny headgate.policy=tenant-next .*\} 2`,
		`metric headgate.decisions\{error.type=timeout .*headgate.outcome=fail_open .*\} 2`,
		`metric headgate.tenant.refusals\{headgate.mode=enforce headgate.tenant=bumper\} 2`,
		`metric headgate.tenant.refusals\{headgate.mode=shadow headgate.tenant=bumper\} 2`,
		`metric headgate.lease.duration\{headgate.end=returned headgate.policy=solves\} 3 times`,
		`metric headgate.leases.active\{headgate.policy=solves\} 0`,
	} {
		if !regexp.MustCompile(want).Match(out.Bytes()) {
			t.Errorf("nothing is like %s", want)
		}
	}
	if strings.Contains(out.String(), "key-") || strings.Contains(out.String(), "127.0.0.1") {
		t.Error("a key or an address is shown")
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// Over OTLP a collector gets spans and metrics, all of them by the time that the program has ended.
func TestOTLP(t *testing.T) {
	var mu sync.Mutex
	got := map[string]string{}
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		got[r.URL.Path] += string(body)
	}))
	defer collector.Close()
	t.Setenv(endpoint, collector.URL)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	s, err := overOTLP(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, ln, nil, s) }()
	if err := planRoute(ctx, "http://"+ln.Addr().String(), "key-bumper", 20); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for path, words := range map[string][]string{ // text stands in protobuf as it is
		"/v1/traces":  {"routesapi", "headgate.take", "headgate.decision", "would_deny", "tenant-next", "bumper"},
		"/v1/metrics": {"routesapi", "headgate.decisions", "headgate.cost", "headgate.decision.duration", "headgate.tenant.refusals", "would_deny"},
	} {
		for _, word := range words {
			if !strings.Contains(got[path], word) {
				t.Errorf("%s got %d bytes without %q", path, len(got[path]), word)
			}
		}
	}
}

// The files of the compose file are YAML, and every file that it hands to a container is there.
func TestCompose(t *testing.T) {
	read := func(file string, into any) {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, into); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	var compose struct {
		Services map[string]struct {
			Image          string
			Volumes, Ports []string
		}
	}
	read("compose.yaml", &compose)
	for _, name := range []string{"collector", "prometheus", "grafana", "jaeger", "redis"} {
		service, ok := compose.Services[name]
		if !ok {
			t.Errorf("there is no %s", name)
		}
		if tag := service.Image[strings.LastIndex(service.Image, ":")+1:]; tag == "" || tag == "latest" {
			t.Errorf("%s: image %s", name, service.Image)
		}
		for _, volume := range service.Volumes {
			file, _, _ := strings.Cut(volume, ":")
			info, err := os.Stat(filepath.FromSlash(file))
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if strings.HasSuffix(file, ".yaml") && !info.IsDir() {
				read(file, new(any))
			}
		}
		for _, port := range service.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s: port %s is open to everybody", name, port)
			}
		}
	}
}
