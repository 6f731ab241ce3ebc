#!lua
-- Makes the run that another run calls. Its id is made of what calls it, so the same call finds the same run.
--
-- KEYS[1]  child    hash
-- KEYS[2]  parent   hash     KEYS[3]  kids  sorted set: its children that have not ended, by the instance that calls
-- KEYS[4]  inbox of the parent     sorted set     KEYS[5]  events of the parent   hash
-- KEYS[6]  alarms   sorted set of the kind of the child
-- ARGV[1]  child    ARGV[2]  fence of the parent, or ""   ARGV[3]  instance, or "" for a run that is nobody's child
-- ARGV[4]  alarm ms   ARGV[5]  most children
-- ARGV[6]  most events that may wait and children that may still bring one, together
-- ARGV[7…] field, value, … of the record
--
-- Returns {"parent_ended"}, {"lost"}, {"full"} or {"started", 1 when that was before}.

local parent = redis.call("HMGET", KEYS[2], "state", "fence", "kids")
if not parent[1] or FINAL[parent[1]] then return { "parent_ended" } end
if ARGV[2] ~= "" and parent[2] ~= ARGV[2] then return { "lost" } end
-- A parent that has not looked for so long that the record of its child is gone has not seen its end either.
local ended = redis.call("HGET", KEYS[5], "child:" .. ARGV[1])
if ended or redis.call("HGET", KEYS[1], "state") then return { "started", "1" } end
local children = redis.call("ZCARD", KEYS[3])
local coming = children + redis.call("ZCARD", KEYS[4])
local attached = ARGV[3] ~= ""
if attached and (children >= tonumber(ARGV[5]) or coming >= tonumber(ARGV[6])) then return { "full" } end
local now = now_ms()

redis.call("HSET", KEYS[1], "state", "QUEUED", "version", "1", "fence", "0", "lease_until", "0", "crashes", "0",
  "tries", "0", "created_at", int(now), unpack(ARGV, 7))
if attached then
  redis.call("ZADD", KEYS[3], ARGV[3], ARGV[1])
  if not parent[3] then redis.call("HSET", KEYS[2], "kids", "1") end
end
redis.call("ZADD", KEYS[6], int(now + ARGV[4]), ARGV[1])
return { "started", "0" }
