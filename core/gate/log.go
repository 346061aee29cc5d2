package gate

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// rationedLog writes at most one line a second and kind: what goes wrong goes wrong on every request.
type rationedLog struct {
	logger *slog.Logger // nil: slog.Default() at the time
	start  time.Time
	kinds  sync.Map // of *ration by kind
}

type ration struct {
	last atomic.Int64 // when the latest line was written; 0: never
	held atomic.Int64 // lines left out since
}

// The kinds of warnings that are not a class of the store's failures.
const (
	warnCost      = "cost"
	warnKeyFunc   = "key"
	warnLimitFor  = "limit_for"
	warnForwarded = "forwarded"
	warnTake      = "take"
	warnStores    = "stores"
)

func newRationedLog(logger *slog.Logger) *rationedLog {
	return &rationedLog{logger: logger, start: time.Now()}
}

func (l *rationedLog) warn(kind, msg string, args ...any) {
	known, ok := l.kinds.Load(kind)
	if !ok {
		known, _ = l.kinds.LoadOrStore(kind, new(ration))
	}
	r := known.(*ration)
	now := int64(time.Since(l.start)) + 1 // never 0
	last := r.last.Load()
	if last != 0 && now-last < int64(time.Second) || !r.last.CompareAndSwap(last, now) {
		r.held.Add(1)
		return
	}
	if held := r.held.Swap(0); held > 0 {
		args = append(args, "left_out", held)
	}
	l.to().Warn("headgate: "+msg, args...)
}

func (l *rationedLog) to() *slog.Logger {
	if l.logger != nil {
		return l.logger
	}
	return slog.Default()
}
