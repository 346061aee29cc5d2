package echogate_test

import (
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/headgate-go/headgate/adapters/echogate"
	"github.com/headgate-go/headgate/conformance/adaptertest"
)

func TestConformance(t *testing.T) { adaptertest.Run(t, newSite) }

func newSite(tb testing.TB, s adaptertest.Site) string {
	e := echo.New()
	if !s.DefaultErrors {
		e.HTTPErrorHandler = func(err error, c echo.Context) {
			he, ok := err.(*echo.HTTPError)
			if !ok {
				he = echo.ErrInternalServerError
			}
			_ = s.Failed(response(c), he.Code, err)
		}
	}
	e.Use(middleware.RecoverWithConfig(middleware.RecoverConfig{DisablePrintStack: true, DisableErrorHandler: true}))
	e.Use(keep(s, adaptertest.TenantHeader, adaptertest.TenantValue))
	e.Use(adaptertest.Mount(s.App, echogate.Middleware)...)
	e.Use(keep(s, adaptertest.UserHeader, adaptertest.UserValue))
	group := e.Group(adaptertest.GroupPrefix, adaptertest.Mount(s.Group, echogate.Middleware)...)
	for _, route := range s.Routes {
		add := e.Add
		pattern, in := route.InGroup()
		if in {
			add = group.Add
		}
		add(route.Method, pattern, handler(s, route.Do), adaptertest.Mount(s.Route, echogate.Middleware)...)
	}
	return s.Serve(tb, e)
}

func keep(s adaptertest.Site, field, name string) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			value := c.Request().Header.Get(field)
			if c.Set(name, value); !s.Known(name, value) {
				return echo.ErrUnauthorized
			}
			return next(c)
		}
	}
}

func handler(s adaptertest.Site, do adaptertest.Behaviour) echo.HandlerFunc {
	return func(c echo.Context) error {
		return s.Handle(do, adaptertest.Native{Response: response(c), Writer: c.Response(), Request: c.Request(),
			Admission: echogate.Admission(c), Context: c.Request().Context(), Error: echo.NewHTTPError(503, "busy"),
			WrappedError: echo.NewHTTPError(503, "busy").SetInternal(adaptertest.ErrHandler)})
	}
}

func response(c echo.Context) adaptertest.Response {
	return adaptertest.Response{Set: c.Response().Header().Set, Send: func(status int, body []byte) error {
		if body == nil {
			return c.NoContent(status)
		}
		return c.Blob(status, adaptertest.TextType, body)
	}}
}
