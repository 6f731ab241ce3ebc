#!lua
-- Put in front of scripts that deal with messages which nobody waited for. Not a script of its own.
--
-- KEYS     only the prefix of the first
-- Reads and changes the undeclared keys `kept:<digest>` (sorted set: event ids in the order in which they came) and
-- `bodies:<digest>` (hash: their variables) of a name and key; same slot.
-- ARGV     none
--
-- Returns nothing; defines `message_body`, `touch_messages`, `kept_messages`, `keep_message` and
-- `forget_message`.

local function message_body(subscription, variables)
  return '{"kind":"message","subscription":' .. subscription .. ',"variables":' .. variables .. '}'
end

-- Before anything is written, so that a slot that is being moved stops the script in time.
local function touch_messages(digest)
  redis.call("ZCARD", PREFIX .. "kept:" .. digest)
  redis.call("HGET", PREFIX .. "bodies:" .. digest, "-")
end

-- The messages that are kept under a digest: the good ones, oldest first, as {event, variables}, and those whose time is
-- over as `<digest>:<event>`. `project` is the sorted set of all that its project keeps, by the end of their time.
local function kept_messages(digest, project)
  local good, over = {}, {}
  local ids = redis.call("ZRANGE", PREFIX .. "kept:" .. digest, 0, -1)
  touch_messages(digest)
  for _, id in ipairs(ids) do
    local ends = tonumber(redis.call("ZSCORE", project, digest .. ":" .. id) or "0")
    local variables = ends > now_ms() and redis.call("HGET", PREFIX .. "bodies:" .. digest, id)
    if variables then good[#good + 1] = { id, variables } else over[#over + 1] = digest .. ":" .. id end
  end
  return good, over
end

-- The keys of a digest live as long as the last message under it, and the set of the project as long as any can.
local function keep_message(digest, event, variables, ttl, project, memory)
  local kept, bodies = PREFIX .. "kept:" .. digest, PREFIX .. "bodies:" .. digest
  local last = redis.call("ZRANGE", kept, -1, -1, "WITHSCORES")
  redis.call("ZADD", kept, int(tonumber(last[2] or "0") + 1), event)
  redis.call("HSET", bodies, event, variables)
  for _, key in ipairs({ kept, bodies }) do
    redis.call("PEXPIRE", key, ttl, "NX")
    redis.call("PEXPIRE", key, ttl, "GT")
  end
  redis.call("ZADD", project, int(now_ms() + ttl), digest .. ":" .. event)
  redis.call("PEXPIRE", project, memory)
end

-- `word` is `<digest>:<event>`.
local function forget_message(word, project)
  local digest, event = string.match(word, "^(%x+):(.*)$")
  redis.call("ZREM", PREFIX .. "kept:" .. digest, event)
  redis.call("HDEL", PREFIX .. "bodies:" .. digest, event)
  redis.call("ZREM", project, word)
end
