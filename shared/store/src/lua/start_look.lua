#!lua
-- Put in front of the scripts of a start: what a start is told before anything is decided about it. Not a script of its
-- own.
--
-- KEYS[1]  message   string: the run that this message made
-- KEYS[2]  calls     hash of the execution: `total` calls of every kind, starts of each kind, and for each message
--                    `m:<id>` the kind as which it counts, or `over` when it came beyond the limit of its kind
-- KEYS[ARGV[8]]      key      string: the run that the idempotency key names; no such place without a key
-- KEYS[ARGV[9]]      revoked  string: the batch is revoked; no such place for a start that is not of a batch
-- Reads the undeclared hash `run:<id>` of the runs that message and key name; same slot.
-- ARGV[1]  message id   ARGV[2]  identity   ARGV[3]  kind   ARGV[4]  target
-- ARGV[5]  calls of every kind allowed, or ""   ARGV[6]  calls of this kind allowed, or ""   ARGV[7]  retention ms
--
-- Returns nothing; defines `now`, `calls` and `look()`, which is false when nothing stands against the start.

local now = now_ms()
local revoked_key = KEYS[tonumber(ARGV[9])]
local calls = { budget = tonumber(ARGV[5]), limit = tonumber(ARGV[6]), mark = "m:" .. ARGV[1] }
if calls.budget or calls.limit then
  local counts = redis.call("HMGET", KEYS[2], "total", ARGV[3], calls.mark)
  calls.total, calls.of_kind, calls.counted_as = tonumber(counts[1] or "0"), tonumber(counts[2] or "0"), counts[3]
end

-- The run that a key names, and what to answer: false when the key is free, also when its run has vanished or has been
-- over for longer than `retention`.
local function named(key, tag, retention)
  local id = key and redis.call("GET", key)
  if not id then return false end
  local run = redis.call("HMGET", PREFIX .. "run:" .. id, "state", "identity", "kind", "target", "finished_at")
  if not run[1] or (run[5] and now >= run[5] + retention) then return false end
  -- Identity first: nobody learns anything about a run of somebody else.
  if run[2] ~= ARGV[2] then return { "conflict" } end
  if run[3] ~= ARGV[3] or run[4] ~= ARGV[4] then return { "other_target" } end
  return { tag, id, run[1] }
end

local function look()
  local replayed = named(KEYS[1], "replayed", math.huge)
  if revoked_key and redis.call("GET", revoked_key) then return replayed or { "revoked" } end
  if calls.budget and calls.total >= calls.budget and not calls.counted_as then
    return { "budget_exceeded", int(calls.total) }
  end
  if calls.limit and calls.of_kind >= calls.limit and calls.counted_as ~= ARGV[3] then return { "calls_exceeded" } end
  return replayed or named(KEYS[tonumber(ARGV[8])], "duplicate", tonumber(ARGV[7]))
end
