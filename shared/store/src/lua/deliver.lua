#!lua
-- Put in front of the scripts of messages to people. Not a script of its own.
--
-- KEYS[1]  message   hash: state SENDING or DONE, fence, lease_until (0 when nobody has it), unsure (1 when it may have been
--                    sent), word (what became of it), conversation, new, …
-- KEYS[2]  run       hash: messages (attempts that count), sending (messages nothing is decided about), delivery
-- ARGV     none
--
-- What became of a message is a word: `SENT:<conversation>:<1 when it is new>`, `BLOCKED:<code>` or `FAILED:<code>`.
--
-- Returns nothing; defines `UNKNOWN` and `settle`.

local UNKNOWN = "FAILED:DELIVERY_UNAVAILABLE"

-- Decides about a message for good. In what a run tells, a message that was sent counts more than anything else; after
-- the end of the run that stays as it is.
local function settle(word, run, sending, memory)
  redis.call("HSET", KEYS[1], "state", "DONE", "word", word, "lease_until", "0")
  redis.call("HDEL", KEYS[1], "text", "note", "title", "token")
  redis.call("PEXPIRE", KEYS[1], memory)
  if not run.live then return end
  if sending then redis.call("HINCRBY", KEYS[2], "sending", -1) end
  if string.sub(run.delivery or "", 1, 5) ~= "SENT:" then redis.call("HSET", KEYS[2], "delivery", word) end
end
