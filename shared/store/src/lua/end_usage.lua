#!lua
-- Put in front of `run_end.lua`: what an agent run has used that is ended by somebody who does not know it. Not a script of its
-- own.
--
-- KEYS[1]  the run that ends
-- ARGV     none
--
-- Returns nothing; defines `with_usage`, which only reads.

-- The fields of an end, with an output that holds what the run has used if it is one of an agent, has begun, and has no output.
local function with_usage(fields, run, now)
  if string.sub(run, 1, 2) ~= "AG" then return fields end
  for i = 1, #fields, 2 do
    if fields[i] == "output" then return fields end
  end
  local used = redis.call("HMGET", KEYS[1], "started_at", "used_input", "used_output", "used_answers")
  if not used[1] then return fields end
  fields[#fields + 1] = "output"
  fields[#fields + 1] = '{"usage":{"inputTokens":' .. (used[2] or "0") .. ',"outputTokens":' .. (used[3] or "0")
    .. ',"iterations":' .. (used[4] or "0") .. ',"durationMs":' .. int(math.max(now - used[1], 0)) .. "}}"
  return fields
end
