package redistest

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// PrimaryName is the name under which sentinels know the primary ("master name" or "master set" in clients).
const PrimaryName = "headgate"

// sentinelCount is how many sentinels there are; most of them have to agree.
const sentinelCount = 3

// Sentinels are the sentinels that watch a primary and its replicas. Methods that wait fail the test if it takes too long,
// so they belong into the test's own goroutine.
type Sentinels struct {
	t       testing.TB
	servers []*Server // the sentinels
	watched []*Server
	within  time.Duration // bounds waits
}

// startSentinels starts a primary, its replicas and the sentinels, and returns the former when the latter agree on them.
func startSentinels(t testing.TB, o options) ([]*Server, error) {
	watched, err := startReplicated(t, o.replicas, append([]string{"--repl-ping-replica-period", "1"}, o.args...))
	if err != nil {
		return nil, err
	}
	down := o.downAfter.Milliseconds()
	config := func(s *Server) string {
		return strings.Join([]string{
			"port " + strconv.Itoa(s.port), "bind 127.0.0.1", `dir "` + s.dir + `"`,
			fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d %d", PrimaryName, watched[0].port, sentinelCount/2+1),
			fmt.Sprintf("sentinel down-after-milliseconds %s %d", PrimaryName, down),
			// One that did not come about is tried again after twice this time; each of its steps takes up to a second.
			fmt.Sprintf("sentinel failover-timeout %s %d", PrimaryName, max(2*down, 2000)),
			fmt.Sprintf("sentinel parallel-syncs %s %d", PrimaryName, max(o.replicas, 1)), "",
		}, "\n")
	}
	servers, err := startAll(t, slices.Repeat([]plan{{config: config, ready: (*Server).hurry}}, sentinelCount)...)
	if err != nil {
		return nil, err
	}
	n := &Sentinels{t: t, servers: servers, watched: watched, within: o.patient()}
	for _, s := range slices.Concat(watched, servers) {
		s.sentinels = n
	}
	return watched, await(n.within, n.all(), n.trouble)
}

// hurry makes a sentinel look, ask and tell more often than every few seconds. Pings more often than that would be the
// end of failovers: a replica that was not looked at within five of their periods is no good, and while the primary is
// down replicas are looked at every second. A sentinel that finds that its own clock jumped does nothing for a while; on a
// busy machine that shall not be half a minute.
func (s *Server) hurry() error {
	_, err := s.text("SENTINEL", "DEBUG", "INFO-PERIOD", "200", "PING-PERIOD", "500", "ASK-PERIOD", "200",
		"PUBLISH-PERIOD", "200", "TILT-PERIOD", "1000")
	return err
}

func (n *Sentinels) all() []*Server { return slices.Concat(n.watched, n.servers) }

// Servers returns the sentinels themselves, which can be stopped, paused and started again, too.
func (n *Sentinels) Servers() []*Server { return slices.Clone(n.servers) }

// Addrs returns the addresses of the sentinels, which is what a client is given beside [PrimaryName].
func (n *Sentinels) Addrs() []string {
	var addrs []string
	for _, s := range n.servers {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// Primary returns the server that the first running sentinel holds for the primary.
func (n *Sentinels) Primary() *Server {
	n.t.Helper()
	list := running(n.servers)
	if len(list) == 0 {
		n.t.Fatalf("redistest: no sentinel is running")
	}
	primary, err := n.primaryOf(list[0])
	if err != nil {
		n.t.Fatalf("redistest: %v", err)
	}
	return primary
}

func (n *Sentinels) primaryOf(sentinel *Server) (*Server, error) {
	reply, err := sentinel.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", PrimaryName)
	if err != nil {
		return nil, fmt.Errorf("the sentinel on port %d: %w", sentinel.port, err)
	}
	var addr []string
	list, _ := reply.([]any)
	for _, part := range list {
		addr = append(addr, fmt.Sprint(part))
	}
	for _, s := range n.watched {
		if len(addr) == 2 && net.JoinHostPort(addr[0], addr[1]) == s.Addr() {
			return s, nil
		}
	}
	return nil, fmt.Errorf("the sentinel on port %d says that the primary is %q, which is none of the servers", sentinel.port, addr)
}

// Await waits until all is in order: running sentinels agree on the primary, which runs, know each other and hold all
// running servers for alive, and running replicas are in sync with it.
func (n *Sentinels) Await() {
	n.t.Helper()
	if err := await(n.within, n.all(), n.trouble); err != nil {
		n.t.Fatalf("redistest: the sentinels are not in order: %v", err)
	}
}

// AwaitFailover waits until another server is primary in place of from and all is in order, as [Sentinels.Await] has it,
// and returns it.
func (n *Sentinels) AwaitFailover(from *Server) *Server {
	n.t.Helper()
	var heir *Server
	if err := await(n.within, n.all(), func() (err error) {
		for _, sentinel := range running(n.servers) {
			if heir, err = n.primaryOf(sentinel); err != nil {
				return err
			}
			if heir == from {
				return fmt.Errorf("the sentinel on port %d holds it for the primary still", sentinel.port)
			}
		}
		return n.trouble()
	}); err != nil {
		n.t.Fatalf("redistest: failover of the server on port %d: %v", from.port, err)
	}
	return heir
}

// trouble says what is not in order, as [Sentinels.Await] has it.
func (n *Sentinels) trouble() error {
	sentinels, servers := running(n.servers), running(n.watched)
	if len(sentinels) == 0 {
		return errors.New("no sentinel is running")
	}
	primary, err := n.primaryOf(sentinels[0])
	if err != nil {
		return err
	}
	if !slices.Contains(servers, primary) {
		return fmt.Errorf("the primary on port %d does not run", primary.port)
	}
	for _, sentinel := range sentinels {
		if err := n.opinion(sentinel, primary, servers, sentinels); err != nil {
			return fmt.Errorf("the sentinel on port %d: %w", sentinel.port, err)
		}
	}
	for _, s := range servers {
		info, err := s.text("INFO", "replication")
		if err != nil {
			return err
		}
		role, of := infoField(info, "role"), infoField(info, "master_port")
		switch {
		case s == primary && role != "master":
			return fmt.Errorf("the primary on port %d says role:%s", s.port, role)
		case s != primary && of != strconv.Itoa(primary.port):
			return fmt.Errorf("the server on port %d is a %s of port %q, where the primary is %d", s.port, role, of, primary.port)
		case s != primary:
			if err := s.inSync(); err != nil {
				return err
			}
		}
	}
	return nil
}

// opinion says what is wrong with what a sentinel thinks of the others.
func (n *Sentinels) opinion(sentinel, primary *Server, servers, sentinels []*Server) error {
	reply, err := sentinel.Do("SENTINEL", "MASTER", PrimaryName)
	if err != nil {
		return err
	}
	list, _ := reply.([]any)
	if is := pairs(list); is["port"] != strconv.Itoa(primary.port) || is["flags"] != "master" {
		return fmt.Errorf("it says that the primary is port %s with the flags %q; want port %d, alive", is["port"], is["flags"], primary.port)
	}
	for _, list := range []struct {
		command, flags string
		expected       []*Server
	}{
		{"REPLICAS", "slave", without(servers, primary)},
		{"SENTINELS", "sentinel", without(sentinels, sentinel)},
	} {
		reply, err := sentinel.Do("SENTINEL", list.command, PrimaryName)
		if err != nil {
			return err
		}
		flags := map[string]string{} // by port
		for _, one := range reply.([]any) {
			fields := pairs(one.([]any))
			flags[fields["port"]] = fields["flags"]
		}
		for _, s := range list.expected {
			// Whoever is held for dead, or not connected to, has more flags.
			if got := flags[strconv.Itoa(s.port)]; got != list.flags {
				return fmt.Errorf("SENTINEL %s: port %d has the flags %q", list.command, s.port, got)
			}
		}
	}
	return nil
}

func without(list []*Server, s *Server) []*Server {
	return slices.DeleteFunc(slices.Clone(list), func(other *Server) bool { return other == s })
}

// pairs makes a map of a list of names and values.
func pairs(list []any) map[string]string {
	m := map[string]string{}
	for i := 0; i+1 < len(list); i += 2 {
		m[fmt.Sprint(list[i])] = fmt.Sprint(list[i+1])
	}
	return m
}
