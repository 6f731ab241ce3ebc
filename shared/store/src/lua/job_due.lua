#!lua
-- What is to be done about a job run now, by the version of its project that is active now.
--
-- KEYS[1]  job      hash
-- ARGV[1]  time of an attempt ms, or "" to leave it   ARGV[2]  attempts, or ""
--
-- Returns {"missing"}, {"ended"}, {"early"}, {"running"}, {"overtime", attempt} or
-- {"publish", for how long it has been due ms, 1 when it has been published before, record}.

local job = redis.call("HMGET", KEYS[1], "state", "attempt", "due_at", "until", "offered")
if not job[1] then return { "missing" } end
if job[1] == "SUCCEEDED" or job[1] == "FAILED" then return { "ended" } end
local now = now_ms()
if job[1] == "RUNNING" then
  if now < tonumber(job[4] or "0") then return { "running" } end
  return { "overtime", job[2] }
end
local due = tonumber(job[3] or redis.call("HGET", KEYS[1], "enqueued_at"))
if now < due then return { "early" } end

if ARGV[1] ~= "" then
  redis.call("HSET", KEYS[1], "timeout", ARGV[1], "max_attempts", ARGV[2], "offered", job[2])
end
return { "publish", int(now - due), job[5] == job[2] and "1" or "0", redis.call("HGETALL", KEYS[1]) }
