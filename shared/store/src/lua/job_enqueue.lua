#!lua
-- Makes a job run, once per message and once per idempotency key, or says why not. `start_look.lua` and `start_count.lua` are
-- put in front of it, of which it uses the counting.
--
-- KEYS[1]  message  string: the job run that it made     KEYS[2]  calls: see `start_look.lua`
-- KEYS[3]  job      hash, must not exist     KEYS[4]  jobs  set: job runs of the project that have not ended
-- KEYS[5]  alarms of what is done
-- KEYS[ARGV[8]]  key  string: the job run that it names     KEYS[ARGV[9]]  revoked  string: see `start_look.lua`
-- Reads the undeclared hash `job:<id>` of the job runs that message and key name; same slot.
-- ARGV[1] to ARGV[9]: see `start_look.lua`; the kind is `jobs`, and ARGV[2], ARGV[4] and ARGV[7] are not used
-- ARGV[10] job id    ARGV[11] most jobs of the project   ARGV[12] 1 when admitted, 0 when refused
-- ARGV[13] wait ms, or "" with a time   ARGV[14] time of the first attempt, Unix ms, or ""
-- ARGV[15] alarm ms of what is due      ARGV[16] memory of calls ms   ARGV[17] memory of messages ms
-- ARGV[18…] field, value, … of the record
--
-- Returns {"revoked"}, {"budget_exceeded", calls}, {"calls_exceeded", calls}, {"replayed", job}, {"duplicate", job}, {"refused"},
-- {"full", jobs} or {"created", job, 1 when it is due now}.

local function job_of(key)
  local id = key and redis.call("GET", key)
  return id and redis.call("HGET", PREFIX .. "job:" .. id, "state") and id
end

local function answer_of()
  local made, named = job_of(KEYS[1]), job_of(KEYS[tonumber(ARGV[8])])
  if revoked_key and redis.call("GET", revoked_key) then return made and { "replayed", made } or { "revoked" } end
  if calls.budget and calls.total >= calls.budget and not calls.counted_as then
    return { "budget_exceeded", int(calls.total) }
  end
  if calls.limit and calls.of_kind >= calls.limit and calls.counted_as ~= ARGV[3] then
    return { "calls_exceeded", int(calls.of_kind) }
  end
  if made then return { "replayed", made } end
  if named then return { "duplicate", named } end
  if ARGV[12] == "0" then return { "refused" } end
  local waiting = redis.call("SCARD", KEYS[4])
  return waiting >= tonumber(ARGV[11]) and { "full", int(waiting) }
end

local answer = answer_of()
count_call(answer and answer[1] or "created", ARGV[16])
if answer then return answer end
local due = tonumber(ARGV[14]) or now + ARGV[13]
local is_due = due <= now
redis.call("HSET", KEYS[3], "state", "PENDING", "attempt", "1", "tries", "0", "enqueued_at", int(now), "due_at",
  int(math.max(due, now)), unpack(ARGV, 18))
if not is_due then redis.call("HSET", KEYS[3], "run_at", int(due)) end
redis.call("SADD", KEYS[4], ARGV[10])
redis.call("SET", KEYS[1], ARGV[10], "PX", ARGV[17])
local key = KEYS[tonumber(ARGV[8])]
if key then redis.call("SET", key, ARGV[10]) end
redis.call("ZADD", KEYS[5], int(is_due and now + ARGV[15] or due), ARGV[10])
return { "created", ARGV[10], is_due and "1" or "0" }
