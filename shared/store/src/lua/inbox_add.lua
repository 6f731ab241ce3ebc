#!lua
-- Put in front of scripts that put events into inboxes. Not a script of its own.
--
-- KEYS     only the prefix of the first
-- Reads and changes the undeclared keys `run:`, `inbox:`, `events:` and `seen:` of the runs that get something; same slot.
-- ARGV     none; bounds come as arguments
--
-- Returns nothing; defines `receiver` and `receive`. Who writes calls `receiver` for all first: it touches every key, so
-- that a slot that is being moved stops the script before anything is written.

-- What there is to know of a run before it gets the event; nil when there is no such run.
local function receiver(id, event)
  local to = { id = id, run = PREFIX .. "run:" .. id, inbox = PREFIX .. "inbox:" .. id, events = PREFIX .. "events:" .. id,
    seen = PREFIX .. "seen:" .. id }
  local run = redis.call("HMGET", to.run, "state", "lease_until", "lane", "trace")
  if not run[1] then return nil end
  to.live, to.lane, to.trace = not FINAL[run[1]], run[3], run[4] or ""
  -- A holder finds the event by itself; a run that is held by a person is woken when it is let go on.
  to.idle = run[1] ~= "PAUSED" and tonumber(run[2]) <= now_ms()
  to.known = redis.call("ZSCORE", to.seen, event)
  to.waiting = redis.call("ZCARD", to.inbox)
  redis.call("HGET", to.events, event)
  return to
end

-- Puts the event into the inbox and sees to it that somebody looks. `bounds`: wake ms, memory of ids ms, most ids.
local function receive(to, event, body, alarms, bounds)
  local now = now_ms()
  -- A number of its own keeps the order also when the clock steps back.
  local place = redis.call("HINCRBY", to.run, "events", 1)
  redis.call("ZADD", to.inbox, int(place), event)
  redis.call("HSET", to.events, event, body)
  redis.call("ZADD", to.seen, int(now), event)
  redis.call("ZREMRANGEBYSCORE", to.seen, "-inf", int(now - bounds[2]))
  redis.call("ZREMRANGEBYRANK", to.seen, 0, -1 - bounds[3])
  if to.idle then redis.call("ZADD", alarms, "LT", int(now + bounds[1]), to.id) end
end
