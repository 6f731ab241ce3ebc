#!lua
-- Holds a run, or lets it go on.
--
-- KEYS[1]  run      hash
-- KEYS[2]  alarms   sorted set of the kind of the run
-- ARGV[1]  run id   ARGV[2]  1 to hold, 0 to let go on   ARGV[3]  alarm ms of a run that goes on
--
-- Returns {"missing"}, {"ended", state}, {"unchanged", state} or {"changed", state}.

local run = redis.call("HMGET", KEYS[1], "state", "fence", "version", "deadline")
if not run[1] then return { "missing" } end
if FINAL[run[1]] then return { "ended", run[1] } end
local hold = ARGV[2] == "1"
if hold == (run[1] == "PAUSED") then return { "unchanged", run[1] } end
local now = now_ms()

local state = hold and "PAUSED" or "RUNNING"
-- The fence shuts out a holder that is at work: its slice is computed again later.
redis.call("HSET", KEYS[1], "state", state, "fence", int(run[2] + 1), "version", int(run[3] + 1), "lease_until", "0",
  "tries", "0")
local alarm = hold and tonumber(run[4]) or not hold and now + ARGV[3]
if alarm then
  redis.call("ZADD", KEYS[2], int(alarm), ARGV[1])
else
  redis.call("ZREM", KEYS[2], ARGV[1])
end
return { "changed", state }
