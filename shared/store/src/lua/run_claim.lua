#!lua
-- Gives a run to one holder for the time of a lease.
--
-- KEYS[1]  run      hash
-- KEYS[2]  alarms   sorted set of the kind of the run
-- KEYS[3]  inbox    sorted set     KEYS[4]  events  hash
-- ARGV[1]  run id   ARGV[2]  token of this call: repeating the call finds the claim that it made
-- ARGV[3]  lease ms ARGV[4]  1 in quarantine, where a claim counts as a crash until the run gets further
-- ARGV[5]  most events     ARGV[6]  most bytes of events     ARGV[7]  newest version of a record that is understood
--
-- Returns {"missing"}, {"newer", version}, {"ended", record}, {"paused", record}, {"busy", end of the lease},
-- or {"claimed", fence, crashes, 1 when the holder before was cut off, record, events}. That record still says how often the
-- alarm has rung since somebody last had the run.

local run = redis.call("HMGET", KEYS[1], "state", "fence", "lease_until", "claim_token", "crashes", "version",
  "started_at", "cut_off", "v")
if not run[1] then return { "missing" } end
if tonumber(run[9] or "1") > tonumber(ARGV[7]) then return { "newer", run[9] } end
if FINAL[run[1]] then return { "ended", redis.call("HGETALL", KEYS[1]) } end
if run[1] == "PAUSED" then return { "paused", redis.call("HGETALL", KEYS[1]) } end

local now = now_ms()
local fence, crashes, cut_off = tonumber(run[2]), tonumber(run[5]), run[8] or "0"
local lease = tonumber(run[3])
local mine = run[4] == ARGV[2]
if lease > now and not mine then return { "busy", run[3] } end
local events = pending(KEYS[3], KEYS[4], tonumber(ARGV[5]), tonumber(ARGV[6]))

if not mine then
  fence = fence + 1
  crashes = crashes + ARGV[4]
  -- A holder that stops in an orderly way gives its lease back.
  cut_off = lease > 0 and "1" or "0"
  local lease_until = int(now + ARGV[3])
  redis.call("HSET", KEYS[1], "state", "RUNNING", "version", int(run[6] + 1), "fence", int(fence), "lease_until",
    lease_until, "claim_token", ARGV[2], "crashes", int(crashes), "cut_off", cut_off, "started_at", run[7] or int(now))
  redis.call("ZADD", KEYS[2], lease_until, ARGV[1])
end
local record = redis.call("HGETALL", KEYS[1])
redis.call("HSET", KEYS[1], "tries", "0")
return { "claimed", int(fence), int(crashes), cut_off, record, events }
