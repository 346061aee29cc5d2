package redisscript

import (
	"strings"
	"testing"

	"github.com/headgate-go/headgate/conformance/redistest"
)

// twins are the script with one fault each. The comparisons are worth something if they notice every one.
var twins = []struct {
	name     string
	old, new string // replaced wherever it stands
	where    int    // how often it must stand there
	run      func(h *harness) error
}{
	{"no wide path in general", "  if u < 9007199254740992 then\n    f = u % p", "  if true then\n    f = u % p", 1, buckets},
	{"no wide path in the fast one", "if u < 9007199254740992 and m < most then -- else", "if m < most then -- else", 1, buckets},
	{"wide path says full", "local rest, q, b, scale = e % p, 0, 0, 1048576", "do return burst, 0, at end local rest, q, b, scale = e % p, 0, 0, 1048576", 1, buckets},
	{"fraction floored on reading, fast", "    f = x * p + 0.5\n", "    f = x * p\n", 1, buckets},
	{"fraction floored on reading", "local f, at = x * p + 0.5, now", "local f, at = x * p, now", 1, buckets},
	{"fraction not cut", "(x - x % 1) / 17592186044416", "x / 17592186044416", 2, buckets},
	{"time runs backward, fast", "    if ts > now then at = ts end\n    u = f", "    u = f", 1, buckets},
	{"time runs backward", "  if ts > now then at = ts end -- time never", "  -- time never", 1, buckets},
	{"a future state moves the clock of all", "  if ts > now then at = ts end -- time never", "  if ts > now then at, now = ts, ts end -- time never", 1, buckets},
	{"no undo", "while undo do", "while false do", 1, buckets},
	{"no debt clamp on reading", "if w < -burst then w, f = -burst, 0 end", "", 2, buckets},
	{"no debt clamp on settling", "elseif left < -a then left, f = -a, 0 end", "end", 1, buckets},
	{"shadow not undone", "if not last then undo =", "if not last and not shadow then undo =", 1, buckets},
	{"shadow refuses", "elseif not fits and not shadow then", "elseif not fits then", 1, buckets},
	{"taken after a refusal", "if fits and not refused and (cost > 0 or cost < 0 and V[key]) then --", "if fits and (cost > 0 or cost < 0 and V[key]) then --", 1, buckets},
	{"refusal outlives its request", "undo, kept, refused = nil, leases, false", "undo, kept = nil, leases", 1, buckets},
	{"cost zero in debt refuses", "fits = settle or w >= cost or cost == 0", "fits = settle or w >= cost", 1, buckets},
	{"given back to a fresh key", "(cost > 0 or cost < 0 and V[key]) then --", "cost ~= 0 then --", 1, buckets},
	{"a pack takes from the first state", "V[i], M[i] = bucket(w - cost, f, at, a, b, c)", "M[i] = select(2, bucket(w - cost, f, at, a, b, c))", 1, buckets},
	{"one more of many", "local k = (w - w % cost) / cost", "local k = (w - w % cost) / cost + 1", 1, buckets},
	{"ttl cut", "ms - ms % 1 + 2 + slack", "ms - ms % 1 - 999 + slack", 3, buckets},

	{"sliding by plain products", "(prev * (rest - rl) / 2097152 - m * ((d - dl) / 2097152)) * 2097152 + (prev * rl - m * dl) <= 0", "prev * rest <= m * d", 1, windows},
	{"sliding by division", "(prev * (rest - rl) / 2097152 - m * ((d - dl) / 2097152)) * 2097152 + (prev * rl - m * dl) <= 0", "prev * rest / d <= m", 1, windows},
	{"window time runs backward", "    if ts > now then at = ts end\n  end\n  if b0", "  end\n  if b0", 1, windows},
	{"window before forgotten late", "if ts < start - d then prev = 0 end", "", 1, windows},
	{"window not rolled over", "if ts and ts < start then", "if ts and ts < start - d then", 1, windows},
	{"window refund below zero", "if cur < 0 then cur = 0 elseif", "if", 1, windows},
	{"outside the calendar", "if at < b0 or at >= b3 then return 0, 0, 0, 0, at end", "", 1, windows},
	{"window not undone", "while undo do", "while false do", 1, windows},

	{"lease not undone", "        leases = kept\n", "", 1, slots},
	{"never swept", "if m >= a and not M[key] then", "if false then", 1, slots},
	{"slots counted once", "value, life, lease = m + 1,", "value, life, lease = m,", 1, slots},
	{"renew revives", "'XX', score", "score", 1, slots},
	{"life shortened", "call('PTTL', key) < ms + slack then", "true then", 1, slots},
	{"life never extended", " or call('PTTL', key) < ms + slack then", " then", 1, slots},
	{"pair admitted without slots", "9007199254740992 and m < most then", "9007199254740992 then", 1, slotPacks},
	{"pair takes no slot", "        call('ZADD', set, format('%d', now + us), string.sub(arg, 45))\n", "", 1, slotPacks},
	{"pair's set lives no longer than its first lease", "m == 0 or call('PTTL', set) < us / 1000 + slack then", "m == 0 then", 1, slotPacks},
	{"pair's set lives for less than its lease", "us / 500 + slack", "us / 2000 + slack", 1, slotPacks},
	{"pair with slots for more in general", "19, 2, 1, most, us)", "19, 2, 1, most + 1, us)", 1, slotPacks},

	{"a sweep undone with its request", "if i > strings then", "if false then", 1, slotPacks},
	{"a lease left in the count of a refused request", "V[i] = V[i] - 1", "V[i] = V[i]", 1, slotPacks},
	{"the first lease of a call decides how long a set lives", "leases[5] == 0 and V[leases[2]] == 1 or", "leases[5] == 0 or", 1, slotPacks},
	{"a look counts what is over", "format('(%d', now)", "'-inf'", 1, slotPacks},
	{"a look ends what ends now", "format('(%d', now)", "format('%d', now)", 1, slotPacks},
	{"a look does not see its own call", "(m and m - call('ZCARD', KEYS[key]) or 0)", "0", 1, slotPacks},
	{"a look sweeps", "if a == 0 then -- a look", "if a < 0 then -- a look", 1, slotPacks},
	{"slots taken after a refusal", "if fits and not refused then value, life, lease", "if fits then value, life, lease", 1, slotPacks},
	{"a full shadow refuses", "elseif not fits and not shadow then", "elseif not fits then", 1, slotPacks},
}

func buckets(h *harness) error { return compare(h, 3000, 77) }

func TestTwins(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	for _, twin := range twins {
		t.Run(twin.name, func(t *testing.T) {
			if n := strings.Count(script, twin.old); n != twin.where {
				t.Fatalf("the text to be replaced stands %d times in the script, not %d: %s", n, twin.where, twin.old)
			}
			err := twin.run(newHarness(t, srv, strings.ReplaceAll(script, twin.old, twin.new)))
			if err == nil {
				t.Error("nobody noticed")
			} else if testing.Verbose() {
				t.Log(strings.SplitAfterN(err.Error(), "\n", 2)[0])
			}
		})
	}
}
