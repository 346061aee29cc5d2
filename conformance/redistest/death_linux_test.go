package redistest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A test process that is killed takes its servers with it. The one killed here is this test, run once more by itself.
func TestDiesWithParent(t *testing.T) {
	if os.Getenv("REDISTEST_VICTIM") != "" {
		fmt.Println("addr", Start(t, Single).Addr())
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestDiesWithParent$")
	cmd.Env = append(os.Environ(), "REDISTEST_VICTIM=1", "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var addr string
	for lines := bufio.NewScanner(out); addr == "" && lines.Scan(); {
		addr, _ = strings.CutPrefix(lines.Text(), "addr ")
	}
	conn, err := Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ping(t, conn)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if !poll(func() bool {
		_, err := conn.Do("PING")
		return err != nil
	}) {
		t.Error("the server outlived the process that started it")
	}
}
