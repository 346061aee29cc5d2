package redistest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// everybody starts servers of all kinds, one of them paused and one twice, and returns them.
func everybody(t *testing.T) []*Server {
	watched, nodes := Start(t, Sentinel, WithReplicas(1)), Start(t, Cluster, WithPrimaries(1))
	nodes.Restart()
	watched.Pause()
	return slices.Concat([]*Server{Start(t, Single), watched}, watched.Peers(), watched.Sentinels().Servers(), nodes.Nodes().Servers())
}

// A test process that is killed takes its servers with it. The one killed here is this test, run once more by itself.
func TestDiesWithParent(t *testing.T) {
	if os.Getenv("REDISTEST_VICTIM") != "" {
		for _, s := range everybody(t) {
			fmt.Println("server", s.PID())
		}
		fmt.Println("all")
		select {}
	}
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^TestDiesWithParent$")
	cmd.Env = append(os.Environ(), "REDISTEST_VICTIM=1", "HEADGATE_REDIS_DIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []string
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "all"; {
		if pid, ok := strings.CutPrefix(lines.Text(), "server "); ok {
			pids = append(pids, pid)
		}
	}
	if len(pids) != 8 || !slices.ContainsFunc(pids, lives) {
		t.Fatalf("the other test started %v", pids)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if !poll(func() bool { return !slices.ContainsFunc(pids, lives) }) {
		t.Error("servers outlived the process that started them")
	}
}

func TestCleanup(t *testing.T) {
	t.Parallel()
	var pids []string
	t.Run("test", func(t *testing.T) {
		for _, s := range everybody(t) {
			pids = append(pids, fmt.Sprint(s.PID()))
		}
	})
	if len(pids) != 8 || slices.ContainsFunc(pids, lives) {
		t.Errorf("of the servers %v some outlived their test", pids)
	}
}

// lives says whether there is such a process. One that nobody has asked for its end yet does not live.
func lives(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
