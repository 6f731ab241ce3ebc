#!lua
-- Gives a signal to a page of the runs that wait for it, each once per signal id. `inbox_add.lua` is put in front of it.
--
-- KEYS[1]  signal   sorted set: runs, all with the same score
-- KEYS[2]  alarms of Processes
-- ARGV[1]  event id   ARGV[2]  name   ARGV[3]  variables   ARGV[4]  the last run of the page before, or ""
-- ARGV[5]  most runs   ARGV[6]  most events in an inbox   ARGV[7]  wake ms   ARGV[8]  memory of ids ms   ARGV[9]  most ids
--
-- Returns {"told", the last run of the page or "" when there are no more, runs whose inbox is full, runs that have the
-- signal as {run, lane, trace or "", run, lane, …}}.

local from = ARGV[4] == "" and "-" or "(" .. ARGV[4]
local runs = redis.call("ZRANGE", KEYS[1], from, "+", "BYLEX", "LIMIT", 0, ARGV[5])
local body = '{"kind":"signal","name":' .. cjson.encode(ARGV[2]) .. ',"variables":' .. ARGV[3] .. '}'
local gone, full, reached, told = {}, 0, {}, {}
for _, id in ipairs(runs) do
  local to = receiver(id, ARGV[1])
  if not to or not to.live then
    gone[#gone + 1] = id
  elseif not to.known and to.waiting >= tonumber(ARGV[6]) then
    full = full + 1
  else
    reached[#reached + 1] = to
  end
end

for _, to in ipairs(reached) do
  if not to.known then receive(to, ARGV[1], body, KEYS[2], { ARGV[7], ARGV[8], ARGV[9] }) end
  told[#told + 1] = to.id
  told[#told + 1] = to.lane
  told[#told + 1] = to.trace
end
if #gone > 0 then redis.call("ZREM", KEYS[1], unpack(gone)) end
return { "told", #runs == tonumber(ARGV[5]) and runs[#runs] or "", int(full), told }
