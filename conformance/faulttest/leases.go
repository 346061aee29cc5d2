package faulttest

import (
	"errors"
	"strings"
	"time"

	"github.com/headgate-go/headgate/conformance/redistest"
)

// shortLease is how long slots outlive whoever was cut off from them: shorter than a case is patient.
const shortLease = 3 * time.Second

// noLeases checks that no slot is held any more once those that were cut off from their holders have ended.
func (sv *service) noLeases() {
	var left []string
	if _, ok := poll(20*time.Millisecond, 2*shortLease+patience/4, func() bool {
		left = sv.leases()
		return len(left) == 0
	}); !ok {
		sv.failf("slots are still held under %d keys, %q", len(left), left[:min(len(left), 3)])
	}
}

// leases returns the keys under which slots are held.
func (sv *service) leases() []string {
	servers := []*redistest.Server{sv.server}
	switch {
	case sv.nodes != nil:
		servers = sv.primaries()
	case sv.server.Sentinels() != nil:
		servers[0] = sv.server.Sentinels().Primary()
	}
	var held []string
	for _, server := range servers {
		reply, err := server.Do("KEYS", "*")
		var answer redistest.Error
		if err != nil && !errors.As(err, &answer) {
			sv.fatalf("KEYS: %v", err)
		}
		keys, _ := reply.([]any)
		for _, key := range keys {
			if name, _ := key.(string); strings.Contains(name, ":slots:") {
				held = append(held, name)
			}
		}
	}
	return held
}
