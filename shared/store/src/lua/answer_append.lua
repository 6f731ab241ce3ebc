#!lua
-- Puts the answer of a model into the inbox of its run, once per event id, and charges for it in the same step. `inbox_add.lua`
-- is put in front of it.
--
-- KEYS[1] to KEYS[5], ARGV[1] to ARGV[7]: see `event_append.lua`
-- KEYS[6]  credits  hash: millionths of a credit that were charged to the workspace (`total`) and to each agent (`a:<agent>`)
-- ARGV[8]  agent    ARGV[9]  cost, in millionths of a credit   ARGV[10] largest sum that is counted
-- ARGV[11] tokens read   ARGV[12] tokens written   ARGV[13] 1 when the answer counts as an iteration
--
-- Returns {"missing"}, {"ended"}, {"known"}, {"full"} or {"added"}. Nothing is charged but for what is added.

local to = receiver(ARGV[1], ARGV[2])
if not to then return { "missing" } end
-- Whoever comes again is told what it was told at first, also when the run has ended since.
if to.known then return { "known" } end
if not to.live then return { "ended" } end
if to.waiting >= tonumber(ARGV[4]) then return { "full" } end
local agent = "a:" .. ARGV[8]
local charged = redis.call("HMGET", KEYS[6], "total", agent)
local used = redis.call("HMGET", to.run, "cost", "used_input", "used_output", "used_answers")

-- Sums stay exact and where they are at the largest: beyond it a script that has begun to write would fail.
local function sum(one, more)
  return int(math.min(tonumber(one or "0") + tonumber(more), tonumber(ARGV[10])))
end
receive(to, ARGV[2], ARGV[3], KEYS[2], { ARGV[5], ARGV[6], ARGV[7] })
redis.call("HSET", to.run, "cost", sum(used[1], ARGV[9]), "used_input", sum(used[2], ARGV[11]), "used_output",
  sum(used[3], ARGV[12]), "used_answers", sum(used[4], ARGV[13]))
if ARGV[9] ~= "0" then
  redis.call("HSET", KEYS[6], "total", sum(charged[1], ARGV[9]), agent, sum(charged[2], ARGV[9]))
end
return { "added" }
