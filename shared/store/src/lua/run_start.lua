#!lua
-- Makes a run, once per message and once per idempotency key, or says why not. `start_look.lua` and `start_count.lua` are
-- put in front of it.
--
-- KEYS[1]  message   KEYS[2]  calls, and what follows from KEYS[6] on: see `start_look.lua`
-- KEYS[3]  run       hash, must not exist
-- KEYS[4]  days      hash: starts of the project on the newest UTC day that it has started something on
-- KEYS[5]  alarms    sorted set of the kind of the run
-- ARGV[1] to ARGV[9]: see `start_look.lua`
-- ARGV[10] run id    ARGV[11] starts allowed a day   ARGV[12] 1 when admitted, 0 when refused   ARGV[13] alarm ms
-- ARGV[14] memory of calls ms     ARGV[15] memory of messages ms   ARGV[16] memory of days ms
-- ARGV[17] memory of batches ms   ARGV[18] most ids that a batch remembers
-- ARGV[19…] field, value, … of the record
--
-- Returns {"created"}, {"replayed", run, state}, {"duplicate", run, state}, {"conflict"}, {"other_target"},
-- {"revoked"}, {"budget_exceeded", calls}, {"calls_exceeded"}, {"refused"} or {"day_exceeded", Unix ms at which the day
-- that is counted ends}.

local answer = look()
if not answer and ARGV[12] == "0" then answer = { "refused" } end
-- A day that has been counted is never left for an earlier one, however far the clock steps back.
local day, starts = math.floor(now / 86400000), 0
if not answer then
  local days = redis.call("HGETALL", KEYS[4])
  for i = 1, #days, 2 do
    local counted = tonumber(days[i])
    if counted >= day then day, starts = counted, tonumber(days[i + 1]) end
  end
  if starts >= tonumber(ARGV[11]) then answer = { "day_exceeded", int((day + 1) * 86400000) } end
end

local tag = answer and answer[1] or "created"
count_call(tag, ARGV[14])
count_in_batch(tag, ARGV[17], ARGV[18])
if answer then return answer end
redis.call("HSET", KEYS[3], "state", "QUEUED", "version", "1", "fence", "0", "lease_until", "0", "crashes", "0",
  "tries", "0", "created_at", int(now), unpack(ARGV, 19))
redis.call("SET", KEYS[1], ARGV[10], "PX", ARGV[15])
local key = KEYS[tonumber(ARGV[8])]
if key then redis.call("SET", key, ARGV[10]) end
if starts == 0 then redis.call("UNLINK", KEYS[4]) end
redis.call("HSET", KEYS[4], int(day), int(starts + 1))
if starts == 0 then redis.call("PEXPIRE", KEYS[4], ARGV[16]) end
redis.call("ZADD", KEYS[5], int(now + ARGV[13]), ARGV[10])
return { "created" }
