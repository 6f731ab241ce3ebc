#!lua
-- Put in front of the scripts of messages to people: how many an agent sends a person. Not a script of its own.
--
-- KEYS[2]  run   hash: messages (attempts that count)
-- ARGV     none
--
-- The caps of an agent and a person are a hash: `day`, `count` of that day, `tat`, the theoretical arrival time of the
-- next message (GCRA), and `waiting`, the messages that wait for a time.
--
-- Returns nothing; defines `caps_of`, which reads, `count_one` and `give_back`.

-- As for starts, a day that has been counted is never left for an earlier one. A step back of the clock blocks nobody for
-- longer than a whole burst takes.
local function caps_of(key, now, burst, period)
  local caps = redis.call("HMGET", key, "day", "count", "tat", "waiting")
  local day = math.max(math.floor(now / 86400000), tonumber(caps[1] or "0"))
  local stored, latest = tonumber(caps[3] or "0"), now + burst * period
  local tat = math.min(math.max(stored, now), latest)
  return { day = day, count = tonumber(caps[1] or "0") == day and tonumber(caps[2]) or 0, tat = tat,
    too_soon = tat - now > (burst - 1) * period, free_at = tat - (burst - 1) * period, ahead = stored > latest,
    waiting = math.max(tonumber(caps[4] or "0"), 0) }
end

-- One more message of this day.
local function count_one(key, caps, period, memory)
  redis.call("HSET", key, "day", int(caps.day), "count", int(caps.count + 1), "tat", int(caps.tat + period))
  redis.call("PEXPIRE", key, memory)
end

-- An attempt that surely sent nothing does not count; one without a day has not been counted for any.
local function give_back(run, key, day, period)
  if run.live then redis.call("HINCRBY", KEYS[2], "messages", -1) end
  local caps = redis.call("HMGET", key, "day", "tat")
  if not caps[1] or not day then return end
  if caps[1] == day then redis.call("HINCRBY", key, "count", -1) end
  redis.call("HSET", key, "tat", int(tonumber(caps[2]) - period))
end
