#!lua
-- Takes an idempotency key away from a run. A key that names another run by now is left alone.
--
-- KEYS[1]  key   string: the run that it names
-- ARGV[1]  run id
--
-- Returns {"released"}.

if redis.call("GET", KEYS[1]) == ARGV[1] then redis.call("UNLINK", KEYS[1]) end
return { "released" }
