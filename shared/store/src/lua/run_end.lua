#!lua
-- Ends a run. The first end wins; nothing of a run changes after it but what becomes of its outcome and its children. Needs
-- `inbox_add.lua`, `waits.lua`, `notes.lua`, `end_right.lua`, `end_usage.lua`, `end_parent.lua`, `chat.lua`, `chat_turns.lua`,
-- `chat_below.lua`, `end_chat.lua` and `end_life.lua` in front of it.
--
-- KEYS[1]  run      hash
-- KEYS[2]  alarms   sorted set of the kind of the run     KEYS[3]  alarms of what is done
-- KEYS[4]  inbox    sorted set     KEYS[5]  events  hash     KEYS[6]  seen  sorted set     KEYS[7]  history  list
-- KEYS[8]  kids     sorted set: its children that have not ended
-- KEYS[9]  incidents  sorted set   KEYS[10] alarms of Processes   KEYS[11] alarms of agents
-- Reads and expires the undeclared idempotency key that the run remembers; same slot.
-- ARGV[1]  run id   ARGV[2], ARGV[3], ARGV[9] to ARGV[13]: see `end_right.lua`
-- ARGV[4]  token of this call    ARGV[5]  final state   ARGV[6]  lifetime ms   ARGV[7]  alarm ms
-- ARGV[8]  1 to keep the output also without a wanted outcome   ARGV[14] longest output that a parent is told
-- ARGV[15] wake ms   ARGV[16] memory of event ids ms   ARGV[17] most event ids   ARGV[18] most entries of history
-- ARGV[19] bounds of conversations   ARGV[20] number of entries of history
-- ARGV[21…] those, then field, value, … of the end: output, error_code, error_message
--
-- Returns {"missing"}, {"lost"}, {"busy"}, {"ended", record}, or {"finished", 1 when the outcome is wanted, 1 when children
-- have not ended, parent that is to be woken or "", its lane, its trace, the same three of the turn that follows, who has said
-- something in the conversation of which it was a turn or ""}.

local run = redis.call("HMGET", KEYS[1], "state", "fence", "version", "lease_until", "end_token", "outcome", "key_ref",
  "started_at", "parent", "kids", "waits", "incidents", "deliver_to", "delivery", "sending", "conversation", "asks_in")
if not run[1] then return { "missing" } end
if FINAL[run[1]] and run[5] ~= ARGV[4] then return { "ended", redis.call("HGETALL", KEYS[1]) } end
local wanted = run[6] == "PENDING"
local children = run[10] and redis.call("ZCARD", KEYS[8]) > 0
local parent = parent_of(ARGV[1], run[9])
local bounds = bounds_of(ARGV[19])
local turn = turn_of(ARGV[1], run[16], bounds)
local answer = { "finished", wanted and "1" or "0", children and "1" or "0", parent_to_wake(parent) }
for _, word in ipairs({ turn_to_wake(turn) }) do answer[#answer + 1] = word end
answer[#answer + 1] = ""
if FINAL[run[1]] then return answer end
local now = now_ms()
local refused = refusal(run[1], run[2], run[3], run[4], now)
if refused then return refused end
local key = held_key(run[7], ARGV[1])
local waits = look_at_waits(run[11], ARGV[1], {})

local history_to = 20 + ARGV[20]
write_history(KEYS[7], 21, history_to, ARGV[18])
local fields = with_usage({ unpack(ARGV, history_to + 1) }, ARGV[1], now)
if parent then
  local alarms = string.sub(parent.id, 1, 2) == "AG" and KEYS[11] or KEYS[10]
  tell_parent(parent, ARGV[1], ARGV[5], fields, alarms, ARGV[14], { ARGV[15], ARGV[16], ARGV[17] })
end
answer[#answer] = end_turn(turn, ARGV[1], ARGV[5], fields, KEYS[11], ARGV[15], bounds)
asks_no_more(run[17], ARGV[1])
if not wanted and ARGV[8] == "0" then fields = without("output", fields) end
-- Who ends a run without having claimed it has begun it by that.
if ARGV[2] == "version" and not run[8] then add(fields, "started_at", int(now)) end
local delivery = final_delivery(run[13], run[14], run[15])
if delivery then add(fields, "delivery", delivery) end
redis.call("HSET", KEYS[1], "state", ARGV[5], "version", int(run[3] + 1), "fence", int(run[2] + 1), "lease_until", "0",
  "finished_at", int(now), "end_token", ARGV[4], "tries", "0", unpack(fields))
let_go(ARGV[1], waits, run[12])
set_life(ARGV[1], now, wanted, children, key, ARGV[7], ARGV[6])
return answer
