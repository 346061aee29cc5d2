package webbench

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	ulule "github.com/ulule/limiter/v3"
	ululegin "github.com/ulule/limiter/v3/drivers/middleware/gin"
	"github.com/ulule/limiter/v3/drivers/store/memory"

	"github.com/headgate-go/headgate/adapters/gingate"
	"github.com/headgate-go/headgate/core/gate"
)

const (
	onGin     = "gin"
	peerUlule = "ulule/limiter's driver"
)

// ginEntries are the entries of Gin.
func ginEntries() []entry {
	gin.SetMode(gin.ReleaseMode)
	handler := func(c *gin.Context) { c.Data(http.StatusOK, "text/plain", body) }
	serve := func(handlers ...gin.HandlerFunc) site {
		engine := gin.New()
		if err := engine.SetTrustedProxies(nil); err != nil {
			panic(err) // nobody is always accepted
		}
		engine.GET(path, handlers...)
		return overHTTP(engine)
	}
	mount := func(g *gate.Gate, times int) site {
		if times == 1 {
			return serve(gingate.Middleware(g), handler)
		}
		return serve(gingate.Middleware(g), gingate.Middleware(g), func(c *gin.Context) {
			if gingate.Admission(c).Allowed() {
				handler(c)
			}
		})
	}
	return append([]entry{
		{onGin, bare, most, func(int) site { return serve(handler) }},
		{onGin, peerUlule, most, func(limit int) site {
			return serve(ululegin.NewMiddleware(ulule.New(memory.NewStore(), ulule.Rate{Period: time.Hour, Limit: int64(limit)})), handler)
		}},
	}, gates(onGin, mount)...)
}
