#!lua
-- Records the calls of a run that wait for the decision of the person of a conversation, or that none do any more. The run is
-- the turn there, or a part of it. `chat_below.lua` is put in front of it.
--
-- KEYS[1]  run   hash     KEYS[2]  conversation   hash
-- ARGV[1]  run id   ARGV[2]  fence   ARGV[3]  the calls as JSON, or ""   ARGV[4]  the turn
-- ARGV[5]  most bytes of the calls of all runs below the turn
--
-- Returns {"lost"}, {"full"} or {"held"}.

local run = redis.call("HMGET", KEYS[1], "state", "fence")
if not run[1] or FINAL[run[1]] or run[2] ~= ARGV[2] then return { "lost" } end
if redis.call("HGET", KEYS[2], "active") ~= ARGV[4] then return { "lost" } end
if ARGV[1] ~= ARGV[4] then
  return { hold_below(KEYS[2], ARGV[1], ARGV[3], tonumber(ARGV[5])) and "held" or "full" }
end
if ARGV[3] == "" then
  redis.call("HDEL", KEYS[2], "pending")
else
  redis.call("HSET", KEYS[2], "pending", ARGV[3])
end
return { "held" }
