#!lua
-- How far a batch has got. Writes nothing.
--
-- KEYS[1]  batch    hash: accepted, refused, first_at, last_at
-- KEYS[2]  revoked  string
-- No ARGV.
--
-- Returns {"batch", accepted, refused, first start in Unix ms or "", last start in Unix ms or "", ms for which it is revoked
-- or negative}.

local batch = redis.call("HMGET", KEYS[1], "accepted", "refused", "first_at", "last_at")
-- Below zero only when somebody has removed the hash by hand.
local refused = math.max(0, tonumber(batch[2] or "0"))
return { "batch", batch[1] or "0", int(refused), batch[3] or "", batch[4] or "", int(redis.call("PTTL", KEYS[2])) }
