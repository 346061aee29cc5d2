package webbench

import (
	"net/http"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/adapters/echogate"
	"github.com/headgate-go/headgate/core/gate"
)

const (
	onEcho = "echo"
	own    = "its own limiter"
)

// echoEntries are the entries of Echo.
func echoEntries() []entry {
	handler := func(c echo.Context) error { return c.Blob(http.StatusOK, "text/plain", body) }
	serve := func(h echo.HandlerFunc, middleware ...echo.MiddlewareFunc) site {
		e := echo.New()
		e.IPExtractor = echo.ExtractIPDirect()
		e.GET(path, h, middleware...)
		return overHTTP(e)
	}
	mount := func(g *gate.Gate, times int) site {
		if times == 1 {
			return serve(handler, echogate.Middleware(g))
		}
		return serve(func(c echo.Context) error {
			if !echogate.Admission(c).Allowed() {
				return echo.ErrTooManyRequests
			}
			return handler(c)
		}, echogate.Middleware(g), echogate.Middleware(g))
	}
	return append([]entry{
		{onEcho, bare, most, func(int) site { return serve(handler) }},
		{onEcho, own, most, func(limit int) site {
			return serve(handler, middleware.RateLimiter(middleware.NewRateLimiterMemoryStoreWithConfig(
				middleware.RateLimiterMemoryStoreConfig{Rate: rate.Limit(limit), Burst: limit})))
		}},
	}, gates(onEcho, mount)...)
}
