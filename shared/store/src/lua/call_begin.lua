#!lua
-- Begins a call of a project, or finds that it goes on or has ended.
--
-- KEYS[1]  call  hash: v, message, input (a digest), state (open, done, failed), attempt, deadline, key, reply_to,
--                correlation, answer
-- ARGV[1]  message id   ARGV[2]  digest of the input   ARGV[3]  time for one attempt ms   ARGV[4]  answer key of a new attempt
-- ARGV[5]  reply address or ""   ARGV[6]  correlation   ARGV[7]  how much longer than the deadline it is kept ms
-- ARGV[8]  version of the record
--
-- Returns {"begun", attempt, deadline, answer key}, {"ended", answer}, {"other_input"} or {"busy"}.

local now = now_ms()
local call = redis.call("HMGET", KEYS[1], "message", "input", "state", "attempt", "deadline", "key", "answer")
local message, input, state = call[1], call[2], call[3]
local mine = message == ARGV[1]
local open = state == "open" and now < tonumber(call[5])
if state and input ~= ARGV[2] and state ~= "failed" and (open or state == "done") then
  return { "other_input" }
end
if state == "done" or (state == "failed" and mine) then return { "ended", call[7] or "" } end
if open and not mine then return { "busy" } end

if open then
  -- The same request again: perhaps over another connection, whose address counts now.
  redis.call("HSET", KEYS[1], "reply_to", ARGV[5], "correlation", ARGV[6])
  return { "begun", call[4], call[5], call[6] }
end
local attempt = int(tonumber(call[4] or "0") + 1)
local deadline = int(now + ARGV[3])
redis.call("DEL", KEYS[1])
redis.call("HSET", KEYS[1], "v", ARGV[8], "message", ARGV[1], "input", ARGV[2], "state", "open", "attempt", attempt,
  "deadline", deadline, "key", ARGV[4], "reply_to", ARGV[5], "correlation", ARGV[6])
redis.call("PEXPIRE", KEYS[1], int(ARGV[3] + ARGV[7]))
return { "begun", attempt, deadline, ARGV[4] }
