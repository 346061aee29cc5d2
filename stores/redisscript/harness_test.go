package redisscript

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/core/driver"
)

var le = binary.LittleEndian

// harness runs a text of the script on a real server, past store and senders.
type harness struct {
	t    testing.TB
	srv  *redistest.Server
	conn *redistest.Conn
	sha  string
	keys int // so that every scenario has keys of its own
}

func newHarness(t testing.TB, srv *redistest.Server, text string) *harness {
	conn, err := redistest.Dial(srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := conn.Do("SCRIPT", "LOAD", text); err != nil {
		t.Fatal(err)
	}
	return &harness{t: t, srv: srv, conn: conn, sha: sha1Hex(text)}
}

// fresh returns a subject that nobody used before.
func (h *harness) fresh() string {
	h.keys++
	return subject(h.t, fmt.Sprint(h.sha[:4], h.keys))
}

// call runs the script once, and in the same round trip reads the state and the life of the keys.
func (h *harness) call(now int64, keys []string, arg string) (reply string, states []any, lives []int64, took time.Duration, err error) {
	args := []string{arg}
	if now != 0 {
		args = append(args, fmt.Sprint(now))
	}
	commands := [][]string{evalCommand("EVALSHA", h.sha, keys, args)}
	for _, key := range keys {
		commands = append(commands, []string{"GET", key}, []string{"PTTL", key})
	}
	start := time.Now()
	replies, err := h.conn.Pipe(commands...)
	took = time.Since(start)
	if err != nil {
		h.t.Fatal(err)
	}
	if answer, ok := replies[0].(redistest.Error); ok {
		return "", nil, nil, took, answer
	}
	for i := range keys {
		states = append(states, replies[1+2*i])
		life, _ := replies[2+2*i].(int64)
		lives = append(lives, life)
	}
	return replies[0].(string), states, lives, took, nil
}

// hour is what the script adds to every life when it is given the time.
const hour = 3_600_000

// checkLife compares a life in ms, as the server tells it, with the formula. Lives of a million years need not be exact.
func checkLife(life int64, formula int64, took time.Duration) error {
	life -= hour
	slop := formula >> 50
	if low := formula - slop - took.Milliseconds() - 1; life > formula+slop || life < low {
		return fmt.Errorf("the key lives %d ms more; the formula says %d", life, formula)
	}
	return nil
}

// model is the reference: one bucket after another, in order, by package driver.
type model map[string]driver.Bucket

// decide answers a batch in place.
func (m model) decide(now int64, batch []driver.Entry) {
	for i := range batch {
		claims := batch[i].Claims
		before := model{}
		levels := make([]driver.Level, len(claims))
		admitted := true
		for j := range claims {
			c := &claims[j]
			level := m[c.Subject].Read(c.Rule, now)
			levels[j] = level
			switch fits := c.Cost == 0 || level.Fits(c.Cost); {
			case fits && admitted && c.Cost > 0:
				if _, ok := before[c.Subject]; !ok {
					before[c.Subject] = m[c.Subject]
				}
				m[c.Subject] = level.Take(c.Rule, c.Cost)
			case !fits && !c.Shadow:
				admitted = false
			}
		}
		for j := range claims {
			c := &claims[j]
			c.Result = levels[j].Result(c.Rule, c.Cost, admitted && c.Cost > 0 && levels[j].Fits(c.Cost))
		}
		if !admitted {
			for key, state := range before {
				m[key] = state
			}
		}
	}
}

func (m model) settle(now int64, subject string, rule driver.Rule, amount int) {
	if amount > 0 || amount < 0 && m[subject].Time != 0 { // a fresh key is full already
		m[subject] = m[subject].Read(rule, now).Settle(rule, amount)
	}
}

// stored returns what the script must have stored for a bucket.
func stored(b driver.Bucket) any {
	if b.Time == 0 {
		return nil
	}
	return doubles(float64(b.Whole), float64(b.Part)/(1<<44), float64(b.Time))
}

// fillMillis returns the life of a bucket's key in ms: until it is full, by exact arithmetic.
func fillMillis(b driver.Bucket, rule driver.Rule, f int64) int64 {
	n, p := rule.Reduced()
	x := new(big.Int).Mul(big.NewInt(int64(rule.Capacity())-b.Whole), big.NewInt(p))
	x.Sub(x, big.NewInt(f))
	x.Div(x, big.NewInt(1000*n))
	if !x.IsInt64() {
		return math.MaxInt64
	}
	return x.Int64() + 2
}

func doubles(v ...float64) string {
	b := make([]byte, 0, 8*len(v))
	for _, x := range v {
		b = le.AppendUint64(b, math.Float64bits(x))
	}
	return string(b)
}

// answer writes the results of an entry whose claims begin at from, and returns how many they are.
func (r *request) answer(e *driver.Entry, from int) int {
	answer(r.claims[from:from+len(e.Claims)], e)
	return len(e.Claims)
}
