#!lua
-- Puts an event into the inbox of a run, once per event id, and sees to it that somebody looks.
--
-- KEYS[1]  run      hash
-- KEYS[2]  alarms   sorted set of the kind of the run
-- KEYS[3]  inbox    sorted set     KEYS[4]  events  hash     KEYS[5]  seen  sorted set
-- ARGV[1]  run id   ARGV[2]  event id   ARGV[3]  body   ARGV[4]  most events that may wait
-- ARGV[5]  alarm ms   ARGV[6]  memory of ids ms   ARGV[7]  most ids remembered
--
-- Returns {"missing"}, {"ended"}, {"known"}, {"full"} or {"added"}.

local run = redis.call("HMGET", KEYS[1], "state", "lease_until")
if not run[1] then return { "missing" } end
if FINAL[run[1]] then return { "ended" } end
if redis.call("ZSCORE", KEYS[5], ARGV[2]) then return { "known" } end
if redis.call("ZCARD", KEYS[3]) >= tonumber(ARGV[4]) then return { "full" } end
local now = now_ms()
local alarm = tonumber(redis.call("ZSCORE", KEYS[2], ARGV[1]) or "inf")

-- A number of its own keeps the order also when the clock steps back.
local place = redis.call("HINCRBY", KEYS[1], "events", 1)
redis.call("ZADD", KEYS[3], int(place), ARGV[2])
redis.call("HSET", KEYS[4], ARGV[2], ARGV[3])
redis.call("ZADD", KEYS[5], int(now), ARGV[2])
redis.call("ZREMRANGEBYSCORE", KEYS[5], "-inf", int(now - ARGV[6]))
redis.call("ZREMRANGEBYRANK", KEYS[5], 0, -1 - ARGV[7])
-- A holder finds the event by itself; a run that is held by a person is woken when it is let go on.
local idle = tonumber(run[2]) <= now and run[1] ~= "PAUSED"
if idle and now + ARGV[5] < alarm then redis.call("ZADD", KEYS[2], int(now + ARGV[5]), ARGV[1]) end
return { "added" }
