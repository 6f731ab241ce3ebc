#!lua
-- Put after `caps.lua` and `deliver.lua` in front of `message_reserve.lua`: messages that are kept until their person may be
-- written to. Not a script of its own.
--
-- KEYS[1]  message   KEYS[2]  run   KEYS[3]  caps: see there
-- KEYS[5]  alarms of messages   sorted set: `<run>.<call>` by the time at which it may be sent
-- KEYS[6]  waiting  sorted set: the same of what waits for this person, whoever has written it
-- KEYS[7]  settings   hash: see `chat_settings.lua`
-- ARGV[2], ARGV[10] to ARGV[20]: see `message_reserve.lua`
--
-- A message that waits has the state WAITING and `due`; `until`, after which it is not sent any more; `since`, which it keeps
-- for good: the end of its run does not concern it; `lane` and `trace`; `latest`. Without `day` it is in no cap of a day yet.
--
-- Returns nothing; defines `put_off`, `go_on` and `place_of`.

-- The person may have changed the quiet hours after the caller has looked at them: then nobody would look at the message again.
local changed = (redis.call("HGET", KEYS[7], "quiet") or "") ~= ARGV[20]

-- Lets a message wait until `due`; `was` is its state. What its run tells meanwhile is that nothing was sent.
local function put_off(run, was, due, last)
  if changed then due = now_ms() end
  redis.call("HSET", KEYS[1], "state", "WAITING", "due", int(due), "until", int(last), "tries", "0", "lease_until", "0")
  redis.call("HDEL", KEYS[1], "token")
  redis.call("PEXPIRE", KEYS[1], ARGV[14])
  redis.call("ZADD", KEYS[5], int(due), ARGV[19])
  redis.call("ZADD", KEYS[6], int(due), ARGV[19])
  redis.call("PEXPIRE", KEYS[6], ARGV[14])
  if was == "WAITING" then return { "waiting", int(due) } end
  if not redis.call("HGET", KEYS[1], "since") then redis.call("HSET", KEYS[1], "since", int(now_ms())) end
  redis.call("HINCRBY", KEYS[3], "waiting", 1)
  redis.call("PEXPIRE", KEYS[3], ARGV[15])
  if run.live then
    if was == "SENDING" then redis.call("HINCRBY", KEYS[2], "sending", -1) end
    if string.sub(run.delivery or "", 1, 5) ~= "SENT:" then redis.call("HSET", KEYS[2], "delivery", "NOT_SENT") end
  end
  return { "waiting", int(due) }
end

-- A message that has waited is in somebody's hands, or decided about.
local function go_on(run, sending)
  redis.call("ZREM", KEYS[6], ARGV[19])
  if tonumber(redis.call("HGET", KEYS[3], "waiting") or "0") > 0 then redis.call("HINCRBY", KEYS[3], "waiting", -1) end
  if sending and run.live then redis.call("HINCRBY", KEYS[2], "sending", 1) end
end

-- Where a message goes that was to open a conversation before it had to wait: on in the newest one, if that is its wish.
local function place_of(chat, new, latest, newest, now)
  local other = latest == "1" and new == "1" and newest[1] and newest[1] ~= chat and now < newest[2] + ARGV[16]
  if other and not redis.call("HGET", PREFIX .. "conv:" .. chat, "updated_at") then return newest[1], "0" end
  return chat, new
end
