#!lua
-- Gives a message to the run that has waited for it longest, keeps it for who comes later, or says that nobody waits; once
-- per message id. `inbox_add.lua` and `messages.lua` are put in front of it.
--
-- KEYS[1]  sent     string: "kept", or the run that has got the message with this id
-- KEYS[2]  wait     sorted set: `<run>:<subscription>` in the order in which they came
-- KEYS[3]  kept     sorted set     KEYS[4]  bodies  hash
-- KEYS[5]  kept messages of the project   sorted set     KEYS[6]  alarms of Processes
-- ARGV[1]  event id   ARGV[2]  digest of name and key   ARGV[3]  variables   ARGV[4]  ms to keep it, or 0
-- ARGV[5]  memory of what was sent ms   ARGV[6]  most events in an inbox   ARGV[7]  wake ms   ARGV[8]  memory of ids ms
-- ARGV[9]  most ids   ARGV[10] most kept of the key   ARGV[11] most kept of the project   ARGV[12] most that is looked at
--
-- Returns {"delivered", run, lane, trace or "", 1 when that was before}, {"kept", 1 when that was before}, {"nobody"},
-- {"full"}, or {"more"} when nothing but leftovers of ended runs was found and removed.

local sent = redis.call("GET", KEYS[1])
if sent == "kept" then return { "kept", "1" } end
if sent then
  local run = redis.call("HMGET", PREFIX .. "run:" .. sent, "lane", "trace")
  return { "delivered", sent, run[1] or "interactive", run[2] or "", "1" }
end
local now, gone, to = now_ms(), {}, nil
for _, member in ipairs(redis.call("ZRANGE", KEYS[2], 0, ARGV[12] - 1)) do
  local found = receiver(string.match(member, "^[^:]+"), ARGV[1])
  if found and found.live then
    found.member, to = member, found
    break
  end
  gone[#gone + 1] = member
end
if to and to.waiting >= tonumber(ARGV[6]) then return { "full" } end
local more = #gone == tonumber(ARGV[12])
local keep = not to and not more and tonumber(ARGV[4]) > 0
local good, over = {}, {}
if keep then
  good, over = kept_messages(ARGV[2], KEYS[5])
  for _, word in ipairs(redis.call("ZRANGEBYSCORE", KEYS[5], "-inf", int(now), "LIMIT", 0, 100)) do
    touch_messages(string.match(word, "^%x+"))
    over[#over + 1] = word
  end
  local full = redis.call("ZCOUNT", KEYS[5], "(" .. int(now), "+inf") >= tonumber(ARGV[11])
  if full or #good >= tonumber(ARGV[10]) then return { "full" } end
end

if #gone > 0 then redis.call("ZREM", KEYS[2], unpack(gone)) end
if more then return { "more" } end
if to then
  redis.call("ZREM", KEYS[2], to.member)
  local body = message_body(string.match(to.member, "%d+$"), ARGV[3])
  receive(to, ARGV[1], body, KEYS[6], { ARGV[7], ARGV[8], ARGV[9] })
  redis.call("SET", KEYS[1], to.id, "PX", ARGV[5])
  return { "delivered", to.id, to.lane, to.trace, "0" }
end
if not keep then return { "nobody" } end
for _, word in ipairs(over) do forget_message(word, KEYS[5]) end
keep_message(ARGV[2], ARGV[1], ARGV[3], ARGV[4], KEYS[5], ARGV[5])
redis.call("SET", KEYS[1], "kept", "PX", ARGV[5])
return { "kept", "0" }
