#!lua
-- Tells everybody that the catalog of a workspace has changed.
--
-- KEYS[1]  revision   string: number of announcements
-- KEYS[2]  changes    sorted set: workspaces by their last announcement
-- ARGV[1]  workspace
--
-- Returns {"announced", revision}.

local revision = int(redis.call("INCR", KEYS[1]))
redis.call("ZADD", KEYS[2], revision, ARGV[1])
return { "announced", revision }
