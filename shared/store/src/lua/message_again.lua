#!lua
-- Put after `caps.lua`, `deliver.lua` and `waiting.lua` in front of `message_reserve.lua`: a message that the ledger knows and
-- about which nothing is decided. Not a script of its own.
--
-- KEYS     as for `message_reserve.lua`
-- ARGV     as for `message_reserve.lua`
--
-- Returns nothing; defines `LIMITED` and `again`.

local LIMITED = "BLOCKED:RECIPIENT_RATE_LIMITED"

-- When a message that waits may go, and the word if it must not. One that no day has counted yet keeps the caps now.
local function turn_of_day(message, caps, due, last)
  if due or message.day then return due, "" end
  due = caps.too_soon and caps.free_at or nil
  return due, (caps.count >= tonumber(ARGV[11]) or due and due >= last) and LIMITED or ""
end

-- `stopped`: whether somebody has stopped its run, and so wants no more of it.
local function again(message, run, caps, newest, now, stopped)
  if message.token == ARGV[1] then return { "reserved", message.fence, message.conversation, message.new } end
  if tonumber(message.lease_until) > now then return { "busy", message.lease_until } end
  -- Nobody knows how far a holder has got that did not give it back.
  local unsure, waits = message.unsure == "1" or message.lease_until ~= "0", message.state == "WAITING"
  local word, due = ARGV[9], tonumber(ARGV[17])
  if not run.live and not message.since or unsure and (ARGV[8] == "0" or word ~= "") then word = UNKNOWN end
  if waits and stopped then word = "NOT_SENT" end
  local last = due and due + ARGV[18] or tonumber(message["until"])
  if word == "" then due, word = turn_of_day(message, caps, due, last) end
  if word == "" and due and not unsure then return put_off(run, message.state, due, last) end
  if waits then go_on(run, word == "") end
  if word ~= "" then
    settle(word, run, not waits, ARGV[14])
    if not unsure then give_back(run, KEYS[3], message.day, tonumber(ARGV[13])) end
    return { "known", word, "1" }
  end
  if not message.day then count_one(KEYS[3], caps, tonumber(ARGV[13]), ARGV[15]) end
  local chat, new = message.conversation, message.new
  if waits then chat, new = place_of(chat, new, message.latest, newest, now) end
  redis.call("HSET", KEYS[1], "state", "SENDING", "fence", int(message.fence + 1), "lease_until", int(now + ARGV[2]), "token",
    ARGV[1], "unsure", unsure and "1" or "0", "conversation", chat, "new", new, "day", message.day or int(caps.day))
  return { "reserved", int(message.fence + 1), chat, new }
end
