#!lua
-- Put between `start_look.lua` and `run_start.lua`: counts a start once per message id. Not a script of its own.
--
-- KEYS     as for `start_look.lua`; those of a batch follow its `revoked`:
--   batch      hash: accepted, refused, first_at, last_at, and when its lifetime was set last: kept_at
--   batch ids  sorted set, by time: `a:<message>` that was told the run of its key, `r:<message>` that was refused. What
--              made a run is not in it: `message` remembers that.
-- ARGV     as for `start_look.lua`; spans and the number of ids come as arguments of the functions
--
-- Returns nothing; defines `count_call` and `count_in_batch`. Both read before they write.

-- Longest time for which a lifetime that was set counts as set just now, in milliseconds.
local KEPT_FOR = 3600000

-- Counts the call of the execution. Beyond the budget nothing is counted; beyond the limit of a kind only the budget is
-- used.
local function count_call(tag, memory)
  if calls.total == nil or tag == "revoked" or tag == "budget_exceeded" then return end
  local kind = ARGV[3]
  if tag == "calls_exceeded" then
    if calls.counted_as or not calls.budget then return end
    kind = "over"
  end
  if calls.counted_as == kind then return end
  local total = calls.counted_as and calls.total or calls.total + 1
  redis.call("HSET", KEYS[2], calls.mark, kind, "total", int(total))
  if kind ~= "over" then redis.call("HSET", KEYS[2], kind, int(calls.of_kind + 1)) end
  if calls.total == 0 then redis.call("PEXPIRE", KEYS[2], memory) end
end

-- Counts the message in the progress of its batch: as accepted when it has a run, else as refused until it has one. How long
-- the progress is kept is set anew once an hour at most.
local function count_in_batch(tag, memory, most)
  if not revoked_key or tag == "replayed" then return end
  local batch, ids = KEYS[ARGV[9] + 1], KEYS[ARGV[9] + 2]
  local accepted, refused = "a:" .. ARGV[1], "r:" .. ARGV[1]
  if redis.call("ZSCORE", ids, accepted) then return end
  local was_refused = redis.call("ZSCORE", ids, refused)
  local good = tag == "created" or tag == "duplicate"
  local count = good and "accepted" or "refused"
  local was = redis.call("HMGET", batch, "first_at", "kept_at", count)
  -- Both keys are kept equally long, so that neither is left without the other.
  local renewed = tag ~= "created" or not was[2] or now - was[2] >= KEPT_FOR

  if was_refused and good then
    redis.call("ZREM", ids, refused)
    redis.call("HINCRBY", batch, "refused", -1)
  end
  local is_new = good or not was_refused
  redis.call("HSET", batch, "first_at", was[1] or int(now), "last_at", int(now), "kept_at", renewed and int(now) or was[2],
    count, int((was[3] or 0) + (is_new and 1 or 0)))
  if tag ~= "created" then
    redis.call("ZADD", ids, int(now), good and accepted or refused)
    redis.call("ZREMRANGEBYRANK", ids, 0, -1 - most)
  end
  if renewed then
    redis.call("PEXPIRE", batch, memory + KEPT_FOR)
    redis.call("PEXPIRE", ids, memory + KEPT_FOR)
  end
end
