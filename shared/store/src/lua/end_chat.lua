#!lua
-- Put between `chat_turns.lua` and `run_end.lua`: what the end of a run means for its message to a person, and for the
-- conversation in which it is a turn or a part of one. Not a script of its own.
--
-- KEYS     as for `run_end.lua`
-- ARGV     none; bounds come as arguments
--
-- Returns nothing; defines `final_delivery`, `turn_of`, `turn_to_wake`, which read, `end_turn` and `asks_no_more`.

-- What a person is told of an end that no runner has decided about, as callers of runs are.
local CODES = { TIMED_OUT = "TIMEOUT", CANCELED = "CANCELLED", DELETED = "CANCELLED" }

-- Longest answer that a conversation takes, in bytes.
local ANSWER = 32768

-- What became of the message of a run, when the end decides that; else false.
local function final_delivery(person, delivery, sending)
  if not person or string.sub(delivery or "", 1, 5) == "SENT:" then return false end
  if tonumber(sending or "0") > 0 then return "FAILED:DELIVERY_UNAVAILABLE" end
  return not delivery and "NOT_SENT"
end

-- The conversation of a turn that ends, with the turn that follows; nil when there is none.
local function turn_of(run, id, bounds)
  local at = id and conversation(id, bounds)
  if not at or not at.live then return nil end
  at.mine = at.active == run
  if at.mine then at.next = next_turn(at) end
  return at
end

-- The run of the turn that follows, its lane and trace. A repeated call finds that it has begun.
local function turn_to_wake(at)
  if not at then return "", "", "" end
  if at.mine then return at.next and at.next[1] or "", "interactive", "" end
  return at.active, "interactive", ""
end

-- Puts the answer of a turn into its conversation, or why there is none, and begins the next one; gives who has said that.
-- `fields` are those of the end.
local function end_turn(at, run, state, fields, alarms, wake, bounds)
  if not at or not at.mine then return "" end
  local said = {}
  for i = 1, #fields, 2 do said[fields[i]] = fields[i + 1] end
  local good, output = pcall(cjson.decode, said.output or "null")
  local text = good and type(output) == "table" and type(output.text) == "string" and output.text or ""
  local from = state == "COMPLETED" and text ~= "" and "agent" or "system"
  if from == "system" then
    text = state == "COMPLETED" and "NO_ANSWER" or CODES[state] or said.error_code or "INTERNAL_ERROR"
  end
  say(at, from, cut(text, ANSWER), "", run, bounds)
  redis.call("HDEL", at.key, "active", "pending", "pending_below")
  if at.next then begin_turn(at, at.next, alarms, wake) end
  return from
end

-- Nobody is asked any more about calls of a run that is a part of a turn. `asks_in` is what the run remembers of that.
local function asks_no_more(asks_in, run)
  local conversation = string.match(asks_in or "", "^(%w+):")
  if conversation then hold_below(PREFIX .. "conv:" .. conversation, run, "", math.huge) end
end
