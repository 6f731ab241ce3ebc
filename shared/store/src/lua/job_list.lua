#!lua
-- The job runs of a project, newest first: those that have not ended, then those that have. Writes nothing.
--
-- KEYS[1]  jobs     set: those that have not ended     KEYS[2]  jobhist  sorted set: those that have, by their end
-- Reads the undeclared hashes `job:<id>` of the members; same slot.
-- ARGV[1]  most entries   ARGV[2]  span of the history ms
--
-- Returns {"listed", how many have not ended, now, {id, field, value, …}, …}.

local count, now = tonumber(ARGV[1]), now_ms()
local open = redis.call("SMEMBERS", KEYS[1])
-- An id begins with the time at which it was made.
table.sort(open, function(one, other) return one > other end)
local ids = {}
for i = 1, math.min(count, #open) do ids[i] = open[i] end
if #ids < count then
  local ended = redis.call("ZRANGE", KEYS[2], int(now), int(now - ARGV[2]), "BYSCORE", "REV", "LIMIT", 0, count - #ids)
  for _, id in ipairs(ended) do ids[#ids + 1] = id end
end

local fields = { "job", "state", "attempt", "max_attempts", "by", "run", "enqueued_at", "due_at", "began_at", "ended_at",
  "last_error", "payload_bytes" }
local answer = { "listed", int(#open), int(now) }
for _, id in ipairs(ids) do
  local values = redis.call("HMGET", PREFIX .. "job:" .. id, unpack(fields))
  local entry = { id }
  for i, field in ipairs(fields) do
    if values[i] then
      entry[#entry + 1] = field
      entry[#entry + 1] = values[i]
    end
  end
  if values[1] then answer[#answer + 1] = entry end
end
return answer
