#!lua
-- Records what became of a message to a person. One that was sent is in its conversation from then on. `caps.lua`,
-- `deliver.lua` and `chat.lua` are put in front of it.
--
-- KEYS[1]  message   KEYS[2]  run: see `deliver.lua`
-- ARGV[1]  fence     ARGV[2]  "sent", "post" (this is the sending, unless it must not outlive its run), "failed", "not_sent" (surely),
--                    "later" (surely not sent) or "unsure" (perhaps sent, again later)
-- ARGV[3]  word of what was not sent   ARGV[4]  memory of messages ms   ARGV[5]  period ms   ARGV[6]  bounds of
-- conversations
--
-- Returns {"missing"}, {"lost"}, {"later"} or {"known", word, number of the message in its conversation or "",
-- 1 when just now}.

local found = redis.call("HMGET", KEYS[1], "state", "fence", "word", "unsure", "conversation", "new", "caps_ref", "day",
  "seq", "since")
if not found[1] then return { "missing" } end
if found[1] == "DONE" then return { "known", found[3], found[9] or "", "0" } end
if found[2] ~= ARGV[1] or found[1] == "WAITING" then return { "lost" } end
local state = redis.call("HMGET", KEYS[2], "state", "delivery")
local run = { live = state[1] and not FINAL[state[1]], delivery = state[2] }
local how, word, unsure = ARGV[2], ARGV[3], found[4] == "1"
if how == "post" and not run.live and not found[10] then how, word = "failed", UNKNOWN end
if how == "later" or how == "unsure" then
  redis.call("HSET", KEYS[1], "lease_until", "0", "unsure", (unsure or how == "unsure") and "1" or "0")
  return { "later" }
end
local caps = PREFIX .. found[7]
redis.call("HGET", caps, "day")
if how == "failed" or how == "not_sent" then
  settle(word, run, true, ARGV[4])
  -- When an earlier attempt may have sent it, nobody can be sure.
  if how == "not_sent" and not unsure then give_back(run, caps, found[8], tonumber(ARGV[5])) end
  return { "known", word, "", "1" }
end

local bounds = bounds_of(ARGV[6])
local at = conversation(found[5], bounds)
local own = redis.call("HMGET", KEYS[1], "workspace", "agent", "person", "pair_ref", "person_ref", "project", "title",
  "text", "note", "run")
at.pair, at.of_person = PREFIX .. own[4], PREFIX .. own[5]
redis.call("ZSCORE", at.of_person, at.id)
-- One more may be too many between the two.
local over = at.live and {} or redis.call("ZRANGE", at.pair, 0, -bounds.pair)
for _, id in ipairs(over) do conversation(id, bounds) end

for _, id in ipairs(over) do
  redis.call("UNLINK", PREFIX .. "conv:" .. id, PREFIX .. "convlog:" .. id, PREFIX .. "convturns:" .. id)
  redis.call("ZREM", at.pair, id)
  redis.call("ZREM", at.of_person, id)
end
if not at.live then
  redis.call("UNLINK", at.key, at.log, at.turns)
  at.seq, at.bytes, at.unread = 0, 0, 0
  redis.call("HSET", at.key, "v", "1", "workspace", own[1], "agent", own[2], "person", own[3], "pair_ref", own[4],
    "person_ref", own[5], "created_at", int(now_ms()))
  if own[7] then redis.call("HSET", at.key, "title", own[7]) end
end
redis.call("HSET", at.key, "project", own[6])
local seq = say(at, "agent", own[8], own[9] or "", own[10], bounds)
word = "SENT:" .. at.id .. ":" .. found[6]
settle(word, run, true, ARGV[4])
redis.call("HSET", KEYS[1], "seq", seq)
return { "known", word, seq, "1" }
