#!lua
-- Ends a run. The first end wins; nothing of a run changes after it but what becomes of its outcome.
--
-- KEYS[1]  run      hash
-- KEYS[2]  alarms   sorted set of the kind of the run     KEYS[3]  alarms of what is done
-- KEYS[4]  inbox    sorted set     KEYS[5]  events  hash     KEYS[6]  seen  sorted set
-- Reads and expires the undeclared idempotency key that the run remembers; same slot.
-- ARGV[1]  run id   ARGV[2]  who ends it: "fence" the holder, "version" somebody who has seen this version of a run
--                            that nobody holds, "any" a person or the platform
-- ARGV[3]  the fence or version    ARGV[4]  token of this call    ARGV[5]  final state
-- ARGV[6]  lifetime ms   ARGV[7]  alarm ms   ARGV[8]  1 to keep the output also without a wanted outcome
-- ARGV[9]  1 when the caller has not read the record and was told: ARGV[10] workspace, ARGV[11] target,
--          ARGV[12] its version, ARGV[13] input; all must be as they are in the record, and its deadline ahead
-- ARGV[14…] field, value, … of the end: output, error_code, error_message
--
-- Returns {"missing"}, {"lost"}, {"busy"}, {"ended", record}, or {"finished", 1 when the outcome is wanted}.

local run = redis.call("HMGET", KEYS[1], "state", "fence", "version", "lease_until", "end_token", "outcome", "key_ref",
  "started_at")
if not run[1] then return { "missing" } end
local wanted = run[6] == "PENDING"
if FINAL[run[1]] then
  if run[5] == ARGV[4] then return { "finished", wanted and "1" or "0" } end
  return { "ended", redis.call("HGETALL", KEYS[1]) }
end
local now = now_ms()
local held = tonumber(run[4]) > now
if ARGV[2] == "fence" and (run[2] ~= ARGV[3] or run[4] == "0") then return { "lost" } end
if ARGV[2] == "version" and (run[3] ~= ARGV[3] or held or run[1] == "PAUSED" or redis.call("ZCARD", KEYS[4]) > 0) then
  return { "busy" }
end
if ARGV[9] == "1" then
  local told = redis.call("HMGET", KEYS[1], "workspace", "target", "target_version", "input", "deadline")
  if told[1] ~= ARGV[10] or told[2] ~= ARGV[11] or told[3] ~= ARGV[12] or (told[4] or "") ~= ARGV[13]
    or (told[5] and tonumber(told[5]) <= now) then
    return { "busy" }
  end
end
local key = held_key(run[7], ARGV[1])

local end_fields = { unpack(ARGV, 14) }
if not wanted and ARGV[8] == "0" then
  for i = #end_fields - 1, 1, -2 do
    if end_fields[i] == "output" then
      table.remove(end_fields, i + 1)
      table.remove(end_fields, i)
    end
  end
end
-- Who ends a run without having claimed it has begun it by that.
if ARGV[2] == "version" and not run[8] then redis.call("HSET", KEYS[1], "started_at", int(now)) end
redis.call("HSET", KEYS[1], "state", ARGV[5], "version", int(run[3] + 1), "fence", int(run[2] + 1), "lease_until", "0",
  "finished_at", int(now), "end_token", ARGV[4], "tries", "0", unpack(end_fields))
redis.call("HDEL", KEYS[1], "input", "position", "claim_token", "save_token", "cut_off", "crashes", "events")
redis.call("UNLINK", KEYS[4], KEYS[5], KEYS[6])
redis.call("ZREM", KEYS[2], ARGV[1])
if wanted then
  redis.call("ZADD", KEYS[3], int(now + ARGV[7]), ARGV[1])
else
  redis.call("PEXPIRE", KEYS[1], ARGV[6])
  if key then redis.call("PEXPIRE", key, ARGV[6]) end
end
return { "finished", wanted and "1" or "0" }
