package gingate_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/headgate-go/headgate/adapters/gingate"
	"github.com/headgate-go/headgate/conformance/adaptertest"
	"github.com/headgate-go/headgate/core/gate"
)

func TestConformance(t *testing.T) { adaptertest.Run(t, newSite) }

func newSite(tb testing.TB, s adaptertest.Site) string {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.HandleMethodNotAllowed = true
	r.Use(gin.CustomRecoveryWithWriter(io.Discard, func(c *gin.Context, v any) {
		err, _ := v.(error)
		c.Abort()
		write(c, s.Failure(500, err))
	}))
	if !s.DefaultErrors {
		r.Use(func(c *gin.Context) {
			if c.Next(); len(c.Errors) > 0 && !c.Writer.Written() {
				write(c, s.Failure(c.Writer.Status(), c.Errors.Last().Err))
			}
		})
	}
	r.NoRoute(func(c *gin.Context) { write(c, s.Failure(404, nil)) })
	r.NoMethod(func(c *gin.Context) { write(c, s.Failure(405, nil)) })
	r.Use(func(c *gin.Context) { c.Set(adaptertest.TenantValue, c.GetHeader(adaptertest.TenantHeader)) })
	r.Use(mount(s.App)...)
	r.Use(func(c *gin.Context) {
		user, ok := adaptertest.Authenticate(c.GetHeader(adaptertest.UserHeader))
		if c.Set(adaptertest.UserValue, user); !ok {
			c.Abort()
			write(c, s.Failure(401, nil))
		}
	})
	group := r.Group(adaptertest.GroupPrefix, mount(s.Group)...)
	for _, route := range s.Routes {
		path, in := strings.CutPrefix(strings.Replace(route.Pattern, "*", "*rest", 1), adaptertest.GroupPrefix)
		chain := append(mount(s.Route), func(*gin.Context) { s.Later() }, handler(s, route.Do))
		if in {
			group.Handle(route.Method, path, chain...)
		} else {
			r.Handle(route.Method, path, chain...)
		}
	}
	return s.Serve(tb, r)
}

func mount(gates []*gate.Gate) (list []gin.HandlerFunc) {
	for _, g := range gates {
		list = append(list, gingate.Middleware(g))
	}
	return list
}

func handler(s adaptertest.Site, do adaptertest.Behaviour) gin.HandlerFunc {
	return func(c *gin.Context) {
		s.Handled()
		if a, ok := do.Answer(); ok {
			write(c, a)
		} else if do == adaptertest.Report {
			write(c, adaptertest.ReportAnswer(gingate.Admission(c), gate.FromContext(c.Request.Context())))
		} else if status := do.Fails(); status != 0 {
			c.Status(status)
			_ = c.Error(errors.Join(adaptertest.ErrHandler))
		} else {
			s.HTTP(c.Writer, c.Request, do)
		}
	}
}

func write(c *gin.Context, a adaptertest.Answer) {
	for _, f := range a.Fields {
		c.Header(f[0], f[1])
	}
	if c.Status(a.Status); a.Body != nil {
		c.Data(a.Status, a.ContentType, a.Body)
	}
}
