#!lua
-- Fails an attempt of a job run: the next one begins later, or the run has failed. `job_over.lua` is put in front of it.
--
-- KEYS, ARGV[1] to ARGV[5]: see `job_over.lua`
-- ARGV[6]  code of the error   ARGV[7]  1 when the next attempt can help   ARGV[8]  wait ms
--
-- Returns {"missing"}, {"known", state}, {"other_attempt", attempt}, {"ended"} or {"retried", attempt that comes next}.

if not_this_attempt then return not_this_attempt end
local attempt = tonumber(ARGV[2])
if ARGV[7] ~= "1" or attempt >= tonumber(job[5] or "5") then
  over("FAILED", ARGV[6])
  return { "ended" }
end

redis.call("HSET", KEYS[1], "state", "PENDING", "attempt", int(attempt + 1), "due_at", int(now + ARGV[8]), "tries", "0",
  "last_error", ARGV[6])
redis.call("HDEL", KEYS[1], "until", "began_at")
redis.call("ZADD", KEYS[2], int(now + ARGV[8]), ARGV[1])
return { "retried", int(attempt + 1) }
