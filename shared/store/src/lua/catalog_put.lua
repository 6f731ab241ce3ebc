#!lua
-- Replaces the catalog of a workspace together with the definitions that it names.
--
-- KEYS[1]  catalog      hash: v, revision, json, token
-- KEYS[2…] definitions  strings, never removed: runs that have begun need theirs
-- ARGV[1]  token of this call   ARGV[2]  the revision that the change was based on, or "" for any
-- ARGV[3]  the catalog   ARGV[4]  version of the record   ARGV[5…]  texts of the definitions
--
-- Returns {"stored", revision} or {"changed", revision}.

local catalog = redis.call("HMGET", KEYS[1], "revision", "token")
local revision = catalog[1] or "0"
if catalog[2] == ARGV[1] then return { "stored", revision } end
if ARGV[2] ~= "" and ARGV[2] ~= revision then return { "changed", revision } end

for i = 2, #KEYS do
  redis.call("SET", KEYS[i], ARGV[i + 3])
end
revision = int(revision + 1)
redis.call("HSET", KEYS[1], "v", ARGV[4], "revision", revision, "json", ARGV[3], "token", ARGV[1])
return { "stored", revision }
