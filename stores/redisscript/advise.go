package redisscript

import (
	"strings"

	"github.com/headgate-go/headgate/core/driver"
)

// Advise reads what a server says of its memory (INFO memory) and warns where it would drop the state of limits.
func Advise(info string) []driver.Advice {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	limit, policy := fields["maxmemory"], fields["maxmemory_policy"]
	if limit == "" || limit == "0" || policy == "" || policy == "noeviction" {
		return nil
	}
	return []driver.Advice{{Code: "redis-eviction", Text: "the Redis server evicts keys when its memory is full (maxmemory-policy " +
		policy + "): a limit whose key is evicted starts anew; give limiters a server with noeviction"}}
}
