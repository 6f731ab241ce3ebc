#!lua
-- Put after `chat.lua` in front of scripts that begin turns: a message of a person is answered by a run, one at a time in
-- a conversation. Not a script of its own.
--
-- KEYS     only the prefix of the first
-- Changes the undeclared hash `run:<id>` of a turn that begins; same slot.
-- ARGV     none
--
-- A turn that waits is a JSON list of texts: run, ms it may take, then field, value, … of the record.
--
-- Returns nothing; defines `turn_alive`, `next_turn`, which read, and `begin_turn`.

-- Whether the active turn of a conversation goes on.
local function turn_alive(at)
  local state = at.active ~= "" and redis.call("HGET", PREFIX .. "run:" .. at.active, "state")
  return state and not FINAL[state]
end

-- The turn that has waited longest, or `otherwise`.
local function next_turn(at, otherwise)
  local head = redis.call("LRANGE", at.turns, 0, 0)[1]
  local turn = head and cjson.decode(head) or otherwise
  if turn then redis.call("HGET", PREFIX .. "run:" .. turn[1], "state") end
  return turn
end

-- Makes the run of the turn at the head of those that wait.
local function begin_turn(at, turn, alarms, wake)
  local now = now_ms()
  redis.call("LTRIM", at.turns, 1, -1)
  redis.call("HSET", PREFIX .. "run:" .. turn[1], "state", "QUEUED", "version", "1", "fence", "0", "lease_until", "0", "crashes",
    "0", "tries", "0", "created_at", int(now), "deadline", int(now + turn[2]), unpack(turn, 3))
  redis.call("ZADD", alarms, int(now + wake), turn[1])
  redis.call("HSET", at.key, "active", turn[1])
  at.active = turn[1]
end
