#!lua
-- Ends an attempt of a call of a project: the first answer that knows the key counts.
--
-- KEYS[1]  call  hash, see `call_begin.lua`
-- ARGV[1]  attempt   ARGV[2]  answer key   ARGV[3]  state: done or failed   ARGV[4]  the answer   ARGV[5]  how long it is kept ms
--
-- Returns {"ended", reply address, correlation}, {"known", reply address, correlation, answer} or {"missing"}.

local call = redis.call("HMGET", KEYS[1], "state", "attempt", "key", "reply_to", "correlation", "answer")
if not call[1] or call[2] ~= ARGV[1] or call[3] ~= ARGV[2] then return { "missing" } end
if call[1] ~= "open" then return { "known", call[4] or "", call[5] or "", call[6] or "" } end
redis.call("HSET", KEYS[1], "state", ARGV[3], "answer", ARGV[4])
redis.call("PEXPIRE", KEYS[1], ARGV[5])
return { "ended", call[4] or "", call[5] or "" }
