#!lua
-- Put in front of scripts that change what a run waits for. Not a script of its own.
--
-- KEYS     only the prefix of the first
-- Reads and changes the undeclared sorted sets `wait:<digest>` (`<run>:<subscription>` in the order in which they came) and
-- `signal:<digest>` (runs); same slot.
-- ARGV     none
--
-- The field `waits` of a run has one word for each: `m:<digest>:<subscription>` or `s:<digest>`. A subscription that has got
-- its message is out of the index at once, and stays in the field until its run drops it: so it never gets a second one.
--
-- Returns nothing; defines `wait_of`, `look_at_waits` and `drop_waits`.

local function wait_of(word, run)
  local digest, subscription = string.match(word, "^m:(%x+):(%d+)$")
  if digest then
    return { key = PREFIX .. "wait:" .. digest, member = run .. ":" .. subscription, digest = digest,
      subscription = subscription }
  end
  return { key = PREFIX .. "signal:" .. string.sub(word, 3), member = run }
end

-- The waits of a run, each touched; without those whose words are in `kept`.
local function look_at_waits(field, run, kept)
  local waits = {}
  for word in string.gmatch(field or "", "%S+") do
    if not kept[word] then
      local wait = wait_of(word, run)
      redis.call("ZSCORE", wait.key, wait.member)
      waits[#waits + 1] = wait
    end
  end
  return waits
end

local function drop_waits(waits)
  for _, wait in ipairs(waits) do
    redis.call("ZREM", wait.key, wait.member)
  end
end
