package gingate_test

import (
	"io"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/headgate-go/headgate/adapters/gingate"
	"github.com/headgate-go/headgate/conformance/adaptertest"
)

func init() { gin.SetMode(gin.ReleaseMode) }

func TestConformance(t *testing.T) { adaptertest.Run(t, newSite) }

func newSite(tb testing.TB, s adaptertest.Site) string {
	r := gin.New()
	r.HandleMethodNotAllowed = true
	r.Use(gin.CustomRecoveryWithWriter(io.Discard, func(c *gin.Context, v any) {
		err, _ := v.(error)
		c.Abort()
		_ = s.Failed(response(c), 500, err)
	}))
	if !s.DefaultErrors {
		r.Use(func(c *gin.Context) {
			if c.Next(); !c.Writer.Written() && c.Writer.Status() >= 400 {
				_ = s.Failed(response(c), c.Writer.Status(), c.Errors.Last())
			}
		})
	}
	r.Use(keep(s, adaptertest.TenantHeader, adaptertest.TenantValue))
	r.Use(adaptertest.Mount(s.App, gingate.Middleware)...)
	r.Use(keep(s, adaptertest.UserHeader, adaptertest.UserValue))
	group := r.Group(adaptertest.GroupPrefix, adaptertest.Mount(s.Group, gingate.Middleware)...)
	for _, route := range s.Routes {
		pattern, in := route.InGroup()
		map[bool]gin.IRoutes{true: group, false: r}[in].Handle(route.Method, strings.Replace(pattern, "*", "*rest", 1),
			append(adaptertest.Mount(s.Route, gingate.Middleware), handler(s, route.Do))...)
	}
	return s.Serve(tb, r)
}

func keep(s adaptertest.Site, field, name string) gin.HandlerFunc {
	return func(c *gin.Context) {
		if c.Set(name, c.GetHeader(field)); !s.Known(name, c.GetHeader(field)) {
			c.Status(401)
			c.Abort()
		}
	}
}

func handler(s adaptertest.Site, do adaptertest.Behaviour) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := s.Handle(do, adaptertest.Native{Response: response(c), Writer: c.Writer, Request: c.Request,
			Admission: gingate.Admission(c), Context: c.Request.Context(),
			Error: adaptertest.ErrHandler, WrappedError: adaptertest.ErrHandler}); err != nil {
			c.Status(do.Fails())
			_ = c.Error(err)
		}
	}
}

func response(c *gin.Context) adaptertest.Response {
	return adaptertest.Response{Set: c.Header, Send: func(status int, body []byte) error {
		if c.Status(status); body != nil {
			c.Data(status, adaptertest.TextType, body)
		}
		return nil
	}}
}
