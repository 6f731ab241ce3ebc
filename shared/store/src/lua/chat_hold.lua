#!lua
-- Records the calls of a run that wait for the decision of the person of a conversation, or that none do any more. The run is
-- the turn there, or a part of it. When the person has written on already, nobody decides: what is to be held then is not shown.
-- `chat_reply.lua` sees what is shown when it writes, so one of the two always finds the other. `chat_below.lua` is put in
-- front of it.
--
-- KEYS[1]  run   hash     KEYS[2]  conversation   hash
-- Reads the undeclared list `convturns:<id>` of the conversation; same slot.
-- ARGV[1]  run id   ARGV[2]  fence   ARGV[3]  the calls as JSON, or ""   ARGV[4]  the turn
-- ARGV[5]  most bytes of the calls of all runs below the turn
--
-- Returns {"lost"}, {"full"}, {"held"} or {"written"}.

local run = redis.call("HMGET", KEYS[1], "state", "fence")
if not run[1] or FINAL[run[1]] or run[2] ~= ARGV[2] then return { "lost" } end
if redis.call("HGET", KEYS[2], "active") ~= ARGV[4] then return { "lost" } end
local waiting = redis.call("LLEN", PREFIX .. "convturns:" .. string.match(KEYS[2], "conv:(%w+)$"))
local calls = waiting == 0 and ARGV[3] or ""
if ARGV[1] ~= ARGV[4] then
  if not hold_below(KEYS[2], ARGV[1], calls, tonumber(ARGV[5])) then return { "full" } end
elseif calls == "" then
  redis.call("HDEL", KEYS[2], "pending")
else
  redis.call("HSET", KEYS[2], "pending", calls)
end
return { calls == ARGV[3] and "held" or "written" }
