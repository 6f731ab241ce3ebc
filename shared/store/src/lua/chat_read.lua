#!lua
-- A page of the messages of a conversation, oldest first, for one of its parties. `chat.lua` is put in front of it.
--
-- KEYS[1]  conversation   hash
-- ARGV[1]  its id   ARGV[2]  workspace   ARGV[3]  the person, or "" for its agent   ARGV[4]  bounds of conversations
-- ARGV[5]  number before which the messages must be, or "" for the newest   ARGV[6]  most messages   ARGV[7]  most bytes
-- ARGV[8]  1 when the person has seen them
--
-- Returns {"missing"}, or {"conversation", record, {{number, Unix ms, from, text, note, run}, …}, 1 when there are older
-- ones}.

local at = conversation(ARGV[1], bounds_of(ARGV[4]))
if not at.live or at.workspace ~= ARGV[2] or (ARGV[3] ~= "" and at.person ~= ARGV[3]) then return { "missing" } end
local upto = math.min((tonumber(ARGV[5]) or at.seq + 1) - 1, at.seq)
local entries = {}
if upto >= 1 then
  -- Places are counted from the end: what is at the front has been dropped at some time.
  entries = redis.call("LRANGE", at.log, int(upto - ARGV[6] - at.seq), int(upto - at.seq - 1))
end
local newest_first, size = {}, 0
for i = #entries, 1, -1 do
  local message = cjson.decode(entries[i])
  size = size + #entries[i] - #message[5]
  if #newest_first > 0 and size > tonumber(ARGV[7]) then break end
  newest_first[#newest_first + 1] = message
end
local messages = {}
for i = #newest_first, 1, -1 do messages[#messages + 1] = newest_first[i] end
local older = #messages > 0 and tonumber(messages[1][1]) > at.seq - at.count + 1

if ARGV[8] == "1" and at.unread > 0 then
  local unread = 0
  for i = upto - at.seq, -1 do
    local message = cjson.decode(redis.call("LRANGE", at.log, i, i)[1] or '["","","person"]')
    if message[3] ~= "person" then unread = unread + 1 end
  end
  redis.call("HSET", at.key, "unread", int(math.min(unread, at.unread)))
end
return { "conversation", redis.call("HGETALL", at.key), messages, older and "1" or "0" }
