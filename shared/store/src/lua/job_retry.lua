#!lua
-- Begins the next attempt of a job run.
--
-- KEYS[1]  job      hash
-- KEYS[2]  alarms of what is done
-- ARGV[1]  job id   ARGV[2]  the attempt that failed   ARGV[3]  alarm ms
--
-- Returns {"missing"}, {"ended", state}, {"other_attempt", attempt} or {"retried", record}.

local job = redis.call("HMGET", KEYS[1], "state", "attempt")
if not job[1] then return { "missing" } end
if job[1] ~= "LIVE" then return { "ended", job[1] } end
local attempt = tonumber(ARGV[2])
local begun = tonumber(job[2]) == attempt + 1
if not begun and job[2] ~= ARGV[2] then return { "other_attempt", job[2] } end
local now = now_ms()

redis.call("HSET", KEYS[1], "attempt", int(attempt + 1), "tries", "0")
redis.call("ZADD", KEYS[2], int(now + ARGV[3]), ARGV[1])
return { "retried", redis.call("HGETALL", KEYS[1]) }
