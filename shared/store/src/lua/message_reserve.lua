#!lua
-- Gives a message to a person to one sender, once per message id and within the caps, lets it wait for a time, or says what
-- became of it. `caps.lua`, `deliver.lua`, `waiting.lua` and `message_again.lua` are put in front of it.
--
-- KEYS[1]  message   KEYS[2]  run: see `deliver.lua`          KEYS[3]  caps   hash: see `caps.lua`
-- KEYS[4]  pair      sorted set: conversations of agent and person      KEYS[5]  alarms of messages   sorted set
-- KEYS[6]  waiting   sorted set, KEYS[7]  settings   hash: see `waiting.lua`
-- ARGV[1]  token of this call   ARGV[2]  lease ms   ARGV[3]  workspace   ARGV[4]  agent   ARGV[5]  person
-- ARGV[6]  1 for the newest conversation, 0 for one of its own   ARGV[7]  id of a new conversation
-- ARGV[8]  1 when the sink sends one id once however often it gets it   ARGV[9]  word of a refusal, or ""
-- ARGV[10] messages of a run   ARGV[11] messages of a day   ARGV[12] messages in a row   ARGV[13] period ms of one more
-- ARGV[14] memory of messages ms   ARGV[15] memory of caps ms   ARGV[16] retention of conversations ms
-- ARGV[17] Unix ms before which it must not be sent, or ""   ARGV[18] ms after that until which it may   ARGV[19] its id
-- ARGV[20] quiet hours of the person by which that was decided, or ""   ARGV[21…] field, value, … of the message: caps_ref, run, text, note, title, …
--
-- Returns {"missing"}, {"mismatch"}, {"ended"}, {"busy", end of the lease}, {"known", word, 1 when just now}, {"waiting",
-- Unix ms}, or {"reserved", fence, conversation, 1 when it is new}.

local now, period = now_ms(), tonumber(ARGV[13])
local names = { "state", "fence", "lease_until", "token", "word", "unsure", "conversation", "new", "day", "since", "until",
  "latest" }
local message = {}
for i, value in ipairs(redis.call("HMGET", KEYS[1], unpack(names))) do message[names[i]] = value end
if message.state == "DONE" then return { "known", message.word, "0" } end
local found = redis.call("HMGET", KEYS[2], "state", "workspace", "target", "deliver_to", "messages", "delivery", "chat",
  "chat_new", "project", "lane", "trace")
if not found[1] then return { "missing" } end
if found[2] ~= ARGV[3] or found[3] ~= ARGV[4] or found[4] ~= ARGV[5] then return { "mismatch" } end
local run, stopped = { live = not FINAL[found[1]], delivery = found[6] }, found[1] == "CANCELED" or found[1] == "DELETED"
local newest = redis.call("ZRANGE", KEYS[4], -1, -1, "WITHSCORES")
local caps = caps_of(KEYS[3], now, tonumber(ARGV[12]), period)
for i = 5, 6 do redis.call("ZSCORE", KEYS[i], ARGV[19]) end
if message.state then return again(message, run, caps, newest, now, stopped) end
if not run.live then return { "ended" } end

local due = tonumber(ARGV[17])
local full = caps.count >= tonumber(ARGV[11]) or caps.too_soon
if due then full = caps.waiting >= tonumber(ARGV[11]) end
local over = full or tonumber(found[5] or "0") >= tonumber(ARGV[10])
local word = over and ARGV[9] == "" and LIMITED or ARGV[9]
if word ~= "" then
  if caps.ahead then redis.call("HSET", KEYS[3], "tat", int(caps.tat)) end
  settle(word, run, false, ARGV[14])
  return { "known", word, "1" }
end
local chat, new = found[7] or ARGV[7], found[8] or "1"
if not found[7] and ARGV[6] == "1" and newest[1] and now < newest[2] + ARGV[16] then chat, new = newest[1], "0" end
redis.call("HSET", KEYS[1], "fence", "0", "unsure", "0", "conversation", chat, "new", new, "latest", ARGV[6], "at", int(now),
  "project", found[9], "lane", found[10] or "interactive", "trace", found[11] or "", unpack(ARGV, 21))
redis.call("HINCRBY", KEYS[2], "messages", 1)
redis.call("HSET", KEYS[2], "chat", chat, "chat_new", new)
if due then return put_off(run, false, due, due + ARGV[18]) end
redis.call("HSET", KEYS[1], "state", "SENDING", "fence", "1", "lease_until", int(now + ARGV[2]), "token", ARGV[1], "day",
  int(caps.day))
redis.call("PEXPIRE", KEYS[1], ARGV[14])
count_one(KEYS[3], caps, period, ARGV[15])
redis.call("HINCRBY", KEYS[2], "sending", 1)
return { "reserved", "1", chat, new }
