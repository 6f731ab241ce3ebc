#!lua
-- How many alarms there are. Writes nothing.
--
-- KEYS[1]  alarms   sorted set
--
-- Returns {"counted", all, overdue, the next in Unix ms or "", now}. No ARGV.

local now = int(now_ms())
local first = redis.call("ZRANGE", KEYS[1], 0, 0, "WITHSCORES")
return { "counted", int(redis.call("ZCARD", KEYS[1])), int(redis.call("ZCOUNT", KEYS[1], "-inf", now)),
  first[2] and int(tonumber(first[2])) or "", now }
