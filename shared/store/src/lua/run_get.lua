#!lua
-- Counts a call of an execution, and gives the record of a run to the project that it belongs to.
--
-- KEYS[1]  calls     hash of the execution, see `start_look.lua`
-- KEYS[2]  run       hash; absent for an id that no run of the workspace can have
-- ARGV[1]  calls of every kind allowed, or "" for a call that is not counted   ARGV[2]  memory of calls ms
-- ARGV[3]  workspace   ARGV[4]  project   ARGV[5]  retention ms
--
-- Returns {"budget_exceeded", calls}, {"missing"} or {"found", record}.

local budget = tonumber(ARGV[1])
local total = budget and tonumber(redis.call("HGET", KEYS[1], "total") or "0")
if budget and total >= budget then return { "budget_exceeded", int(total) } end
local answer = { "missing" }
if KEYS[2] then
  local run = redis.call("HMGET", KEYS[2], "workspace", "project", "finished_at")
  local over = run[3] and now_ms() >= run[3] + ARGV[5]
  if run[1] == ARGV[3] and run[2] == ARGV[4] and not over then
    answer = { "found", redis.call("HGETALL", KEYS[2]) }
  end
end

if budget then
  redis.call("HSET", KEYS[1], "total", int(total + 1))
  if total == 0 then redis.call("PEXPIRE", KEYS[1], ARGV[2]) end
end
return answer
