#!lua
-- What an idempotency key stands for, for an operator. Writes nothing.
--
-- KEYS[1]  key   string: the run that it names
-- Reads the undeclared hash `run:<id>` of that run; same slot.
-- ARGV[1]  retention ms
--
-- Returns {"free"} or {"held", run, target, state, identity, created in Unix ms, finished in Unix ms or ""}.

local id = redis.call("GET", KEYS[1])
if not id then return { "free" } end
local run = redis.call("HMGET", PREFIX .. "run:" .. id, "target", "state", "identity", "created_at", "finished_at")
if not run[1] or (run[5] and now_ms() >= run[5] + ARGV[1]) then return { "free" } end
return { "held", id, run[1], run[2], run[3], run[4], run[5] or "" }
