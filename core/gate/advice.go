package gate

import (
	"context"
	"time"

	"github.com/headgate-go/headgate/core/driver"
)

// Start-up warnings: what is set up so that limits will not hold or requests will wait. Each has a stable code and a
// paragraph in docs/warnings.md.

// advicePatience bounds how long a store is asked for its warnings, in the background.
const advicePatience = 5 * time.Second

// askAdvice asks the store for its warnings, once, after its first answer.
func (g *Gate) askAdvice() {
	advisor, ok := g.store.(driver.Advisor)
	if !ok || g.advised.Load() || g.advised.Swap(true) {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), advicePatience)
		defer cancel()
		g.advise(advisor.Advise(ctx))
	}()
}

func (g *Gate) advise(list []driver.Advice) {
	for _, a := range list {
		g.log.to().Warn("headgate: "+a.Text, "code", a.Code, "gate", g.name)
	}
}

// memoryAdvice warns of an in-process store in one of several processes that share a socket.
func memoryAdvice(preforkChild string) []driver.Advice {
	if preforkChild == "" {
		return nil
	}
	return []driver.Advice{{Code: "memory-prefork", Text: "Fiber's prefork runs several processes and the store is in-process: " +
		"each of them allows the whole limit; use a shared store, or one process"}}
}
