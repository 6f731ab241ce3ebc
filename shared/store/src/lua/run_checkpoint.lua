#!lua
-- Stores how far the holder of a run has got and what it waits for, takes the events that it has used out of the inbox, and
-- gives the lease back if that is asked for and nothing waits. Needs `inbox_add.lua`, `messages.lua`, `waits.lua`,
-- `waits_change.lua` and `notes.lua` in front of it.
--
-- KEYS[1]  run      hash           KEYS[2]  alarms  sorted set of the kind of the run
-- KEYS[3]  inbox    sorted set     KEYS[4]  events  hash     KEYS[5]  seen  sorted set     KEYS[6]  history  list
-- KEYS[7]  incidents  sorted set: runs by the time since which they have had one
-- KEYS[8]  kept messages of the project   sorted set; no such place when the waits stay as they are
-- ARGV[1]  run id   ARGV[2]  fence    ARGV[3]  token of this call    ARGV[4]  position
-- ARGV[5]  1 to give the lease back   ARGV[6]  wake: "now", "never" or Unix ms   ARGV[7]  lease ms   ARGV[8]  alarm ms
-- ARGV[9]  most events   ARGV[10] most bytes of events   ARGV[11] incidents
-- ARGV[12] most entries of history   ARGV[13] memory of event ids ms   ARGV[14] most event ids
-- ARGV[15] number of entries of history   ARGV[16] number of waits, or "" when they stay as they are
-- ARGV[17…] entries of history, words of the field `waits`, ids of used events
--
-- Returns {"lost"}, {"ended", state}, or {"saved", 1 when the lease was given back, events that still wait}.

local run = redis.call("HMGET", KEYS[1], "state", "fence", "lease_until", "save_token", "version", "deadline", "waits",
  "incidents")
if not run[1] then return { "lost" } end
if FINAL[run[1]] then return { "ended", run[1] } end
if run[2] ~= ARGV[2] then return { "lost" } end
-- Without a lease only the very call that gave it back may come again.
if run[3] == "0" and run[4] ~= ARGV[3] then return { "lost" } end

local history_to = 16 + ARGV[15]
local waits_to = history_to + (tonumber(ARGV[16]) or 0)
local used, ids = {}, {}
for i = waits_to + 1, #ARGV do
  if redis.call("ZSCORE", KEYS[3], ARGV[i]) and not used[ARGV[i]] then
    ids[#ids + 1] = ARGV[i]
    used[ARGV[i]] = true
  end
end
local plan = KEYS[8] and plan_waits(ARGV[1], run[7], history_to + 1, waits_to, KEYS[8])
local waiting = redis.call("ZCARD", KEYS[3]) - #ids + (plan and #plan.given or 0)
local now = now_ms()
local release = ARGV[5] == "1" and waiting == 0

local lease_until = release and "0" or int(now + ARGV[7])
redis.call("HSET", KEYS[1], "position", ARGV[4], "version", int(run[5] + 1), "crashes", "0", "tries", "0",
  "lease_until", lease_until, "save_token", ARGV[3])
if #ids > 0 then
  redis.call("ZREM", KEYS[3], unpack(ids))
  redis.call("HDEL", KEYS[4], unpack(ids))
end
if plan then
  local own = { id = ARGV[1], run = KEYS[1], inbox = KEYS[3], events = KEYS[4], seen = KEYS[5], idle = false }
  change_waits(plan, own, KEYS[2], { 0, ARGV[13], ARGV[14] })
end
if (run[8] or "0") ~= ARGV[11] then note_incidents(KEYS[1], KEYS[7], ARGV[1], ARGV[11], now) end
if run[4] ~= ARGV[3] then write_history(KEYS[6], 17, history_to, ARGV[12]) end
local alarm = tonumber(lease_until)
if release then
  alarm = ARGV[6] == "now" and now + ARGV[8] or tonumber(ARGV[6])
  local deadline = tonumber(run[6])
  if deadline and (not alarm or deadline < alarm) then alarm = deadline end
end
if alarm then
  redis.call("ZADD", KEYS[2], int(alarm), ARGV[1])
else
  redis.call("ZREM", KEYS[2], ARGV[1])
end
return { "saved", release and "1" or "0", pending(KEYS[3], KEYS[4], tonumber(ARGV[9]), tonumber(ARGV[10])) }
