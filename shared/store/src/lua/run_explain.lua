#!lua
-- Everything about one run that is not in its record, for an operator. Writes nothing.
--
-- KEYS[1]  run      hash
-- KEYS[2]  alarms   sorted set of the kind of the run     KEYS[3]  alarms of what is done
-- KEYS[4]  inbox    sorted set     KEYS[5]  kids  sorted set
-- ARGV[1]  run id
--
-- Returns {"missing"}, or {"run", record, alarm in Unix ms or "", events that wait, now, ms to live or -1,
-- children that have not ended}.

local record = redis.call("HGETALL", KEYS[1])
if #record == 0 then return { "missing" } end
local alarm = redis.call("ZSCORE", KEYS[2], ARGV[1]) or redis.call("ZSCORE", KEYS[3], ARGV[1])
return { "run", record, alarm and int(tonumber(alarm)) or "", int(redis.call("ZCARD", KEYS[4])), int(now_ms()),
  int(redis.call("PTTL", KEYS[1])), int(redis.call("ZCARD", KEYS[5])) }
