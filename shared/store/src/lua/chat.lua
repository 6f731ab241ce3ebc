#!lua
-- Put in front of scripts that deal with conversations. Not a script of its own.
--
-- KEYS     only the prefix of the first
-- Reads and changes the undeclared keys `conv:<id>` (hash), `convlog:<id>` (list: messages, oldest first) and
-- `convturns:<id>` (list: turns that wait), and the sorted sets that a conversation remembers: conversations of its two
-- parties (`pair`) and of its person (`of_person`) by their last change; same slot.
-- ARGV     none
--
-- A message in `convlog` is a JSON list of texts: number, Unix ms, from, text, note, run.
--
-- Returns nothing; defines `bounds_of`, `cut`, `conversation` and `say`.

local function bounds_of(words)
  local retention, lifetime, messages, bytes, pair = string.match(words, "^(%d+) (%d+) (%d+) (%d+) (%d+)$")
  return { retention = tonumber(retention), lifetime = lifetime, messages = tonumber(messages), bytes = tonumber(bytes),
    pair = tonumber(pair) }
end

-- At most so many bytes of a text, without half a character.
local function cut(text, bytes)
  if #text <= bytes then return text end
  while bytes > 0 and string.byte(text, bytes + 1) >= 128 and string.byte(text, bytes + 1) < 192 do bytes = bytes - 1 end
  return string.sub(text, 1, bytes)
end

-- What there is to know of a conversation, each of its keys touched. It is live until its last message is too old.
local function conversation(id, bounds)
  local at = { id = id, key = PREFIX .. "conv:" .. id, log = PREFIX .. "convlog:" .. id, turns = PREFIX .. "convturns:" .. id }
  local found = redis.call("HMGET", at.key, "updated_at", "seq", "bytes", "unread", "active", "workspace", "agent",
    "person", "pair_ref", "person_ref")
  at.count, at.waiting = redis.call("LLEN", at.log), redis.call("LLEN", at.turns)
  at.live = found[1] and now_ms() < found[1] + bounds.retention
  at.seq, at.bytes, at.unread = tonumber(found[2] or "0"), tonumber(found[3] or "0"), tonumber(found[4] or "0")
  at.active, at.workspace, at.agent, at.person = found[5] or "", found[6], found[7], found[8]
  at.pair, at.of_person = PREFIX .. (found[9] or ""), PREFIX .. (found[10] or "")
  if at.live then
    redis.call("ZSCORE", at.pair, id)
    redis.call("ZSCORE", at.of_person, id)
  end
  return at
end

-- Writes a message at the end of a conversation, which becomes the newest one of its person; gives its number.
local function say(at, from, text, note, run, bounds)
  local now = now_ms()
  local newest = redis.call("ZRANGE", at.of_person, -1, -1, "WITHSCORES")
  -- No two changes of a person's conversations have the same time, so that pages have an order.
  local changed = int(math.max(now, tonumber(newest[2] or "0") + 1))
  local entry = cjson.encode({ int(at.seq + 1), int(now), from, text, note, run })
  at.count, at.seq, at.bytes = redis.call("RPUSH", at.log, entry), at.seq + 1, at.bytes + #entry
  while at.count > 1 and (at.count > bounds.messages or at.bytes > bounds.bytes) do
    at.bytes, at.count = at.bytes - #redis.call("LRANGE", at.log, 0, 0)[1], at.count - 1
    redis.call("LTRIM", at.log, 1, -1)
  end
  if from ~= "person" then at.unread = at.unread + 1 end
  redis.call("HSET", at.key, "updated_at", changed, "seq", int(at.seq), "bytes", int(at.bytes), "unread", int(at.unread))
  for _, set in ipairs({ at.pair, at.of_person }) do
    redis.call("ZADD", set, changed, at.id)
    redis.call("ZREMRANGEBYSCORE", set, "-inf", int(now - bounds.retention))
  end
  for _, key in ipairs({ at.key, at.log, at.pair, at.of_person }) do redis.call("PEXPIRE", key, bounds.lifetime) end
  return int(at.seq)
end
