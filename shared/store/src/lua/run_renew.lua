#!lua
-- Makes the lease of a holder longer.
--
-- KEYS[1]  run      hash
-- KEYS[2]  alarms   sorted set of the kind of the run
-- KEYS[3]  inbox    sorted set
-- ARGV[1]  run id   ARGV[2]  fence    ARGV[3]  lease ms
--
-- Returns {"renewed", number of events that wait} or {"lost"}.

local run = redis.call("HMGET", KEYS[1], "state", "fence", "lease_until")
-- A lease that was given back stays given back: a renewal that comes late must not block the next holder.
if not run[1] or run[1] ~= "RUNNING" or run[2] ~= ARGV[2] or run[3] == "0" then return { "lost" } end
local waiting = redis.call("ZCARD", KEYS[3])

local lease_until = int(now_ms() + ARGV[3])
redis.call("HSET", KEYS[1], "lease_until", lease_until)
redis.call("ZADD", KEYS[2], lease_until, ARGV[1])
return { "renewed", int(waiting) }
