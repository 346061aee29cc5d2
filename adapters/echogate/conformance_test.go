package echogate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/headgate-go/headgate/adapters/echogate"
	"github.com/headgate-go/headgate/conformance/adaptertest"
	"github.com/headgate-go/headgate/core/gate"
)

func TestConformance(t *testing.T) { adaptertest.Run(t, newSite) }

func newSite(tb testing.TB, s adaptertest.Site) string {
	e := echo.New()
	if !s.DefaultErrors {
		e.HTTPErrorHandler = func(err error, c echo.Context) {
			status := 500
			if he, ok := err.(*echo.HTTPError); ok {
				status = he.Code
			}
			_ = write(c, s.Failure(status, err))
		}
	}
	e.Use(middleware.RecoverWithConfig(middleware.RecoverConfig{DisablePrintStack: true, DisableErrorHandler: true}))
	e.Use(keep(adaptertest.TenantHeader, adaptertest.TenantValue))
	e.Use(mount(s.App)...)
	e.Use(keep(adaptertest.UserHeader, adaptertest.UserValue))
	group := e.Group(adaptertest.GroupPrefix, mount(s.Group)...)
	for _, route := range s.Routes {
		chain := append(mount(s.Route), func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error { s.Later(); return next(c) }
		})
		if path, ok := strings.CutPrefix(route.Pattern, adaptertest.GroupPrefix); ok {
			group.Add(route.Method, path, handler(s, route.Do), chain...)
		} else {
			e.Add(route.Method, route.Pattern, handler(s, route.Do), chain...)
		}
	}
	return s.Serve(tb, e)
}

func keep(field, name string) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			value, ok := adaptertest.Authenticate(c.Request().Header.Get(field))
			if c.Set(name, value); !ok {
				return echo.NewHTTPError(401)
			}
			return next(c)
		}
	}
}

func mount(gates []*gate.Gate) (list []echo.MiddlewareFunc) {
	for _, g := range gates {
		list = append(list, echogate.Middleware(g))
	}
	return list
}

func handler(s adaptertest.Site, do adaptertest.Behaviour) echo.HandlerFunc {
	return func(c echo.Context) error {
		s.Handled()
		if a, ok := do.Answer(); ok {
			return write(c, a)
		}
		switch do {
		case adaptertest.Error:
			return echo.NewHTTPError(503, "busy")
		case adaptertest.WrappedError:
			return echo.NewHTTPError(503, "busy").SetInternal(adaptertest.ErrHandler)
		case adaptertest.PlainError:
			return errors.Join(adaptertest.ErrHandler)
		case adaptertest.Report:
			return write(c, adaptertest.ReportAnswer(echogate.Admission(c), gate.FromContext(c.Request().Context())))
		}
		s.HTTP(c.Response(), c.Request(), do)
		return nil
	}
}

func write(c echo.Context, a adaptertest.Answer) error {
	for _, f := range a.Fields {
		c.Response().Header().Set(f[0], f[1])
	}
	if a.Body == nil {
		return c.NoContent(a.Status)
	}
	return c.Blob(a.Status, a.ContentType, a.Body)
}
