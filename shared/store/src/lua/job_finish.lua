#!lua
-- Ends a job run.
--
-- KEYS[1]  job      hash
-- KEYS[2]  alarms of what is done
-- Changes the undeclared set of jobs that the job remembers; same slot.
-- ARGV[1]  job id   ARGV[2]  attempt   ARGV[3]  final state   ARGV[4]  lifetime ms
--
-- Returns {"missing"}, {"known", state}, {"other_attempt", attempt} or {"ended"}.

local job = redis.call("HMGET", KEYS[1], "state", "attempt", "jobs_ref")
if not job[1] then return { "missing" } end
if job[1] ~= "LIVE" then return { "known", job[1] } end
if job[2] ~= ARGV[2] then return { "other_attempt", job[2] } end
local jobs = PREFIX .. job[3]
redis.call("SISMEMBER", jobs, ARGV[1])
local now = now_ms()

redis.call("HSET", KEYS[1], "state", ARGV[3], "ended_at", int(now))
redis.call("HDEL", KEYS[1], "echo", "output", "error_code", "error_message", "tries")
redis.call("SREM", jobs, ARGV[1])
redis.call("ZREM", KEYS[2], ARGV[1])
redis.call("PEXPIRE", KEYS[1], ARGV[4])
return { "ended" }
