#!lua
-- Put in front of `run_end.lua`: what a run that has ended no longer needs, and how long the rest of it is kept. Not a
-- script of its own.
--
-- KEYS     as for `run_end.lua`
-- ARGV[16] memory of event ids ms
--
-- Returns nothing; defines `let_go` and `set_life`, which write.

local function let_go(run, waits, incidents)
  redis.call("HDEL", KEYS[1], "input", "position", "claim_token", "save_token", "cut_off", "crashes", "events", "waits",
    "incidents", "messages", "sending", "chat", "chat_new")
  redis.call("UNLINK", KEYS[4], KEYS[5])
  -- Whoever has told it something and got no answer comes again after the end.
  redis.call("PEXPIRE", KEYS[6], ARGV[16])
  drop_waits(waits)
  if incidents then redis.call("ZREM", KEYS[9], run) end
end

local function set_life(run, now, wanted, children, key, alarm, lifetime)
  redis.call("ZREM", KEYS[2], run)
  if children then redis.call("ZADD", KEYS[2], int(now + alarm), run) end
  if wanted then
    redis.call("ZADD", KEYS[3], int(now + alarm), run)
    return
  end
  redis.call("PEXPIRE", KEYS[1], lifetime)
  redis.call("PEXPIRE", KEYS[7], lifetime)
  if children then redis.call("PEXPIRE", KEYS[8], lifetime) end
  if key then redis.call("PEXPIRE", key, lifetime) end
end
