#!lua
-- Put in front of every script, after the clock. Not a script of its own: no KEYS, no ARGV.
--
-- Returns nothing; defines what the scripts share.

-- Everything up to the kind of the key: `<namespace>:{s<shard>}:`.
local PREFIX = string.match(KEYS[1], "^[^{]*{[^}]*}:")
local FINAL = { COMPLETED = true, FAILED = true, TIMED_OUT = true, CANCELED = true, DELETED = true }

-- A whole number as Redis should store it: Lua itself would write large ones as 1e+15.
local function int(number)
  return string.format("%.0f", number)
end

-- Events that wait, oldest first, as {id, body, id, body, …}: at most `count`, and no more than `bytes` of bodies, but
-- always the first.
local function pending(inbox, events, count, bytes)
  local ids = redis.call("ZRANGE", inbox, 0, count - 1)
  if #ids == 0 then return {} end
  local bodies = redis.call("HMGET", events, unpack(ids))
  local list, size = {}, 0
  for i, id in ipairs(ids) do
    local body = bodies[i] or ""
    size = size + #body
    if i > 1 and size > bytes then break end
    list[#list + 1] = id
    list[#list + 1] = body
  end
  return list
end

-- The idempotency key that a run still holds, or false. `key_ref` is what the run remembers of its name.
local function held_key(key_ref, run)
  if not key_ref then return false end
  local key = PREFIX .. key_ref
  return redis.call("GET", key) == run and key
end
