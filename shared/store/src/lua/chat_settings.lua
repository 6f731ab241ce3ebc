#!lua
-- What a person says about messages of agents, and what they have said.
--
-- KEYS[1]  settings   hash
-- ARGV[1]  opt out: 1, 0, or "" to leave it   ARGV[2]  quiet hours as from, to and time zone, "-" for none, or "" to leave
-- them
--
-- Returns {"settings", 1 when opted out, quiet hours or ""}.

if ARGV[1] ~= "" then redis.call("HSET", KEYS[1], "opt_out", ARGV[1]) end
if ARGV[2] == "-" then
  redis.call("HDEL", KEYS[1], "quiet")
elseif ARGV[2] ~= "" then
  redis.call("HSET", KEYS[1], "quiet", ARGV[2])
end
local settings = redis.call("HMGET", KEYS[1], "opt_out", "quiet")
return { "settings", settings[1] or "0", settings[2] or "" }
