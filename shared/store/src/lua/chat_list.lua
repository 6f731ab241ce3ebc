#!lua
-- The conversations of a person, the one with the newest message first. `chat.lua` is put in front of it. Writes nothing.
--
-- KEYS[1]  conversations of the person   sorted set
-- ARGV[1]  bounds of conversations   ARGV[2]  time of the last change before which they must be, or ""   ARGV[3]  most of
-- them   ARGV[4]  longest text of the last message in bytes
--
-- Returns {"conversations", {{id, record, number, Unix ms, from, text, note, run}, …}, time to go on before or ""}; the
-- last six are of its last message.

local bounds = bounds_of(ARGV[1])
local from = ARGV[2] == "" and "+inf" or "(" .. ARGV[2]
local ids = redis.call("ZRANGE", KEYS[1], from, "-inf", "BYSCORE", "REV", "LIMIT", 0, ARGV[3])
local list, last = {}, ""
for _, id in ipairs(ids) do
  local at = conversation(id, bounds)
  last = redis.call("ZSCORE", KEYS[1], id)
  if at.live and at.count > 0 then
    local message = cjson.decode(redis.call("LRANGE", at.log, -1, -1)[1])
    list[#list + 1] = { id, redis.call("HGETALL", at.key), message[1], message[2], message[3],
      cut(message[4], tonumber(ARGV[4])), "", message[6] }
  end
end
return { "conversations", list, #ids == tonumber(ARGV[3]) and int(tonumber(last)) or "" }
