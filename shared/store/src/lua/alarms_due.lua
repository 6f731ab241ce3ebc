#!lua
-- Takes what is due: each is told once and put ahead, twice as far each time.
--
-- KEYS[1]  alarms   sorted set
-- Reads and changes the undeclared hashes `run:<id>`, `job:<id>` and `chatmsg:<id>` of the members, and reads `kids:<id>`;
-- same slot.
-- ARGV[1]  most members   ARGV[2]  first distance ms   ARGV[3]  longest distance ms
-- ARGV[4]  1 when the set holds what is done, 0 when it holds runs that go on, or have ended before their children, or
-- messages to people that have had to wait
--
-- Returns a list of {"advance", run, lane, trace or "", 1 when its holder was cut off, 1 when it is paused},
-- {"outcome", run, workspace, project, job key, hops, chain, lane, trace or ""},
-- {"job", job, workspace, project, job key, lane, trace or ""} and {"message", run, call, text, note or "", Unix ms until
-- which it may be sent, lane, trace or ""}.

local now = now_ms()
local due, told, gone = {}, {}, {}
for _, id in ipairs(redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", int(now), "LIMIT", 0, tonumber(ARGV[1]))) do
  local kind = string.sub(id, 1, 2) == "JB" and "job:" or string.find(id, ".", 1, true) and "chatmsg:" or "run:"
  local key = PREFIX .. kind .. id
  local item = redis.call("HMGET", key, "state", "outcome", "tries", "lane", "trace", "lease_until", "kids")
  local state, pending_outcome = item[1], item[2] == "PENDING"
  local entry
  if not state then
    entry = nil
  elseif kind == "job:" then
    local told_of = redis.call("HMGET", key, "workspace", "project", "job")
    entry = state ~= "SUCCEEDED" and state ~= "FAILED" and { "job", id, told_of[1], told_of[2], told_of[3], item[4],
      item[5] or "" }
  elseif kind == "chatmsg:" then
    local told_of = redis.call("HMGET", key, "text", "note", "until")
    local run, call = string.match(id, "^(%w+)%.(.+)$")
    entry = state ~= "DONE" and { "message", run, call, told_of[1], told_of[2] or "", told_of[3], item[4], item[5] or "" }
  elseif ARGV[4] == "1" then
    local told_of = redis.call("HMGET", key, "workspace", "project", "job", "hops", "chain")
    entry = FINAL[state] and pending_outcome and { "outcome", id, told_of[1], told_of[2], told_of[3], told_of[4],
      told_of[5], item[4], item[5] or "" }
  elseif not FINAL[state] or (item[7] and redis.call("ZCARD", PREFIX .. "kids:" .. id) > 0) then
    local cut_off = item[6] ~= "0" and "1" or "0"
    entry = { "advance", id, item[4], item[5] or "", cut_off, state == "PAUSED" and "1" or "0" }
  end
  if entry then
    told[#told + 1] = entry
    due[#due + 1] = { id = id, key = key, tries = tonumber(item[3] or "0") }
  else
    gone[#gone + 1] = id
  end
end

for _, item in ipairs(due) do
  local distance = math.min(ARGV[2] * 2 ^ math.min(item.tries + 1, 30), tonumber(ARGV[3]))
  redis.call("ZADD", KEYS[1], int(now + distance), item.id)
  redis.call("HSET", item.key, "tries", int(item.tries + 1))
end
if #gone > 0 then redis.call("ZREM", KEYS[1], unpack(gone)) end
return told
