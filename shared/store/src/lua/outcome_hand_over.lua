#!lua
-- Turns the outcome of an ended run into a job of its project, once, or drops it with the reason.
--
-- KEYS[1]  run      hash     KEYS[2]  job  hash
-- KEYS[3]  jobs     set: job runs of the project that have not ended
-- KEYS[4]  alarms of what is done     KEYS[5]  history  list     KEYS[6]  kids  sorted set
-- Reads and expires the undeclared idempotency key that the run remembers; same slot.
-- ARGV[1]  run id   ARGV[2]  job id   ARGV[3]  workspace   ARGV[4]  project   ARGV[5]  job key   ARGV[6]  hops
-- ARGV[7]  chain    ARGV[8]  "" to deliver, or the reason to drop   ARGV[9]  hops of the job
-- ARGV[10] most jobs of the project   ARGV[11] reason when there are as many   ARGV[12] lifetime ms   ARGV[13] alarm ms
-- ARGV[14] 1 to keep the output on the run   ARGV[15…] field, value, … of the job, as far as the caller knows them
--
-- Returns {"missing"}, {"not_ended"}, {"not_wanted"}, {"mismatch"}, {"dropped", reason, 1 when just now},
-- {"job_begun"} (or ended, or it waits for its next attempt), {"again", record of the job} or {"delivered", the rest of the
-- record}.

local run = redis.call("HMGET", KEYS[1], "state", "outcome", "workspace", "project", "job", "hops", "chain", "key_ref",
  "kids")
if not run[1] then return { "missing" } end
if not FINAL[run[1]] then return { "not_ended" } end
if run[2] == "NONE" then return { "not_wanted" } end
for i = 3, 7 do
  if run[i] ~= ARGV[i] then return { "mismatch" } end
end
local dropped = string.match(run[2], "^DROPPED:(.*)$")
if dropped then return { "dropped", dropped, "0" } end
if run[2] == "JOB" then
  local begun = redis.call("HMGET", KEYS[2], "state", "attempt")
  if (begun[1] ~= "LIVE" and begun[1] ~= "PENDING") or begun[2] ~= "1" then return { "job_begun" } end
  return { "again", redis.call("HGETALL", KEYS[2]) }
end
local now = now_ms()
local key = held_key(run[8], ARGV[1])
local reason = ARGV[8]
if reason == "" and redis.call("SCARD", KEYS[3]) >= tonumber(ARGV[10]) then reason = ARGV[11] end
local known = #ARGV - 14
local job = { unpack(ARGV, 15) }
for _, text in ipairs({ "due_at", int(now), "enqueued_at", int(now), "ended", run[1] }) do job[#job + 1] = text end
local kept = { "lane", "user", "identity", "depth", "echo", "output", "error_code", "error_message", "target",
  "target_version", "created_at", "started_at", "finished_at", "trace", "delivery" }
local values = redis.call("HMGET", KEYS[1], unpack(kept))
for i, field in ipairs(kept) do
  if values[i] then
    job[#job + 1] = field
    job[#job + 1] = values[i]
  end
end
job[#job + 1] = "payload_bytes"
job[#job + 1] = int(#(values[5] or "") + #(values[6] or ""))

if reason == "" then
  redis.call("HSET", KEYS[2], unpack(job))
  redis.call("SADD", KEYS[3], ARGV[2])
  redis.call("ZADD", KEYS[4], int(now + ARGV[13]), ARGV[2])
end
redis.call("HSET", KEYS[1], "outcome", reason == "" and "JOB" or "DROPPED:" .. reason)
redis.call("HDEL", KEYS[1], "echo", "end_token", ARGV[14] == "0" and "output" or "echo")
redis.call("ZREM", KEYS[4], ARGV[1])
redis.call("PEXPIRE", KEYS[1], ARGV[12])
redis.call("PEXPIRE", KEYS[5], ARGV[12])
if run[9] then redis.call("PEXPIRE", KEYS[6], ARGV[12]) end
if key then redis.call("PEXPIRE", key, ARGV[12]) end
if reason ~= "" then return { "dropped", reason, "1" } end
return { "delivered", { unpack(job, known + 1) } }
