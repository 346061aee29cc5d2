-- headgate: decides any number of requests in one atomic step. One script for every kind of limit.
--
-- KEYS     string keys (buckets, windows) first, then sorted sets (slots); each once.
-- ARGV[1]  32 bytes <dddd: one claim on the bucket KEYS[1]: burst, n, p, cost. 60 bytes <ddddId and an id: one request about
--          that bucket and a slot of KEYS[2], so with the most there may be, the lease in us and its id of 16 bytes.
--          Otherwise <H, the number of string keys, then records of 38 bytes <HHHdddd: op + 16 * flags, key, count, four
--          numbers. After a calendar's <dd, its outer edges; with flag 8 <d, when the window began that is to be corrected.
-- ARGV[2]  tests only: the time in microseconds.
-- reply    a string of doubles: what each claim saw before it took anything. The caller derives the verdicts.
--
-- All numbers but a stored fraction of a token are integers below 2^53, so that doubles are exact. Everything is read
-- and decided before anything is written: no error can leave half a decision behind.

local call, arg = redis.call, ARGV[1]

-- One clock for the whole call. With a given one every key lives an hour longer, since the server's own clock ends it.
local now, slack = ARGV[2], 3600000
if now then
  now = now + 0
else
  local time = call('TIME')
  now, slack = time[1] * 1000000 + time[2], 0
end

-- One request about a bucket, and perhaps a slot: level(), bucket() and the end, written out, since each call of the script
-- would make those functions anew.
local size = #arg
if size == 32 or size == 60 then
  local struct, format = struct, string.format
  local key, set, m, most, us = KEYS[1], nil, 0, 1, nil
  local burst, n, p, cost = struct.unpack('<dddd', arg)
  local v = call('GET', key)
  if size == 60 then
    set = KEYS[2]
    m = call('ZCARD', set)
    most, us = struct.unpack('<Id', arg, 33)
  end
  local w, f, at, u = burst, 0, now, 0
  if v and #v == 24 then
    local x, ts
    w, x, ts = struct.unpack('<ddd', v)
    f = x * p + 0.5
    f = f - f % 1
    if w < -burst then w, f = -burst, 0 end
    if ts > now then at = ts end
    u = f + (at - ts) * n
    f = u % p
    w = w + (u - f) / p
    if w >= burst then w, f = burst, 0 end
  end
  if u < 9007199254740992 and m < most then -- else from the start on the general path
    if w >= cost and cost > 0 then
      if set then
        call('ZADD', set, format('%d', now + us), string.sub(arg, 45))
        if m == 0 or call('PTTL', set) < us / 1000 + slack then
          call('PEXPIRE', set, format('%d', us / 500 + slack))
        end
      end
      local left, x = w - cost, f / p * 17592186044416
      local ms = ((burst - left) * p - f) / (n * 1000)
      call('SET', key, struct.pack('<ddd', left, (x - x % 1) / 17592186044416, at), 'PX',
        format('%d', ms - ms % 1 + 2 + slack))
    end
    if set then return struct.pack('<ddd', w, f, m) end
    return struct.pack('<dd', w, f)
  end
  if set then -- ops 2 and 3, the last claim of the request
    arg = struct.pack('<HHHH', 1, 2, 1, 1) .. string.sub(arg, 1, 32) .. struct.pack('<HHHdd', 19, 2, 1, most, us) .. string.sub(arg, 45)
  else
    arg = struct.pack('<HHHH', 1, 18, 1, 1) .. arg
  end
  size = #arg
end

local spread = table.unpack or unpack
local pack, unpack, format = struct.pack, struct.unpack, string.format

-- level returns what a bucket holds: whole tokens, the numerator of the rest over p, and the time that they count from.
local function level(v, burst, n, p)
  if not v or #v ~= 24 then return burst, 0, now end
  local w, x, ts = unpack('<ddd', v)
  local f, at = x * p + 0.5, now
  f = f - f % 1 -- the nearest: the numerator that was written, if p is the same
  if w < -burst then w, f = -burst, 0 end -- debt is at most one bucket
  if ts > now then at = ts end -- time never runs backward
  local e = at - ts
  local u = f + e * n
  if u < 9007199254740992 then
    f = u % p
    w = w + (u - f) / p
  else
    -- e * n / p by long multiplication and division, in three digits of n to the base 1024.
    local rest, q, b, scale = e % p, 0, 0, 1048576
    w = w + (e - rest) / p * n
    repeat
      local digit = n / scale
      b = b * 1024 + rest * ((digit - digit % 1) % 1024)
      local y = b % p
      q, b, scale = q * 1024 + (b - y) / p, y, scale / 1024
    until scale < 1
    w, f = w + q, f + b
    if f >= p then w, f = w + 1, f - p end
  end
  if w >= burst then return burst, 0, at end
  return w, f, at
end

-- bucket returns the state to be written, cut to 2^-44 of a token, and its life: the time to fill, a little longer.
local function bucket(left, f, at, burst, n, p)
  local x, ms = f / p * 17592186044416, ((burst - left) * p - f) / (n * 1000)
  return pack('<ddd', left, (x - x % 1) / 17592186044416, at), ms - ms % 1 + 2 + slack
end

-- V[i] is what key i holds at this point of the call: a string or false; of a sorted set the number of its members, from
-- its first use on. M[i] is the life in ms with which string i is to be written; of a sorted set, true once it was swept.
-- R is the reply. In a large pack M and R get their size at once: growing tables cost more than what is put into them.
local strings = unpack('<H', arg)
local V, M, R, r = {}, {}, {}, 0
if strings == 1 then
  V[1] = call('GET', KEYS[1])
elseif strings > 1 then
  V = call('MGET', spread(KEYS, 1, strings))
  for i = 1, strings do
    -- MGET is silent about keys of another type; GET fails.
    if not V[i] then V[i] = call('GET', KEYS[i]) end
  end
  if strings > 8 then
    local no = false
    M = {no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no,
      no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no, no}
    R = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
  end
end

-- window returns the admissions of the window before and of the running one, its length (0 outside the calendar), how
-- far it is gone, and the time.
local function window(v, off, d, b0, b2, b3)
  local prev, cur, ts = 0, 0, nil
  local at = now
  if v and #v == 16 then
    prev, cur, ts = unpack('<IId', v)
    if ts > now then at = ts end
  end
  if b0 then -- off is b1
    if at < b0 or at >= b3 then return 0, 0, 0, 0, at end
    if at < off then
      off, d = b0, off - b0
    elseif at < b2 then
      d = b2 - off
    else
      off, d = b2, b3 - b2
    end
  end
  local e = (at - off) % d
  local start = at - e
  if ts and ts < start then
    prev, cur = cur, 0
    if ts < start - d then prev = 0 end
  end
  return prev, cur, d, e, at
end

-- within says whether prev * rest <= m * d, exactly: the products exceed 2^53, so they are split at 2^21.
local function within(prev, rest, m, d)
  local rl, dl = rest % 2097152, d % 2097152
  return (prev * (rest - rl) / 2097152 - m * ((d - dl) / 2097152)) * 2097152 + (prev * rl - m * dl) <= 0
end

local leases = nil -- a list of what is to be added to sorted sets: {next, key, id, us, members before; nil to renew}
-- Of the request in hand: what to put back if it is refused, {next, key, V, M}; the leases of those before; its fate.
local undo, kept, refused = nil, nil, false
local pos = 3
while pos <= size do
  local op, key, count, a, b, c, cost = unpack('<HHHdddd', arg, pos)
  pos = pos + 38
  if op == 0 then
    for i = key, key + count - 1 do
      local w, f, at = level(V[i], a, b, c)
      R[r + 1], R[r + 2], r = w, f, r + 2
      if w >= cost and cost > 0 then V[i], M[i] = bucket(w - cost, f, at, a, b, c) end
    end
  elseif op == 1 then
    local w, f, at = level(V[key], a, b, c)
    R[r + 1], R[r + 2], r = w, f, r + 2
    if w >= cost and cost > 0 then
      local k = (w - w % cost) / cost
      if k > count then k = count end
      V[key], M[key] = bucket(w - k * cost, f, at, a, b, c)
    end
  else
    local flags = (op - op % 16) / 16
    local last, shadow, settle = flags % 2 == 1, flags % 4 >= 2, flags % 8 >= 4
    op = op % 16
    local fits, value, life, lease
    if op == 2 then
      local w, f, at = level(V[key], a, b, c)
      R[r + 1], R[r + 2], r = w, f, r + 2
      fits = settle or w >= cost or cost == 0
      if fits and not refused and (cost > 0 or cost < 0 and V[key]) then -- nothing is given back to a fresh key
        local left = w - cost
        if left >= a then left, f = a, 0 elseif left < -a then left, f = -a, 0 end
        value, life = bucket(left, f, at, a, b, c)
      end
    elseif op <= 6 and op ~= 3 then
      local prev, cur, d, e, at, b0, b3
      if op == 6 then
        b0, b3 = unpack('<dd', arg, pos)
        pos = pos + 16
        prev, cur, d, e, at = window(V[key], b, nil, b0, c, b3)
      else
        prev, cur, d, e, at = window(V[key], b, c)
      end
      if flags >= 8 then -- a correction of one window only, which begins there
        if unpack('<d', arg, pos) ~= at - e then cost = 0 end
        pos = pos + 8
      end
      R[r + 1], R[r + 2], r = cur, at, r + 2
      if op ~= 4 then R[r + 1], r = op == 5 and prev or d, r + 1 end
      local m = a - cur - cost
      fits = d > 0 and (settle or cost == 0 or m >= 0 and (op ~= 5 or within(prev, d - e, m, d)))
      if fits and not refused and (cost > 0 or cost < 0 and V[key]) then
        cur = cur + cost
        if cur < 0 then cur = 0 elseif cur > 2 * a then cur = 2 * a end
        local ms = ((op == 5 and 2 * d or d) - e) / 1000
        value, life = pack('<IId', prev, cur, at), ms - ms % 1 + 2 + slack
      end
    else
      local id = string.sub(arg, pos - 16, pos - 1)
      if op == 3 then
        local m = V[key]
        if a == 0 then -- a look: what is over does not count, and stays; what this call adds is not in the set yet
          m = call('ZCOUNT', KEYS[key], format('(%d', now), '+inf') + (m and m - call('ZCARD', KEYS[key]) or 0)
        else
          m = m or call('ZCARD', KEYS[key])
          if m >= a and not M[key] then
            m, M[key] = m - call('ZREMRANGEBYSCORE', KEYS[key], '-inf', format('%d', now)), true
          end
          V[key] = m
        end
        R[r + 1], r = m, r + 1
        fits = m < a
        if fits and not refused then value, life, lease = m + 1, M[key], {leases, key, id, b, m} end
      else
        fits = call('ZSCORE', KEYS[key], id)
        R[r + 1], r = fits and 1 or 0, r + 1
        if fits then leases = {leases, key, id, b} end
      end
    end
    if value then
      if not last then undo = {undo, key, V[key], M[key]} end
      V[key], M[key] = value, life
      if lease then leases = lease end
    elseif not fits and not shadow then
      refused = true
    end
    if last then
      if refused then
        while undo do
          local i = undo[2]
          if i > strings then
            V[i] = V[i] - 1 -- a sweep since then was done
          else
            V[i], M[i] = undo[3], undo[4]
          end
          undo = undo[1]
        end
        leases = kept
      end
      undo, kept, refused = nil, leases, false
    end
  end
end

while leases do
  local key, ms = KEYS[leases[2]], leases[4] / 1000
  local score = format('%d', now + leases[4])
  if leases[5] then
    call('ZADD', key, score, leases[3])
  else
    call('ZADD', key, 'XX', score, leases[3]) -- XX: it may have been swept since
  end
  -- Of several new leases in a set the first comes last here: its life must not cut that of the others short.
  if leases[5] == 0 and V[leases[2]] == 1 or call('PTTL', key) < ms + slack then
    call('PEXPIRE', key, format('%d', 2 * ms + slack))
  end
  leases = leases[1]
end
for i = 1, strings do
  if M[i] then call('SET', KEYS[i], V[i], 'PX', format('%d', M[i])) end
end
return pack('<' .. string.rep('d', r), spread(R, 1, r))
