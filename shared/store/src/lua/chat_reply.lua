#!lua
-- Puts a message of a person into a conversation, once per message id, and makes it a turn: at once, or when the turns
-- before it have ended. `chat.lua` and `chat_turns.lua` are put in front of it.
--
-- KEYS[1]  reply    string: the turn that this message became     KEYS[2]  alarms of agents   sorted set
-- ARGV[1]  conversation   ARGV[2]  workspace   ARGV[3]  person    ARGV[4]  bounds of conversations
-- ARGV[5]  memory of message ids ms   ARGV[6]  most turns that may wait   ARGV[7]  wake ms   ARGV[8]  text
-- ARGV[9]  run of the turn            ARGV[10] ms it may take   ARGV[11…] field, value, … of its record
--
-- Returns {"missing"}, {"full"}, or {"said", run of the turn, number of the message, the run whose turn it is, 1 when that
-- or a part of it shows calls which the person has passed over by this message}.

local bounds = bounds_of(ARGV[4])
local at = conversation(ARGV[1], bounds)
if not at.live or at.workspace ~= ARGV[2] or at.person ~= ARGV[3] then return { "missing" } end
local run, seq = string.match(redis.call("GET", KEYS[1]) or "", "^(%w+):(%d+)$")
local shown = redis.call("HMGET", at.key, "pending", "pending_below")
local held = (shown[1] or shown[2]) and 1 or 0
-- A message whose own turn has begun has closed long ago what it was to close.
if run and redis.call("HGET", PREFIX .. "run:" .. run, "state") then held = 0 end
if run then return { "said", run, seq, at.active, held } end
if at.waiting >= tonumber(ARGV[6]) then return { "full" } end
local own = { unpack(ARGV, 9) }
local alive, turn = turn_alive(at), next_turn(at, own)
redis.call("HGET", PREFIX .. "run:" .. own[1], "state")

seq = say(at, "person", ARGV[8], "", own[1], bounds)
redis.call("RPUSH", at.turns, cjson.encode(own))
redis.call("PEXPIRE", at.turns, bounds.lifetime)
redis.call("SET", KEYS[1], own[1] .. ":" .. seq, "PX", ARGV[5])
if not alive then begin_turn(at, turn, KEYS[2], ARGV[7]) end
return { "said", own[1], seq, at.active, alive and held or 0 }
