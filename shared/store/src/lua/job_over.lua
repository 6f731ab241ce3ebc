#!lua
-- Put in front of what ends job runs, or fails attempts of them. Not a script of its own.
--
-- KEYS[1]  job      hash     KEYS[2]  alarms of what is done
-- Reads and changes, undeclared: the set of jobs and the idempotency key that the job remembers, and `jobhist` of its
-- project; same slot.
-- ARGV[1]  job id   ARGV[2]  attempt   ARGV[3]  lifetime ms   ARGV[4]  span of the history ms   ARGV[5]  most of the history
--
-- Returns nothing; defines `job`, `not_this_attempt` (what to answer when the attempt is not under way, else false) and
-- `over(state, code)`, which only writes.

local JOB_FINAL = { SUCCEEDED = true, FAILED = true }
local job = redis.call("HMGET", KEYS[1], "state", "attempt", "jobs_ref", "key_ref", "max_attempts")
local not_this_attempt = false
if not job[1] then
  not_this_attempt = { "missing" }
elseif JOB_FINAL[job[1]] then
  not_this_attempt = { "known", job[1] }
elseif job[2] ~= ARGV[2] then
  not_this_attempt = { "other_attempt", job[2] }
end

local jobs = job[3] and PREFIX .. job[3]
local ended = job[3] and PREFIX .. "jobhist" .. string.sub(job[3], 5)
local key = job[4] and PREFIX .. job[4]
local now = now_ms()
-- Kinds are looked at before anything is written.
if not not_this_attempt then
  redis.call("SISMEMBER", jobs, ARGV[1])
  redis.call("ZCARD", ended)
  if key and redis.call("GET", key) ~= ARGV[1] then key = false end
end

local function over(state, code)
  redis.call("HSET", KEYS[1], "state", state, "ended_at", int(now))
  if code ~= "" then redis.call("HSET", KEYS[1], "last_error", code) end
  redis.call("HDEL", KEYS[1], "echo", "output", "payload", "error_code", "error_message", "tries", "until")
  redis.call("SREM", jobs, ARGV[1])
  redis.call("ZREM", KEYS[2], ARGV[1])
  redis.call("PEXPIRE", KEYS[1], ARGV[3])
  if key then redis.call("PEXPIRE", key, ARGV[3]) end
  redis.call("ZADD", ended, int(now), ARGV[1])
  redis.call("ZREMRANGEBYSCORE", ended, "-inf", int(now - ARGV[4]))
  redis.call("ZREMRANGEBYRANK", ended, 0, -1 - ARGV[5])
  redis.call("PEXPIRE", ended, ARGV[4])
end
