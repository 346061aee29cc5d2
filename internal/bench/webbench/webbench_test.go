package webbench

import (
	"flag"
	"fmt"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/internal/bench/rounds"
)

var write = flag.Bool("write", false, "write the table into BENCHMARKS.md")

const (
	document = "../../../BENCHMARKS.md"
	section  = "requests"
	command  = "GOWORK=off go test -count=1 -run=NONE -bench=Requests -benchtime=1x -timeout=20m ./webbench -args -write"
)

// BenchmarkRequests is the second part of "make bench-memory": a plan of rounds, which takes its own time whatever
// -benchtime says.
func BenchmarkRequests(b *testing.B) {
	defer rounds.SetProcessors()()
	const measure = 150 * time.Millisecond
	s := newSuite(measure)
	plan := rounds.Plan{Rounds: 9, Log: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }}
	results, err := plan.Run(s.list)
	if err != nil {
		b.Fatal(err)
	}
	report := s.report(results, rounds.Setting{Make: "bench-memory", Command: command,
		Rounds: fmt.Sprintf("%d interleaved rounds, %v a benchmark, requests of %d addresses in turn, without a socket", plan.Rounds, measure, clients),
		Modules: []string{"github.com/gin-gonic/gin", "github.com/labstack/echo/v4", "github.com/gofiber/fiber/v2",
			"github.com/ulule/limiter/v3", "github.com/go-chi/httprate", "github.com/didip/tollbooth/v8"}})
	fmt.Fprintln(os.Stderr, report)
	if *write {
		if err := rounds.WriteSection(document, section, report); err != nil {
			b.Fatal(err)
		}
	}
}

// Everything runs, and every row gets a number. The numbers mean nothing.
func TestSmoke(t *testing.T) {
	s := newSuite(time.Millisecond)
	results, err := rounds.Plan{Rounds: 1}.Run(s.list)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range s.rows(results) {
		if math.IsNaN(row.Value.Median) {
			t.Errorf("%s: no figure", row.What)
		}
	}
	report := s.report(results, rounds.Setting{})
	for _, b := range s.list {
		if !strings.Contains(report, "| "+b.Name+" |") {
			t.Errorf("the report does not show %s", b.Name)
		}
	}
}

// Every limiter is in force, and counts each address by itself.
func TestLimits(t *testing.T) {
	for _, e := range entries() {
		if e.name == bare {
			continue
		}
		serve := e.open(1)
		for i, want := range []int{http.StatusOK, http.StatusTooManyRequests, http.StatusOK} {
			if got := serve([]int{0, 0, 1}[i]); got != want {
				t.Errorf("%v: request %d: status %d, want %d", e, i+1, got, want)
			}
		}
	}
}

// BENCHMARKS.md has the place, and the Makefile the command that the report tells.
func TestDocuments(t *testing.T) {
	for file, want := range map[string]string{document: "<!-- " + section + " -->", "../../../Makefile": command} {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s does not contain %q (error %v)", file, want, err)
		}
	}
}
