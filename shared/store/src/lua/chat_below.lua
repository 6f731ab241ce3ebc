#!lua
-- Put in front of scripts that deal with held calls of runs that are a part of a turn. Not a script of its own.
--
-- KEYS     none of its own
-- Changes the undeclared hash `conv:<id>`; same slot.
-- ARGV     none
--
-- Returns nothing; defines `hold_below`.

-- Writes down which calls of a run below a turn wait, or with "" that none do. False, and nothing is written, when all of the
-- conversation together would have more than `room` bytes.
local function hold_below(conversation, run, calls, room)
  local all = cjson.decode(redis.call("HGET", conversation, "pending_below") or "{}")
  all[run] = calls ~= "" and calls or nil
  if not next(all) then
    redis.call("HDEL", conversation, "pending_below")
    return true
  end
  local text = cjson.encode(all)
  if #text > room then return false end
  redis.call("HSET", conversation, "pending_below", text)
  return true
end
