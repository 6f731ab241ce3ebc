#!lua
-- What a person says about messages of agents, and what they have said.
--
-- KEYS[1]  settings   hash
-- KEYS[2]  waiting    sorted set: messages that wait for the person, see `waiting.lua`
-- KEYS[3]  alarms of messages   sorted set
-- ARGV[1]  opt out: 1, 0, or "" to leave it   ARGV[2]  quiet hours as from, to and time zone, "-" for none, or "" to leave
-- them   ARGV[3]  most messages that are looked at anew
--
-- Returns {"settings", 1 when opted out, quiet hours or ""}.

local waiting = ARGV[2] ~= "" and redis.call("ZRANGE", KEYS[2], 0, ARGV[3] - 1) or {}
redis.call("ZCARD", KEYS[3])
if ARGV[1] ~= "" then redis.call("HSET", KEYS[1], "opt_out", ARGV[1]) end
if ARGV[2] == "-" then
  redis.call("HDEL", KEYS[1], "quiet")
elseif ARGV[2] ~= "" then
  redis.call("HSET", KEYS[1], "quiet", ARGV[2])
end
-- Perhaps they may go now. Whoever looks at one that may not lets it wait again.
local now = int(now_ms())
for _, id in ipairs(waiting) do redis.call("ZADD", KEYS[3], "XX", "LT", now, id) end
local settings = redis.call("HMGET", KEYS[1], "opt_out", "quiet")
return { "settings", settings[1] or "0", settings[2] or "" }
