#!lua
-- Gives a message to a person to one sender, once per message id and within the caps, or says what became of it.
-- `caps.lua` and `deliver.lua` are put in front of it.
--
-- KEYS[1]  message   KEYS[2]  run: see `deliver.lua`
-- KEYS[3]  caps      hash of agent and person: day, messages of that day, theoretical arrival time of the next (GCRA)
-- KEYS[4]  pair      sorted set: conversations of agent and person
-- ARGV[1]  token of this call   ARGV[2]  lease ms   ARGV[3]  workspace   ARGV[4]  agent   ARGV[5]  person
-- ARGV[6]  1 for the newest conversation, 0 for one of its own   ARGV[7]  id of a new conversation
-- ARGV[8]  1 when the sink sends one id once however often it gets it   ARGV[9]  word of a refusal, or ""
-- ARGV[10] messages of a run   ARGV[11] messages of a day   ARGV[12] messages in a row   ARGV[13] period ms of one more
-- ARGV[14] memory of messages ms   ARGV[15] memory of caps ms   ARGV[16] retention of conversations ms
-- ARGV[17…] field, value, … of the message: caps_ref, run, text, note, title, …
--
-- Returns {"missing"}, {"mismatch"}, {"ended"}, {"busy", end of the lease}, {"known", word, 1 when just now}, or
-- {"reserved", fence, conversation, 1 when it is new}.

local now, period = now_ms(), tonumber(ARGV[13])
local message = redis.call("HMGET", KEYS[1], "state", "fence", "lease_until", "token", "word", "unsure", "conversation",
  "new", "day")
if message[1] == "DONE" then return { "known", message[5], "0" } end
local found = redis.call("HMGET", KEYS[2], "state", "workspace", "target", "deliver_to", "messages", "delivery",
  "chat", "chat_new", "project")
if not found[1] then return { "missing" } end
if found[2] ~= ARGV[3] or found[3] ~= ARGV[4] or found[4] ~= ARGV[5] then return { "mismatch" } end
local run = { live = not FINAL[found[1]], delivery = found[6] }
local newest = redis.call("ZRANGE", KEYS[4], -1, -1, "WITHSCORES")

if message[1] then
  if message[4] == ARGV[1] then return { "reserved", message[2], message[7], message[8] } end
  if tonumber(message[3]) > now then return { "busy", message[3] } end
  -- Nobody knows how far a holder has got that did not give it back.
  local unsure = message[6] == "1" or message[3] ~= "0"
  local word = (not run.live or unsure and (ARGV[8] == "0" or ARGV[9] ~= "")) and UNKNOWN or ARGV[9]
  if word ~= "" then
    settle(word, run, true, ARGV[14])
    if not unsure then give_back(run, KEYS[3], message[9], period) end
    return { "known", word, "1" }
  end
  redis.call("HSET", KEYS[1], "fence", int(message[2] + 1), "lease_until", int(now + ARGV[2]), "token", ARGV[1], "unsure",
    unsure and "1" or "0")
  return { "reserved", int(message[2] + 1), message[7], message[8] }
end
if not run.live then return { "ended" } end

local caps = caps_of(KEYS[3], now, tonumber(ARGV[12]), period)
local over = tonumber(found[5] or "0") >= tonumber(ARGV[10]) or caps.count >= tonumber(ARGV[11]) or caps.too_soon
local word = over and ARGV[9] == "" and "BLOCKED:RECIPIENT_RATE_LIMITED" or ARGV[9]
if word ~= "" then
  if caps.ahead then redis.call("HSET", KEYS[3], "tat", int(caps.tat)) end
  settle(word, run, false, ARGV[14])
  return { "known", word, "1" }
end
local chat, new = found[7] or ARGV[7], found[8] or "1"
if not found[7] and ARGV[6] == "1" and newest[1] and now < newest[2] + ARGV[16] then chat, new = newest[1], "0" end
redis.call("HSET", KEYS[1], "state", "SENDING", "fence", "1", "lease_until", int(now + ARGV[2]), "token", ARGV[1], "unsure",
  "0", "conversation", chat, "new", new, "day", int(caps.day), "at", int(now), "project", found[9], unpack(ARGV, 17))
redis.call("PEXPIRE", KEYS[1], ARGV[14])
redis.call("HSET", KEYS[3], "day", int(caps.day), "count", int(caps.count + 1), "tat", int(caps.tat + period))
redis.call("PEXPIRE", KEYS[3], ARGV[15])
redis.call("HINCRBY", KEYS[2], "messages", 1)
redis.call("HINCRBY", KEYS[2], "sending", 1)
redis.call("HSET", KEYS[2], "chat", chat, "chat_new", new)
return { "reserved", "1", chat, new }
