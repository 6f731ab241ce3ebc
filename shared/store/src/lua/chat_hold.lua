#!lua
-- Records the calls of a turn that wait for the decision of its person, or that none do any more.
--
-- KEYS[1]  run   hash     KEYS[2]  conversation   hash
-- ARGV[1]  run id   ARGV[2]  fence   ARGV[3]  the calls as JSON, or ""
--
-- Returns {"lost"} or {"held"}.

local run = redis.call("HMGET", KEYS[1], "state", "fence")
if not run[1] or FINAL[run[1]] or run[2] ~= ARGV[2] then return { "lost" } end
if redis.call("HGET", KEYS[2], "active") ~= ARGV[1] then return { "lost" } end
if ARGV[3] == "" then
  redis.call("HDEL", KEYS[2], "pending")
else
  redis.call("HSET", KEYS[2], "pending", ARGV[3])
end
return { "held" }
