package redisscript_test

import (
	"testing"

	"github.com/headgate-go/headgate/stores/redisscript"
)

func TestAdvise(t *testing.T) {
	for info, want := range map[string]bool{
		"": false,
		"# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n":          false,
		"# Memory\r\nmaxmemory:1048576\r\nmaxmemory_policy:noeviction\r\n":     false,
		"# Memory\r\nmaxmemory:1048576\r\nmaxmemory_policy:volatile-lru\r\n":   true,
		"# Memory\r\nmaxmemory:1048576\r\nmaxmemory_policy:allkeys-random\r\n": true,
	} {
		if got := redisscript.Advise(info); (len(got) == 1) != want {
			t.Errorf("%q: %v", info, got)
		}
	}
}
