#!lua
-- The clock of the ledger under a test that moves it. Not a script of its own: no KEYS, no ARGV.
--
-- Returns nothing; defines `now_ms()`, in Unix milliseconds plus what the key `skew` of the shard says.

local function now_ms()
  local time = redis.call("TIME")
  local skew = redis.call("GET", string.match(KEYS[1], "^[^{]*{[^}]*}:") .. "skew")
  return time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(skew or "0")
end
