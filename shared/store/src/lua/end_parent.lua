#!lua
-- Put between `inbox_add.lua` and `run_end.lua`: the end of a run that another run has called. Not a script of its own.
--
-- KEYS[1]  the run that ends
-- Reads and changes the undeclared sorted set `kids:<parent>` and, through `inbox_add.lua`, the keys of the parent; same
-- slot.
-- ARGV     none; bounds come as arguments
--
-- Returns nothing; defines `parent_of`, which reads, `parent_to_wake` and `tell_parent`.

-- The parent of a run that ends; nil when it has none.
local function parent_of(run, parent)
  if not parent then return nil end
  local kids = PREFIX .. "kids:" .. parent
  redis.call("ZSCORE", kids, run)
  return { id = parent, kids = kids, to = receiver(parent, "child:" .. run) }
end

-- Its id, lane and trace context, while it goes on.
local function parent_to_wake(parent)
  local to = parent and parent.to
  if to and to.live then return to.id, to.lane, to.trace end
  return "", "", ""
end

-- Puts the end into the inbox of the parent: also when that is full, since there is one event a child and children have a
-- bound of their own. `fields` are those of the end. The last child of a parent that has ended silences its alarm.
local function tell_parent(parent, run, state, fields, alarms, output_max, bounds)
  redis.call("ZREM", parent.kids, run)
  local to = parent.to
  if not to then return end
  if not to.live then
    if redis.call("ZCARD", parent.kids) == 0 then redis.call("ZREM", alarms, parent.id) end
    return
  end
  if to.known then return end
  local output, code = "null", "null"
  for i = 1, #fields, 2 do
    local value = fields[i + 1]
    if fields[i] == "output" and #value <= tonumber(output_max) then output = value end
    if fields[i] == "error_code" then code = cjson.encode(value) end
  end
  local task = redis.call("HGET", KEYS[1], "parent_instance")
  local body = '{"kind":"childEnded","task":' .. task .. ',"run":"' .. run .. '","state":"' .. state .. '","output":'
    .. output .. ',"code":' .. code .. '}'
  receive(to, "child:" .. run, body, alarms, bounds)
end
