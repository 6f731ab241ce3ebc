#!lua
-- Put in front of `run_end.lua`: by what right a run is ended. Not a script of its own.
--
-- KEYS     as for `run_end.lua`
-- ARGV[2]  who ends it: "fence" the holder, "version" somebody who has seen this version of a run that nobody holds, "any" a
--          person or the platform   ARGV[3]  the fence or version
-- ARGV[9]  1 when the caller has not read the record and was told: ARGV[10] workspace, ARGV[11] target,
--          ARGV[12] its version, ARGV[13] input; all must be as they are in the record, and its deadline ahead
--
-- Returns nothing; defines `refusal`: {"lost"}, {"busy"}, or false when nothing stands against the end; and `add` and
-- `without`, which change a list of fields.

local function refusal(state, fence, version, lease_until, now)
  if ARGV[2] == "fence" and (fence ~= ARGV[3] or lease_until == "0") then return { "lost" } end
  local held = state == "PAUSED" or tonumber(lease_until) > now
  if ARGV[2] == "version" and (version ~= ARGV[3] or held or redis.call("ZCARD", KEYS[4]) > 0) then
    return { "busy" }
  end
  if ARGV[9] ~= "1" then return false end
  local told = redis.call("HMGET", KEYS[1], "workspace", "target", "target_version", "input", "deadline")
  local same = told[1] == ARGV[10] and told[2] == ARGV[11] and told[3] == ARGV[12] and (told[4] or "") == ARGV[13]
  if not same or (told[5] and tonumber(told[5]) <= now) then return { "busy" } end
  return false
end

-- Fields and values in turn, with one more.
local function add(fields, field, value)
  fields[#fields + 1] = field
  fields[#fields + 1] = value
end

-- Fields and values in turn, without one of the fields.
local function without(field, fields)
  local rest = {}
  for i = 1, #fields, 2 do
    if fields[i] ~= field then
      rest[#rest + 1] = fields[i]
      rest[#rest + 1] = fields[i + 1]
    end
  end
  return rest
end
