#!lua
-- An attempt of a job run has begun: from now on its time counts. Again when it is begun again.
--
-- KEYS[1]  job      hash     KEYS[2]  alarms of what is done
-- ARGV[1]  job id   ARGV[2]  attempt   ARGV[3]  how much longer than the attempt may take its result is waited for, ms
--
-- Returns {"missing"}, {"known", state}, {"other_attempt", attempt} or {"begun", 1 when it has begun before}.

local job = redis.call("HMGET", KEYS[1], "state", "attempt", "timeout")
if not job[1] then return { "missing" } end
if job[1] == "SUCCEEDED" or job[1] == "FAILED" then return { "known", job[1] } end
if job[2] ~= ARGV[2] then return { "other_attempt", job[2] } end
local now = now_ms()
local till = int(now + tonumber(job[3] or "30000") + ARGV[3])

redis.call("HSET", KEYS[1], "state", "RUNNING", "began_at", int(now), "until", till, "tries", "0")
redis.call("ZADD", KEYS[2], till, ARGV[1])
return { "begun", job[1] == "RUNNING" and "1" or "0" }
