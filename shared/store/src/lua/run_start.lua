#!lua
-- Makes a run, once per message and once per idempotency key, or says why not.
--
-- KEYS[1]  run       hash, must not exist
-- KEYS[2]  message   string: the run that this message made
-- KEYS[3]  calls     set: messages by which the execution has called start
-- KEYS[4]  days      hash: starts of the project by UTC day
-- KEYS[5]  alarms    sorted set of the kind of the run
-- KEYS[6]  key       string: the run that the idempotency key names (absent without a key)
-- Reads the undeclared hash `run:<id>` of the runs that KEYS[2] and KEYS[6] name; same slot.
-- ARGV[1]  run id          ARGV[2]  message id    ARGV[3]  calls allowed, or "" for a start that is not counted
-- ARGV[4]  identity        ARGV[5]  kind          ARGV[6]  target      ARGV[7]  starts allowed a day
-- ARGV[8]  1 when admitted, 0 when refused        ARGV[9]  alarm ms    ARGV[10] retention ms
-- ARGV[11] memory of calls ms   ARGV[12] memory of messages ms   ARGV[13] memory of days ms
-- ARGV[14…] field, value, … of the record
--
-- Returns {"created"}, {"replayed", run, state}, {"duplicate", run, state}, {"conflict"}, {"other_target"},
-- {"calls_exceeded"}, {"refused"} or {"day_exceeded", Unix ms of the next UTC day}.

local now = now_ms()
local counted = ARGV[3] ~= ""

-- The run that a key names, and what to answer: false when the key is free, also when its run has vanished or has been
-- over for longer than `retention`.
local function named(key, tag, retention)
  local id = key and redis.call("GET", key)
  if not id then return false end
  local run = redis.call("HMGET", PREFIX .. "run:" .. id, "state", "identity", "kind", "target", "finished_at")
  if not run[1] or (run[5] and now >= run[5] + retention) then return false end
  -- Identity first: nobody learns anything about a run of somebody else.
  if run[2] ~= ARGV[4] then return { "conflict" } end
  if run[3] ~= ARGV[5] or run[4] ~= ARGV[6] then return { "other_target" } end
  return { tag, id, run[1] }
end

local calls = counted and redis.call("SCARD", KEYS[3]) or 0
if counted and calls >= tonumber(ARGV[3]) and redis.call("SISMEMBER", KEYS[3], ARGV[2]) == 0 then
  return { "calls_exceeded" }
end
local day = math.floor(now / 86400000)
local answer = named(KEYS[2], "replayed", math.huge) or named(KEYS[6], "duplicate", tonumber(ARGV[10]))
if not answer and ARGV[8] == "0" then answer = { "refused" } end
if not answer and tonumber(redis.call("HGET", KEYS[4], int(day)) or "0") >= tonumber(ARGV[7]) then
  answer = { "day_exceeded", int((day + 1) * 86400000) }
end

if counted then
  redis.call("SADD", KEYS[3], ARGV[2])
  if calls == 0 then redis.call("PEXPIRE", KEYS[3], ARGV[11]) end
end
if answer then return answer end
redis.call("HSET", KEYS[1], "state", "QUEUED", "version", "1", "fence", "0", "lease_until", "0", "crashes", "0",
  "tries", "0", "created_at", int(now), unpack(ARGV, 14))
redis.call("SET", KEYS[2], ARGV[1], "PX", ARGV[12])
if KEYS[6] then redis.call("SET", KEYS[6], ARGV[1]) end
if redis.call("HINCRBY", KEYS[4], int(day), 1) == 1 then
  redis.call("HDEL", KEYS[4], int(day - 4), int(day - 5), int(day - 6), int(day - 7))
  redis.call("PEXPIRE", KEYS[4], ARGV[13])
end
redis.call("ZADD", KEYS[5], int(now + ARGV[9]), ARGV[1])
return { "created" }
