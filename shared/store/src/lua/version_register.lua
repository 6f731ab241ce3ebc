#!lua
-- Keeps what a version of a project declares. What is kept once does not change.
--
-- KEYS[1]  versions   sorted set: versions by the time they were registered
-- KEYS[2]  summaries  hash by version     KEYS[3]  manifests  hash by version
-- ARGV[1]  version   ARGV[2]  summary   ARGV[3]  manifest   ARGV[4]  the version that must stay, or ""
-- ARGV[5]  versions that are kept
--
-- Returns {"created"}, {"known"} for the same manifest again, or {"other"} when another one is kept.

local known = redis.call("HGET", KEYS[3], ARGV[1])
if known then return { known == ARGV[3] and "known" or "other" } end
local list = redis.call("ZRANGE", KEYS[1], 0, -1)

redis.call("ZADD", KEYS[1], int(now_ms()), ARGV[1])
redis.call("HSET", KEYS[2], ARGV[1], ARGV[2])
redis.call("HSET", KEYS[3], ARGV[1], ARGV[3])
local surplus = #list + 1 - tonumber(ARGV[5])
for _, version in ipairs(list) do
  if surplus <= 0 then break end
  if version ~= ARGV[4] then
    redis.call("ZREM", KEYS[1], version)
    redis.call("HDEL", KEYS[2], version)
    redis.call("HDEL", KEYS[3], version)
    surplus = surplus - 1
  end
end
return { "created" }
