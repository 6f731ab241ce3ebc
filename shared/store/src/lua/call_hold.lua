#!lua
-- Gives a call of a run to one holder for the time of a lease, or makes the lease of its holder longer.
--
-- KEYS[1]  call     string: the holder, as long as the lease lasts
-- ARGV[1]  holder   ARGV[2]  lease ms
--
-- Returns {"held"}, or {"busy", milliseconds until the lease of somebody else is over}.

local holder = redis.call("GET", KEYS[1])
if holder and holder ~= ARGV[1] then return { "busy", int(math.max(redis.call("PTTL", KEYS[1]), 0)) } end
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
return { "held" }
