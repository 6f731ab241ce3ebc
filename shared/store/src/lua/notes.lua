#!lua
-- Put in front of scripts that write down what has happened in a run. Not a script of its own.
--
-- KEYS     none; they come as arguments
-- ARGV[from…to]  entries of history
--
-- Returns nothing; defines `write_history` and `note_incidents`.

local function write_history(list, from, to, most)
  if to < from then return end
  if redis.call("RPUSH", list, unpack(ARGV, from, to)) > tonumber(most) then
    redis.call("LTRIM", list, -most, -1)
  end
end

-- The set has the runs with an incident, by the time since which they have had one.
local function note_incidents(run_key, set, run, number, now)
  if number == "0" then
    redis.call("HDEL", run_key, "incidents")
    redis.call("ZREM", set, run)
  else
    redis.call("HSET", run_key, "incidents", number)
    redis.call("ZADD", set, "NX", int(now), run)
  end
end
