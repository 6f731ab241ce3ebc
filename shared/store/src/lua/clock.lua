#!lua
-- The clock of the ledger. Not a script of its own: no KEYS, no ARGV.
--
-- Returns nothing; defines `now_ms()`, in Unix milliseconds.

local function now_ms()
  local time = redis.call("TIME")
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
