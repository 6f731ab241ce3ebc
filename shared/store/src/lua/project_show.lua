#!lua
-- Which versions of a project are registered and which hosts were seen; notes the sign of life of one.
--
-- KEYS[1]  versions   sorted set by time     KEYS[2]  summaries  hash by version
-- KEYS[3]  hosts      sorted set: `<id> <version>` by the last sign of life
-- ARGV[1]  the host that asks, or ""   ARGV[2]  how long a host counts ms   ARGV[3]  hosts that are kept
--
-- Returns {"project", {version, time, summary, …} newest first, {host, time, …} latest first}.

local now = now_ms()
local versions, hosts = {}, {}
local list = redis.call("ZREVRANGE", KEYS[1], 0, -1, "WITHSCORES")
for i = 1, #list, 2 do
  versions[#versions + 1] = list[i]
  versions[#versions + 1] = int(list[i + 1])
  versions[#versions + 1] = redis.call("HGET", KEYS[2], list[i]) or ""
end

if ARGV[1] ~= "" then
  -- A host has one version at a time.
  local id = string.match(ARGV[1], "^[^ ]+ ")
  for _, member in ipairs(redis.call("ZRANGE", KEYS[3], 0, -1)) do
    if string.sub(member, 1, #id) == id and member ~= ARGV[1] then
      redis.call("ZREM", KEYS[3], member)
    end
  end
  redis.call("ZADD", KEYS[3], int(now), ARGV[1])
  redis.call("ZREMRANGEBYSCORE", KEYS[3], "-inf", int(now - ARGV[2]))
  redis.call("ZREMRANGEBYRANK", KEYS[3], 0, -1 - ARGV[3])
  redis.call("PEXPIRE", KEYS[3], ARGV[2])
end
local seen = redis.call("ZREVRANGEBYSCORE", KEYS[3], "+inf", int(now - ARGV[2]), "WITHSCORES")
for i = 1, #seen, 2 do
  hosts[#hosts + 1] = seen[i]
  hosts[#hosts + 1] = int(seen[i + 1])
end
return { "project", versions, hosts }
