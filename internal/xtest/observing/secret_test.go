package observing_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/headgate-go/headgate/adapters/httpgate"
	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
	"github.com/headgate-go/headgate/core/gate"
	"github.com/headgate-go/headgate/core/limit"
	"github.com/headgate-go/headgate/stores/goredisstore"
	"github.com/headgate-go/headgate/stores/redisscript"
	"github.com/headgate-go/headgate/stores/rueidisstore"
	"github.com/headgate-go/headgate/telemetry"
)

const secret = "s3cr3t"

// patience is what a busy machine is given.
const patience = 20 * time.Second

// capture is everything that was written somewhere.
type capture struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (c *capture) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(b)
}

func (c *capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// clientLog is where go-redis says what it could not do.
type clientLog struct{ to io.Writer }

func (l clientLog) Printf(_ context.Context, format string, args ...any) {
	_, _ = fmt.Fprintf(l.to, format+"\n", args...)
}

// BR-097: a bearer token that is the key of a limiter is found nowhere: not in the store, not on the way to it, not in logs,
// spans, metrics or errors, whether the request is allowed, denied, watched, let pass without a store, or its handler panics.
func TestBR097_SecretsAreFoundNowhere(t *testing.T) {
	for _, client := range []string{"goredis", "rueidis"} {
		t.Run(client, func(t *testing.T) { findSecrets(t, client) })
	}
}

func findSecrets(t *testing.T, client string) {
	server := redistest.Start(t, redistest.Single)
	var commands, logs, spans, answers capture
	watched := monitor(t, server.Addr(), &commands)
	redis.SetLogger(clientLog{&logs})
	slog.SetDefault(slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(func() { slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil))) })

	exporter, err := stdouttrace.New(stdouttrace.WithWriter(&spans))
	if err != nil {
		t.Fatal(err)
	}
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	registry := prometheus.NewRegistry()
	reader, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		t.Fatal(err)
	}
	key := gate.Header("Authorization")
	config := gate.Config{
		Name: "api", Store: open(t, client, server.Addr()), StoreTimeout: patience, Instances: 2,
		Observer: telemetry.NewObserver(telemetry.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))),
			telemetry.WithTracerProvider(tracers), telemetry.WithTenants(5), telemetry.WithSpans()),
		Limiters: []gate.Limiter{
			gate.RequestRate{Name: "rate", Key: key, Limit: limit.PerDay(2).WithBurst(2), SkipFailed: true},
			gate.RequestRate{Name: "next", Mode: gate.Shadow, Key: key, Limit: limit.PerDay(1).WithBurst(1)},
			gate.RequestRate{Name: "daily", Key: gate.Join(key, gate.ClientIP()), Limit: limit.Daily(100), OnStoreError: gate.FailLocal},
			gate.RequestRate{Name: "strict", Key: key, Limit: limit.PerDay(100), OnStoreError: gate.FailClosed, Match: gate.PathPrefix("/strict")},
			gate.ConcurrentRequests{Name: "slots", Key: key, Max: 10, LeaseTime: time.Second},
		},
	}
	g := gate.Must(gate.New(config))
	config.StoreTimeout = 0
	unlucky := gate.Must(gate.New(config)) // for the outage, which it need not wait for
	t.Cleanup(func() { _ = errors.Join(g.Close(context.Background()), unlucky.Close(context.Background())) })
	service := func(g *gate.Gate) *httptest.Server {
		h := httpgate.Middleware(g)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			a := httpgate.Admission(r)
			for _, d := range a.Decisions() {
				_, _ = fmt.Fprintf(&answers, "%v %+v %#v\n", d, d, d)
			}
			_, _ = fmt.Fprintf(&answers, "%v %+v %#v\n", a, a, a)
			a.Settle("rate", 1)
			switch r.URL.Path {
			case "/panic":
				panic("the handler's own words")
			case "/fail":
				panic(http.ErrAbortHandler)
			}
		}))
		s := httptest.NewUnstartedServer(otelhttp.NewHandler(h, "GET", otelhttp.WithTracerProvider(tracers), otelhttp.WithMeterProvider(noop.NewMeterProvider())))
		s.Config.ErrorLog = log.New(&logs, "", 0)
		s.Start()
		t.Cleanup(s.Close)
		return s
	}
	good, bad := service(g), service(unlucky)
	ask := func(s *httptest.Server, path string, who int) (status int) {
		r, err := http.NewRequestWithContext(context.Background(), "GET", s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", fmt.Sprintf("Bearer %s-%d", secret, who))
		resp, err := s.Client().Do(r)
		if err != nil { // the handler panicked
			return 0
		}
		defer resp.Body.Close()
		_ = resp.Header.Write(&answers)
		if _, err := io.Copy(&answers, resp.Body); err != nil {
			t.Error(err)
		}
		return resp.StatusCode
	}
	want := func(s *httptest.Server, path string, who, status int) {
		t.Helper()
		if got := ask(s, path, who); got != status {
			t.Errorf("%s: status %d, want %d", path, got, status)
		}
	}
	want(good, "/x", 1, 200)
	want(good, "/x", 1, 200) // one of them would be refused by "next"
	want(good, "/x", 1, 429)
	want(good, "/x", 1, 429) // from memory
	want(good, "/panic", 2, 0)
	want(good, "/fail", 2, 0)
	want(good, "/strict", 3, 200)
	if a := g.Take(context.Background(), "rate", 1, "Bearer "+secret+"-4"); !a.Allowed() {
		t.Errorf("%v", a.Refusal())
	}
	_, _ = fmt.Fprintf(&answers, "%v %+v\n", g.Take(context.Background(), "nobody", 1, secret).Refusal(), g.Policies())
	if a := g.Take(context.Background(), "rate", 3, "Bearer "+secret+"-4"); a.Allowed() {
		t.Error("allowed")
	} else {
		_, _ = fmt.Fprintf(&answers, "%v %+v %#v\n", a.Refusal(), a.Refusal(), *a.Refusal())
	}
	stored := everything(t, server)
	name := g.StoreKey("rate", "Bearer "+secret+"-1")
	server.Stop()
	<-watched
	for range 15 { // until the breaker opens, and beyond
		want(bad, "/x", 5, 200)
	}
	want(bad, "/strict", 5, 503)
	want(bad, "/panic", 6, 0)
	if err := unlucky.Close(context.Background()); err != nil {
		t.Error(err)
	}
	want(bad, "/x", 7, 200)

	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for where, place := range map[string]struct{ text, shows string }{
		"the store":    {stored, name},
		"MONITOR":      {commands.String(), name},
		"the logs":     {logs.String(), "the store failed"},
		"the spans":    {spans.String(), "headgate.decision"},
		"the metrics":  {w.Body.String(), "fail_open"},
		"the answers":  {answers.String(), "rate_limit_error"},
		"the settings": {fmt.Sprint(g.Policies(), name), "header:Authorization"},
	} {
		if !strings.Contains(place.text, place.shows) {
			t.Errorf("%s do not show %q, so nothing was looked at:\n%.2000s", where, place.shows, place.text)
		}
		if at := strings.Index(place.text, secret); at >= 0 {
			t.Errorf("%s say %q: ...%s...", where, secret, place.text[max(0, at-100):min(len(place.text), at+100)])
		}
	}
}

func open(t *testing.T, client, addr string) driver.Store {
	if client == "goredis" {
		c := redis.NewClient(&redis.Options{Addr: addr})
		store := goredisstore.New(c, redisscript.WithTimeout(patience))
		t.Cleanup(func() {
			_ = store.Close()
			_ = c.Close()
		})
		return store
	}
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
	if err != nil {
		t.Fatal(err)
	}
	store := rueidisstore.New(c, redisscript.WithTimeout(patience))
	t.Cleanup(func() {
		_ = store.Close()
		c.Close()
	})
	return store
}

// monitor writes down every command that the server gets, until it ends.
func monitor(t *testing.T, addr string, to io.Writer) (ended <-chan struct{}) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, "MONITOR\r\n"); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(to, conn) // it ends with the server
		close(done)
	}()
	return done
}

// everything reads all keys of the server with their values.
func everything(t *testing.T, server *redistest.Server) string {
	t.Helper()
	var text strings.Builder
	cursor := "0"
	for {
		reply, err := server.Do("SCAN", cursor, "COUNT", "1000")
		if err != nil {
			t.Fatal(err)
		}
		page := reply.([]any)
		for _, key := range page[1].([]any) {
			dump, err := server.Do("DUMP", key.(string))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = fmt.Fprintf(&text, "%s %v\n", key, dump)
		}
		if cursor = page[0].(string); cursor == "0" {
			return text.String()
		}
	}
}
