#!lua
-- Puts an event into the inbox of a run, once per event id, and sees to it that somebody looks. `inbox_add.lua` is put in
-- front of it.
--
-- KEYS[1]  run      hash
-- KEYS[2]  alarms   sorted set of the kind of the run
-- KEYS[3]  inbox    sorted set     KEYS[4]  events  hash     KEYS[5]  seen  sorted set
-- ARGV[1]  run id   ARGV[2]  event id   ARGV[3]  body   ARGV[4]  most events that may wait
-- ARGV[5]  alarm ms   ARGV[6]  memory of ids ms   ARGV[7]  most ids remembered
--
-- Returns {"missing"}, {"ended"}, {"known"}, {"full"} or {"added"}.

local to = receiver(ARGV[1], ARGV[2])
if not to then return { "missing" } end
-- Whoever comes again is told what it was told at first, also when the run has ended since.
if to.known then return { "known" } end
if not to.live then return { "ended" } end
if to.waiting >= tonumber(ARGV[4]) then return { "full" } end

receive(to, ARGV[2], ARGV[3], KEYS[2], { ARGV[5], ARGV[6], ARGV[7] })
return { "added" }
