#!lua
-- Which catalogs have changed since an announcement. Writes nothing.
--
-- KEYS[1]  revision   string     KEYS[2]  changes  sorted set
-- ARGV[1]  the last announcement that is known
--
-- Returns {"changes", revision, workspaces}.

local revision = redis.call("GET", KEYS[1]) or "0"
local since = tonumber(ARGV[1])
-- A ledger that was emptied counts from the beginning again.
if tonumber(revision) < since then since = 0 end
return { "changes", revision, redis.call("ZRANGEBYSCORE", KEYS[2], "(" .. int(since), "+inf") }
